"""Mutants of partitions that are removed, and added again."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    Mutant(
        name="any-partition-goes",
        module="removal",
        category=Category.VISIBLE,
        sentence="Partitions below those that stay are removed too, so that clients count wrong.",
        breaks="Kafka's clients: a topic's partitions are numbered from 0",
        edits=(
            (
                "        if partition not in wished or len(found) == most:\n            break\n"
                "        found.append(partition)\n",
                "        if partition in wished and len(found) < most:\n            found.append(partition)\n",
            ),
        ),
    ),
    Mutant(
        name="removal-takes-the-rest-along",
        module="removal",
        category=Category.MANY,
        sentence="The request is taken out of its node whole, also what is left for the next write.",
        breaks="V3, on_partitions_remove 3: the path goes once the change is complete",
        edits=(("take_out(continuation.asked, continuation.left)", "take_out(continuation.asked, ())"),),
        unreachable="a removal that never happens is lawful, as another operator may write over the request",
    ),
    Mutant(
        name="removal-keeps-states",
        module="removal",
        category=Category.PROTOCOL,
        sentence="The state of a removed partition stays, and the next of its number goes on from it.",
        breaks="V3, Paths 4: a partition's LeaderAndISR path is its own",
        edits=(("        if isinstance(below, ZkNames):\n", "        if not isinstance(below, ZkNames):\n"),),
    ),
    Mutant(
        name="partition-comes-back-as-it-was",
        module="removal",
        category=Category.COMMAND,
        sentence="A partition that is added again has its predecessor's id, and a late StopReplica deletes it.",
        breaks="V3, discussion 5; KIP-516, Motivation",
        edits=((" if partition < has.once}", " if partition > has.once}"),),
    ),
    Mutant(
        name="own-id-lost-with-the-topic-node",
        module="assignments",
        category=Category.COMMAND,
        sentence="The id of a partition that was added again is not written with its topic.",
        breaks="V3, discussion 5: an identity for each generation",
        edits=(("    if assignment.ids:\n", "    if len(assignment.ids) > 9:\n"),),
    ),
    Mutant(
        name="removal-forgets-the-count",
        module="removal",
        category=Category.COMMAND,
        sentence="A second removal forgets how many partitions the topic once had.",
        breaks="V3, discussion 5: an identity for each generation",
        edits=(("once=max(has.once, *(partition + 1", "once=max(0, *(partition + 1"),),
    ),
    Mutant(
        name="added-partitions-not-begun",
        module="partitions",
        category=Category.VISIBLE,
        sentence="Partitions that are added have no leader until something else makes the controller read.",
        breaks="V3 B (on_topic_change); Kafka's onNewPartitionCreation",
        edits=(
            (
                "    if results:\n        controller.read(core)\n",
                "    if not results:\n        controller.read(core)\n",
            ),
        ),
    ),
    Mutant(
        name="lost-addition-acknowledged",
        module="partitions",
        category=Category.COMMAND,
        sentence="A client is told that partitions were added although the answer to their write was lost.",
        breaks="a lost connection says nothing about the write",
        edits=(
            (
                "errors.append((name, ErrorCode.REQUEST_TIMED_OUT, LOST))\n        else:\n",
                'errors.append((name, ErrorCode.NONE, ""))\n        else:\n',
            ),
        ),
    ),
    Mutant(
        name="added-over-a-newer-topic",
        module="partitions",
        category=Category.COMMAND,
        sentence="Partitions are added to a topic as it was read, whatever was written to it since.",
        breaks="Kafka's AdminZkClient: a topic is written as of the version that was read",
        edits=(("topic.topic, node, whole)", "topic.topic, replace(node, version=-1), whole)"),),
    ),
)
