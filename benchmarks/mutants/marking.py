"""Mutants of what tells a topic from others of its name, whose nodes begin at one version."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

_RULE: Final = "V3, discussion 5, and KIP-516: a topic is another one than its predecessor of that name"

MUTANTS: Final = (
    Mutant(
        name="any-topic-of-that-name",
        module="made",
        category=Category.COMMAND,
        sentence="What was read of a topic is written into the next one of its name, if the versions are alike.",
        breaks=_RULE,
        edits=(
            (
                "return (ZkCheck(path=made_path(topic, mark), version=0),)",
                "return (ZkCheck(path=topic_path(topic), version=-1),)",
            ),
        ),
    ),
    Mutant(
        name="mark-of-its-maker",
        module="made",
        category=Category.MANY,
        sentence="All topics that a broker creates while it is registered have one mark.",
        breaks=_RULE,
        edits=(("{core.state.registration}-{core.number()}", "{core.state.registration}-1"),),
    ),
    Mutant(
        name="marks-counted-by-each-process",
        module="made",
        category=Category.COMMAND,
        sentence="Each process counts the topics that it creates, so that two have topics with one mark.",
        breaks=_RULE,
        edits=(("{core.state.registration}-{core.number()}", "1-{core.number()}"),),
        unreachable=(
            "two processes would have to make a topic of one name with one number, which counts all that they do"
        ),
    ),
    Mutant(
        name="first-states-of-the-topic-before",
        module="controller",
        category=Category.COMMAND,
        sentence="A controller writes the first states of a topic by what it has read of the one before.",
        breaks=_RULE,
        edits=(('[*made.checks(core, tp.topic, controller.made.get(tp.topic, ""))]', "[]"),),
    ),
    Mutant(
        name="mark-lost-with-the-topic-node",
        module="assignments",
        category=Category.COMMAND,
        sentence="The mark of a topic is not written with it while something of it is being moved.",
        breaks=_RULE,
        edits=(("    if assignment.made:\n", "    if assignment.made and not assignment.moves:\n"),),
    ),
    Mutant(
        name="mark-of-whatever-topic-is-there",
        module="marking",
        category=Category.COMMAND,
        sentence="A mark that was made below the next topic of a name is taken for the mark of the one before.",
        breaks=_RULE,
        edits=(
            (" and isinstance(node, ZkNode) and node.czxid == each.node.czxid", " and isinstance(node, ZkNode)"),
        ),
    ),
    Mutant(
        name="first-states-before-the-mark",
        module="marking",
        category=Category.COMMAND,
        sentence="A topic that was written by hand gets its first states without waiting for its mark.",
        breaks=_RULE,
        edits=(
            (
                "    return (topic, controller.topics[topic][0]) not in controller.markless",
                "    return False",
            ),
        ),
    ),
    Mutant(
        name="marks-are-not-read",
        module="marking",
        category=Category.MANY,
        sentence="A controller does not read the topics to which it has given marks, so that they get no states.",
        breaks="V3, on_partitions_add: a topic that is there begins, as soon as its controller can write of it",
        edits=(("    return any(isinstance(result, ZkDone) for result in results)", "    return False"),),
    ),
    Mutant(
        name="marks-for-what-is-being-deleted",
        module="marking",
        category=Category.MANY,
        sentence="A topic that is being deleted in several writes gets a mark, which is in the way of its end.",
        breaks="V3 D.6: a topic that an administrator deletes goes",
        edits=(("if has.made or not has.replicas or known", "if has.made or known"),),
    ),
)
