"""Mutants of what topics have of their own: read, taken up, and held against the topic."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    Mutant(
        name="settings-outlive-their-topic",
        module="topic_configs",
        category=Category.MANY,
        sentence="The settings of a deleted topic hold for the next of its name.",
        breaks="a topic's settings go with it: Kafka's DeleteTopics removes them",
        edits=((" and node.mzxid >= topic.czxid", ""),),
    ),
    Mutant(
        name="registers-without-settings",
        module="topic_configs",
        category=Category.COMMAND,
        sentence="A broker that could not read what topics have waits for a change of it, and never registers.",
        breaks="a lost connection says nothing: what was asked is asked again",
        edits=(('"paths" if starting else "configs"', '"configs"'),),
    ),
    Mutant(
        name="change-tells-nobody",
        module="topic_configs",
        category=Category.VISIBLE,
        sentence="Who alters settings does not write the parent: brokers learn of it in their next session.",
        breaks="Kafka's ConfigEntityChangeNotification",
        edits=(
            ("ZkDelete(path=path, version=known), told", "ZkDelete(path=path, version=known), *()"),
            ("(ZkCreate(path=path, data=data), told) if after", "(ZkCreate(path=path, data=data),) if after"),
        ),
    ),
    Mutant(
        name="retention-begins-at-start-alone",
        module="topic_configs",
        category=Category.MANY,
        sentence="A broker without retention of its own never looks for files that a topic does not keep.",
        breaks="Kafka's LogManager looks at each log by that log's own settings",
        edits=(("        if key not in core.state.timers:\n", "        if key in core.state.timers:\n"),),
    ),
    Mutant(
        name="settings-change-no-log",
        module="topic_configs",
        category=Category.VISIBLE,
        sentence="The logs that are open begin their files as before.",
        breaks="Kafka's TopicConfigHandler.updateLogConfig",
        edits=(
            (
                "        if before.get(replica.tp.topic) != found.get(replica.tp.topic):\n",
                "        if before.get(replica.tp.topic) == found.get(replica.tp.topic):\n",
            ),
        ),
    ),
)
