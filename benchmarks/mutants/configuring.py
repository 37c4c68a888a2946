"""Mutants of what topics have of their own: altered, read, taken up, and held against the topic."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

# Why no search finds a mutant of what clients alter.
_NOT_HEEDED: Final = "the client that alters settings heeds no answer, and no rule knows what topics should have"

MUTANTS: Final = (
    # --- altered -----------------------------------------------------------------------------------------------
    Mutant(
        name="settings-over-newer-ones",
        module="topic_configs",
        category=Category.COMMAND,
        sentence="Of two changes at once the second writes what it made of its first reading, without the other.",
        breaks="KIP-339: what an incremental change does not name stays",
        edits=(("        known = node.version\n", "        known = _ANY\n"),),
        unreachable=_NOT_HEEDED,
    ),
    Mutant(
        name="second-change-refused",
        module="altering",
        category=Category.COMMAND,
        sentence="Of two changes at once the second is refused, as its topic's settings were written meanwhile.",
        breaks="Kafka's ZkAdminManager, which refuses no change for one that came before",
        edits=(("if result in MEANWHILE and not continuation.again:", "if False:"),),
        unreachable=_NOT_HEEDED,
    ),
    Mutant(
        name="change-read-again-and-again",
        module="altering",
        category=Category.MANY,
        sentence="A change is read again for as long as others are written before it, and is not answered.",
        breaks="each retry has a limit; a client waits for an answer",
        edits=(("if result in MEANWHILE and not continuation.again:", "if result in MEANWHILE:"),),
        unreachable="no client alters a topic so often that each write comes before that of another change",
    ),
    Mutant(
        name="change-of-the-next-topic",
        module="altering",
        category=Category.COMMAND,
        sentence="What was to be altered of a topic that is deleted meanwhile is read once more, of the next one.",
        breaks="KIP-516: a topic is another one than its predecessor of that name",
        edits=(("(made.if_same(next(nodes), czxid), next(nodes))", "(next(nodes), next(nodes))"),),
        unreachable=_NOT_HEEDED,
    ),
    # --- read and taken up -------------------------------------------------------------------------------------
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
    Mutant(
        name="epochs-outlive-their-format",
        module="leader",
        category=Category.PROTOCOL,
        sentence="A topic that goes down to a message format without epochs keeps those that were known.",
        breaks="KAFKA-7897: in an older message format a log has no epoch cache",
        edits=(
            (
                "not keeps_epochs(core, replica.tp.topic) and replica.epochs.clear()",
                "not replica.log.end_offset and replica.epochs.clear()",
            ),
        ),
    ),
    Mutant(
        name="format-of-the-broker-alone",
        module="leader",
        category=Category.PROTOCOL,
        sentence="A leader appends in the message format of its broker, whatever the topic's is.",
        breaks="KIP-32, KIP-101 Compatibility: a topic's message.format.version; Kafka's Log.append",
        edits=(
            (
                "    message_format = core.config_of(replica.tp.topic).message_format\n",
                "    message_format = core.config.message_format\n",
            ),
        ),
    ),
    Mutant(
        name="epochs-by-the-brokers-format",
        module="leader",
        category=Category.PROTOCOL,
        sentence="Whether a batch has an epoch is decided by the format of the broker, not of the topic.",
        breaks="KIP-101, step 3; Kafka's Log.initializeLeaderEpochCache",
        edits=(
            (
                "core.rules.epochs and core.config_of(topic).message_format >= WITH_EPOCHS",
                "core.rules.epochs and core.config.message_format >= WITH_EPOCHS",
            ),
        ),
    ),
)
