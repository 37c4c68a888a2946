"""Mutants of a broker's life in ZooKeeper, of its replicas, and of topics."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    # --- membership ------------------------------------------------------------------------------------------
    Mutant(
        name="controller-outlives-its-session",
        module="membership",
        category=Category.COMMAND,
        sentence="A controller that lost its session goes on.",
        breaks="V3 D; Kafka's KafkaController.Expire: it resigns first",
        edits=(("    office.resign(core)\n", ""),),
    ),
    Mutant(
        name="controller-until-the-next-session",
        module="membership",
        category=Category.COMMAND,
        sentence="A controller without a session goes on until it has a new one.",
        breaks="V3 D; Kafka's KafkaController.Expire: it resigns when the session ends",
        edits=(("    office.resign(core)\n", "    if session:\n        office.resign(core)\n"),),
    ),
    Mutant(
        name="office-before-its-replicas",
        module="membership",
        category=Category.PROTOCOL,
        sentence="A broker may become controller before it has read which replicas it holds.",
        breaks="V3 E.4: after the start-up reading",
        edits=(
            (
                "    if core.state.started:\n        office.run_for_office(core)\n",
                "    office.run_for_office(core)\n    if core.state.started:\n        pass\n",
            ),
        ),
    ),
    Mutant(
        name="id-of-another-machine-taken",
        module="membership",
        category=Category.PROTOCOL,
        sentence="A broker takes over the registration of another machine that has its id.",
        breaks="V3 E; Kafka's KafkaZkClient.registerBroker: NODE_EXISTS ends the start",
        edits=(
            (
                "    if other == core.config.registration.node:",
                "    if found.owner != core.state.session:",
            ),
        ),
    ),
    Mutant(
        name="failed-registration-is-done",
        module="membership",
        category=Category.COMMAND,
        sentence="A broker whose registration was refused counts as registered if there is any under its id.",
        breaks="V3 E; KAFKA-6584: an older session's registration goes with that session",
        edits=(("if isinstance(written, ZkDone) and isinstance(own, ZkNode):", "if isinstance(own, ZkNode):"),),
    ),
    Mutant(
        name="fresh-by-its-creation",
        module="membership",
        category=Category.PROTOCOL,
        sentence="A state that was rewritten after the registration is taken for one from before it.",
        breaks="KIP-101, returning leaders: the controller writes a new epoch after the registration",
        edits=(("if node.mzxid > core.state.registration", "if node.czxid > core.state.registration"),),
    ),
    Mutant(
        name="half-a-start-up-reading",
        module="membership",
        category=Category.COMMAND,
        sentence="A start-up reading whose answers were lost in part counts as done.",
        breaks="V3 E.3: leader and ISR of each assigned partition are read",
        edits=(
            (
                'so that it knows its replicas."""\n    if any(',
                'so that it knows its replicas."""\n    if results and all(',
            ),
        ),
    ),
    Mutant(
        name="first-partition-of-a-topic-read",
        module="membership",
        category=Category.MANY,
        sentence="A broker that starts reads the first partition of each topic, and deletes its other replicas.",
        breaks="V3 E.1 and E.2: every partition that is assigned to it",
        edits=(
            (
                "in sorted(found.replicas.items()):",
                "in sorted(found.replicas.items())[:1]:",
            ),
        ),
    ),
    # --- replicas --------------------------------------------------------------------------------------------
    Mutant(
        name="older-controller-obeyed",
        module="replicas",
        category=Category.COMMAND,
        sentence="A LeaderAndIsr of a deposed controller is obeyed.",
        breaks="V3 C; Kafka's ReplicaManager.becomeLeaderOrFollower: STALE_CONTROLLER_EPOCH",
        edits=(
            (
                "if request.controller_epoch < core.state.controller_epoch:",
                "if isinstance(request, StopReplicaRequest) and "
                "request.controller_epoch < core.state.controller_epoch:",
            ),
        ),
    ),
    Mutant(
        name="older-controller-stops-replicas",
        module="replicas",
        category=Category.COMMAND,
        sentence="A StopReplica of a deposed controller is obeyed: a topic that was made anew loses its replica.",
        breaks="V3 C; Kafka's ReplicaManager.stopReplicas: STALE_CONTROLLER_EPOCH",
        edits=(
            (
                "if request.controller_epoch < core.state.controller_epoch:",
                "if isinstance(request, LeaderAndIsrRequest) and "
                "request.controller_epoch < core.state.controller_epoch:",
            ),
        ),
    ),
    Mutant(
        name="same-epoch-obeyed-again",
        module="replicas",
        category=Category.COMMAND,
        sentence="A command of the leader epoch that a replica has already is obeyed again.",
        breaks="V3, optimizations 1; Kafka acts only on a larger leader epoch",
        edits=(
            (
                "if command.leader_epoch <= replica.leader_epoch:",
                "if command.leader_epoch < replica.leader_epoch:",
            ),
        ),
    ),
    Mutant(
        name="leaders-do-not-stop",
        module="replicas",
        category=Category.COMMAND,
        sentence="A broker confirms StopReplica for a partition that it leads, and keeps it.",
        breaks="V3 C (on_StopReplicaCommand); KAFKA-1097",
        edits=(
            (
                "    stop_replica(core, asked.tp)\n",
                "    if replica is not None and replica.role is not Role.LEADER:\n"
                "        stop_replica(core, asked.tp)\n",
            ),
        ),
    ),
    Mutant(
        name="one-replica-stopped",
        module="replicas",
        category=Category.MANY,
        sentence="Of the partitions that a StopReplica names the first is deleted, and all are confirmed.",
        breaks="V3 C (on_StopReplicaCommand): each of them",
        edits=(
            (
                "(asked.tp, _stop(core, asked)) for",
                "(asked.tp, _stop(core, asked) if asked == request.partitions[0] else ErrorCode.NONE) for",
            ),
        ),
    ),
    Mutant(
        name="command-ends-at-a-refused-partition",
        module="replicas",
        category=Category.MANY,
        sentence="A LeaderAndIsr ends at the first partition whose epoch is stale.",
        breaks="V3 C (on_LeaderAndISRCommand): for each partition",
        edits=(
            (
                "errors.append((command.tp, _on_command(core, command)))\n",
                "errors.append((command.tp, _on_command(core, command)))\n"
                "        if errors[-1][1] is not ErrorCode.NONE:\n            break\n",
            ),
        ),
    ),
    Mutant(
        name="recovered-high-watermark-beyond-the-log",
        module="replicas",
        category=Category.VISIBLE,
        sentence="A replica whose log lost its end in a crash begins with the checkpoint's high watermark.",
        breaks="Kafka's Log.updateHighWatermark: at most the log end",
        edits=(("min(recovery.high_watermark, log.end_offset))", "recovery.high_watermark)"),),
    ),
    Mutant(
        name="produces-wait-for-the-next-lead",
        module="replicas",
        category=Category.VISIBLE,
        sentence="A produce that waits when its leader is deposed is acknowledged if that broker leads again.",
        breaks="Kafka's ReplicaManager.becomeLeaderOrFollower completes what waits: NOT_LEADER_OR_FOLLOWER",
        edits=(("    if was_leader:\n", "    if was_leader and command.leader == -1:\n"),),
    ),
    Mutant(
        name="leads-on-without-a-leader",
        module="replicas",
        category=Category.VISIBLE,
        sentence="A leader that is told that its partition has no leader goes on serving.",
        breaks="V3 A and C: leader -1 means that nobody leads",
        edits=(("replica.role = Role.NONE\n    replica.leader = -1", "replica.leader = -1"),),
    ),
    Mutant(
        name="first-early-command-alone",
        module="replicas",
        category=Category.MANY,
        sentence="Of the commands that come before a broker is registered only the first is acted on.",
        breaks="KIP-380; V3, command queue per broker: each command is answered",
        edits=(("for caller, request in early:", "for caller, request in early[:1]:"),),
    ),
    # --- metadata --------------------------------------------------------------------------------------------
    Mutant(
        name="dead-leader-named",
        module="metadata",
        category=Category.VISIBLE,
        sentence="Metadata names a leader whose broker is gone.",
        breaks="Kafka's MetadataCache: LEADER_NOT_AVAILABLE",
        edits=(("alive = state.leader in live", "alive = state.leader >= 0"),),
    ),
    Mutant(
        name="lost-topic-is-unknown",
        module="metadata",
        category=Category.VISIBLE,
        sentence="If the connection to ZooKeeper is lost, a client is told that its topic does not exist.",
        breaks="Kafka's protocol: UNKNOWN_TOPIC_OR_PARTITION is for what is not there",
        edits=(("there = node is ZkError.LOST or", "there = node is ZkError.REFUSED or"),),
    ),
    Mutant(
        name="metadata-of-one-partition",
        module="metadata",
        category=Category.MANY,
        sentence="Metadata has the first partition of each topic alone.",
        breaks="Kafka's MetadataCache.getTopicMetadata: every partition",
        edits=(("found.setdefault(tp.topic, []).append(metadata)", "found.setdefault(tp.topic, [metadata])"),),
    ),
    # --- topics ----------------------------------------------------------------------------------------------
    Mutant(
        name="lost-topic-write-is-done",
        module="topics",
        category=Category.COMMAND,
        sentence="A topic whose write lost its answer is reported as created, or deleted.",
        breaks="V3 B; only an answer of ZooKeeper says that a write was made",
        edits=(
            (
                "    if isinstance(result, ZkDone):\n",
                "    if isinstance(result, ZkDone) or result is ZkError.LOST:\n",
            ),
        ),
    ),
    Mutant(
        name="last-delete-decides",
        module="topics",
        category=Category.MANY,
        sentence="Of a large topic's deletes the last one's result is reported, even if another failed.",
        breaks="V3 B (on_topic_change): a topic is deleted whole",
        edits=(
            (
                "if isinstance(written.setdefault(name, result), ZkDone):",
                "if written.setdefault(name, result) is not None:",
            ),
        ),
        unreachable=(
            "the last delete takes the topic's node, which must be empty: whatever became of the others, the "
            "topic is gone, and the client is told so"
        ),
    ),
    Mutant(
        name="deleted-in-part-for-anothers-write",
        module="topics",
        category=Category.MANY,
        sentence="A large topic's deletion goes on, though another write came before its first one.",
        breaks="V3 B (on_topic_change): a topic is deleted whole, or is there",
        edits=(
            (
                "for name, multi in continuation.rest if isinstance(written[name], ZkDone)]",
                "for name, multi in continuation.rest]",
            ),
        ),
    ),
    Mutant(
        name="validated-topics-are-made",
        module="topics",
        category=Category.PROTOCOL,
        sentence="A request that only validates topics creates them.",
        breaks="KIP-4, CreateTopics: validate_only changes nothing",
        edits=((" or continuation.request.validate_only:", ":"),),
    ),
    # --- zookeeper -------------------------------------------------------------------------------------------
    Mutant(
        name="isr-written-sorted",
        module="zookeeper",
        category=Category.PROTOCOL,
        sentence="The ISR is written in another order, so that a leader does not know its own lost write again.",
        breaks="V3 G; the state that is read is the one that was written",
        edits=(('"ISR": list(state.isr)', '"ISR": sorted(state.isr)'),),
    ),
    Mutant(
        name="guard-of-any-topic",
        module="zookeeper",
        category=Category.PROTOCOL,
        sentence="The node that keeps a late write from the next topic of a name is the same for all of them.",
        breaks="KIP-516; a write of an older topic's leader must not reach the new one",
        edits=(
            ('return f"{partition_path(tp)}/id-{topic_id}"', 'return f"{partition_path(tp)}/id-{topic_id % 1}"'),
        ),
    ),
    Mutant(
        name="id-in-the-first-state-alone",
        module="zookeeper",
        category=Category.PROTOCOL,
        sentence="A partition's state has its topic's id only as long as nobody was elected anew.",
        breaks="KIP-516; a state is told from that of the topic before by its id",
        edits=(
            (
                "    if state.topic_id != NO_TOPIC_ID:\n",
                "    if state.topic_id != NO_TOPIC_ID and not state.leader_epoch:\n",
            ),
        ),
    ),
    Mutant(
        name="one-election-of-many",
        module="wishes",
        category=Category.MANY,
        sentence="Of the elections that an operator asks for only the first takes place.",
        breaks="Kafka's PreferredReplicaElection: every partition that the node lists",
        edits=(("for one in elections}", "for one in elections[:1]}"),),
    ),
    Mutant(
        name="elections-go-with-the-moves",
        module="wishes",
        category=Category.MANY,
        sentence="Elections that stand beside a reassignment are taken out with it, and never take place.",
        breaks="Kafka's /admin/preferred_replica_election has a node of its own",
        edits=(
            (
                "replace(decode_wishes(asked.data), moves={}, removals",
                "replace(decode_wishes(asked.data), elections={}, moves={}, removals",
            ),
        ),
    ),
    Mutant(
        name="moves-of-others-overwritten",
        module="wishes",
        category=Category.MANY,
        sentence="Who asks for a reassignment drops what others asked for and the controller has not taken yet.",
        breaks="V3 F: each reassignment that was asked for takes place",
        edits=(("moves={**before.moves, **self.moves}", "moves={**self.moves}"),),
    ),
    Mutant(
        name="assignment-sorted",
        module="assignments",
        category=Category.PROTOCOL,
        sentence="The preferred replica is the one with the smallest id, not the first assigned.",
        breaks="V3 B (init_leaders): the first live replica in the order of the assignment",
        edits=(
            (
                "return tuple(whole_number(broker) for broker in found)",
                "return tuple(sorted(whole_number(broker) for broker in found))",
            ),
        ),
    ),
)
