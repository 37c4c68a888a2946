"""Single changes of a history that no rule notices, each with the reason why it proves nothing."""

from __future__ import annotations

from typing import Final, TypeAlias

# A change's run, source, f, key of the value ("" for the whole op) and sort.
Group: TypeAlias = tuple[str, str, str, str, str]

_REPEAT = "says how the run was made, so that it can be repeated; what it did is judged by what was recorded"
_COUNT = "counts for the report's summary; no finding follows from it"
_RACE = "two ops of one client or part of the harness at about the same time; nothing depends on which was first"
_BYTES = "where in its file a batch lies, and how it is stored; its records and offsets are judged"
_PID = "the operating system's number of a process"
_PROBE = "the evidence in words, for a reader; that a probe is there is checked"
_TELLS = "narration for a reader: no rule reads the schedule or the text of steps"
_KEPT = "this run keeps its promises under either setting"
_READY = "the broker read ZooKeeper; what it does next is reported by itself"
_LATE = "on real machines the reports of two processes race by up to half a second, and this run is shorter"
_EITHER = "either order is lawful: neither event is the reason of the other"
_WATCHES = "each object in ZooKeeper has a watch of its own; what one of them sees keeps its order"
_MARKS = "the file of high watermarks, which may be written at any time; what it says in the end is judged"
_SILENT = "brokers of Apache Kafka report nothing that would contradict it"
_REGISTERED = "a registration that no controller decided by; that it is newer than the one before is judged"
_SEEN_ONCE = "a sight of a link, which may be missed or repeated; what the replica then did is judged by its log"

# (run, source, f, key, sort of change) -> why the change proves nothing; "*" stands for any.
HARMLESS: Final[dict[Group, str]] = {
    ("*", "runner", "setup", "scenario", "other text"): _REPEAT,
    (
        "*",
        "runner",
        "setup",
        "protocol",
        "other text",
    ): "Apache Kafka's brokers do not say which protocol they run",
    ("*", "runner", "setup", "changes", "null"): _REPEAT,
    ("*", "runner", "setup", "host", "other text"): _REPEAT,
    ("*", "runner", "setup", "target", "other text"): _REPEAT,
    ("*", "runner", "setup", "seed", "*"): _REPEAT,
    ("*", "runner", "setup", "random", "*"): _REPEAT,
    ("*", "runner", "setup", "again", "*"): _REPEAT,
    ("*", "runner", "setup", "schedule", "*"): _TELLS,
    ("*", "runner", "setup", "min_isr", "*"): _KEPT,
    ("*", "runner", "setup", "unclean", "flip"): _KEPT,
    ("*", "runner", "setup", "replicas", "longer"): "a replica is named twice; it is one replica all the same",
    ("*", "runner", "setup", "records", "shorter"): _TELLS,
    ("*", "runner", "setup", "records", "longer"): _TELLS,
    ("*", "runner", "setup", "message_format", "null"): "older histories have none",
    ("*", "runner", "setup", "sends_once", "*"): _REPEAT,
    (
        "*",
        "runner",
        "setup",
        "nodes",
        "*",
    ): "a broker of Apache Kafka that holds no replica names its id to nobody",
    ("*", "runner", "setup", "records", "other text"): "a record that was not sent in this run",
    ("*", "runner", "step", "line", "*"): _TELLS,
    ("*", "runner", "step", "text", "other text"): _TELLS,
    ("*", "runner", "step", "", "drop"): _TELLS,
    ("*", "runner", "step", "", "double"): _TELLS,
    ("*", "runner", "step", "narrative", "other text"): "a comment in the schedule's file",
    ("*", "runner", "step", "skipped", "other text"): "why a step was skipped, in words",
    ("*", "runner", "step", "", "swap"): _RACE,
    ("*", "nemesis", "*", "probe", "other text"): _PROBE,
    ("*", "simulator", "world", "*", "*"): _COUNT,
    ("*", "simulator", "world", "", "*"): _COUNT,
    ("*", "fabric", "cut", "close", "flip"): "whether a cut also resets connections; what is lost is the same",
    (
        "*",
        "fabric",
        "dropped",
        "*",
        "*",
    ): "a held frame that its sender never got an answer to; the hold is judged",
    ("*", "fabric", "held", "*", "*"): _SEEN_ONCE,
    ("*", "fabric", "lost", "", "*"): _SEEN_ONCE,
    ("*", "fabric", "fetch", "", "*"): _SEEN_ONCE,
    ("*", "fabric", "fetched", "", "*"): _SEEN_ONCE,
    ("*", "fabric", "epoch-question", "", "*"): _SEEN_ONCE,
    ("*", "fabric", "epoch-question", "version", "*"): "the version of a request; its content is what counts",
    ("*", "fabric", "epoch-answer", "", "*"): _SEEN_ONCE,
    ("*", "fabric", "heal", "", "swap"): _RACE,
    ("*", "fabric", "release", "", "swap"): _RACE,
    ("*", "broker", "started", "pid", "*"): _PID,
    ("*", "broker", "ready", "", "*"): _READY,
    ("*", "broker", "member", "incarnation", "null"): "older histories have none",
    ("*", "broker", "elected", "saw", "null"): "older histories have none",
    ("*", "broker", "follower", "kept", "null"): "older histories have none",
    ("*", "broker", "leader", "resumed", "null"): "older histories have none",
    (
        "*",
        "broker",
        "printed",
        "*",
        "*",
    ): "a line that Apache Kafka printed, for a reader; the log itself is judged",
    ("*", "log", "batch", "position", "*"): _BYTES,
    ("*", "log", "batch", "segment", "*"): _BYTES,
    ("*", "fabric", "hold", "", "swap"): _RACE,
    ("*", "nemesis", "*", "", "swap"): _RACE,
    ("*", "log", "snapshot", "", "double"): "a snapshot that was begun anew; its last reading counts",
    ("*", "broker", "append", "", "swap"): _EITHER,
    ("*", "broker", "fenced", "", "swap"): _EITHER,
    ("*", "broker", "follower", "", "swap"): _EITHER,
    ("*", "broker", "high-watermark", "", "swap"): _EITHER,
    ("*", "broker", "leader", "", "swap"): _EITHER,
    ("*", "broker", "member", "", "swap"): _EITHER,
    ("*", "broker", "truncate", "", "swap"): _EITHER,
    ("*", "broker", "isr", "", "swap"): "a follower that has all may join before or after the next append",
    (
        "*",
        "broker",
        "truncate",
        "",
        "drop",
    ): "it removed nothing, and nothing was appended before the next command",
    ("*", "broker", "high-watermark", "", "drop"): "a high watermark may rise in one step as well as in two",
    ("*", "broker", "controller", "epoch", "more"): "a controller that nobody saw may have been in office before",
    ("sim-clean", "broker", "isr", "", "drop"): "its leader was replaced before it had to report it",
    ("sim-clean", "broker", "controller", "", "drop"): "a node that was deposed need not learn of it",
    (
        "sim-clean",
        "broker",
        "elected",
        "",
        "drop",
    ): "the controller was deposed, and may not have learnt that it wrote",
    ("*", "broker", "elected", "saw", "shorter"): "a controller need not have seen every registration yet",
    ("local-kip101-1", "broker", "elected", "saw", "more"): "a killed process may have registered and not said so",
    ("local-kip101-1", "broker", "elected", "saw", "less"): "a killed process may have registered and not said so",
    (
        "sim-clean",
        "broker",
        "fenced",
        "",
        "drop",
    ): "it changes nothing; the command for which the replica waits does",
    ("sim-clean", "broker", "follower", "", "drop"): "a command that did not arrive before the next one",
    ("*", "broker", "flush", "", "drop"): _MARKS,
    ("*", "broker", "flush", "", "double"): _MARKS,
    ("*", "broker", "flush", "", "swap"): _MARKS,
    ("*", "broker", "flush", "length", "*"): _MARKS,
    ("*", "broker", "member", "incarnation", "more"): _REGISTERED,
    ("*", "broker", "member", "incarnation", "less"): _REGISTERED,
    ("*", "broker", "member", "taken_over", "flip"): "an old registration may have ended just before, unseen",
    ("*", "fabric", "learned", "", "*"): "a controller may send a command again, and its answer may be lost",
    ("*", "fabric", "learned", "link", "other node"): "the same command goes to every replica",
    ("*", "fabric", "learned", "epoch", "*"): "the epoch beside it had the same leader and the same ISR",
    ("*", "fabric", "learned", "error", "*"): _SILENT,
    ("*", "fabric", "learned", "leader", "null"): _SILENT,
    ("sim-clean", "fabric", "epoch-answer", "error", "*"): "another refusal; the follower asks again after each",
    (
        "sim-clean",
        "fabric",
        "epoch-question",
        "leader_epoch",
        "less",
    ): "a question that was refused, and cut nothing",
    ("sim-clean", "fabric", "fetch", "link", "other node"): "a held fetch that comes when its sender is elsewhere",
    ("local-kip101-1", "fabric", "fetch", "offset", "*"): _LATE,
    ("kafka-kip101-1", "fabric", "fetch", "offset", "*"): _SILENT,
    ("kafka-kip101-1", "fabric", "fetched", "offset", "*"): _SEEN_ONCE,
    ("*", "log", "snapshot", "high_watermark", "less"): "the checkpoint on disk is older than the high watermark",
    (
        "local-kip101-1",
        "log",
        "snapshot",
        "high_watermark",
        "more",
    ): "the high watermark that it had, just written",
    ("kafka-kip101-1", "log", "snapshot", "high_watermark", "more"): _SILENT,
    ("kafka-kip101-1", "log", "snapshot", "high_watermark", "null"): _SILENT,
    ("kafka-kip101-1", "runner", "setup", "rules", "other text"): "which release was played; no rule reads it",
    ("*", "metadata", "controller", "", "swap"): _WATCHES,
    ("*", "metadata", "state", "", "swap"): _WATCHES,
    ("*", "metadata", "members", "", "swap"): _WATCHES,
    ("sim-clean", "metadata", "controller", "", "drop"): "a moment without a controller, before the next one",
    ("local-kip101-1", "metadata", "state", "", "drop"): "a watch misses a state that is soon replaced",
    (
        "kafka-kip101-1",
        "zookeeper",
        "state",
        "",
        "drop",
    ): "a watch misses what is soon replaced; none reports the last",
    (
        "kafka-kip101-1",
        "zookeeper",
        "state",
        "version",
        "more",
    ): "a watch misses a state, and none tells",
    ("kafka-kip101-1", "metadata", "members", "", "drop"): _SILENT,
    ("kafka-kip101-1", "metadata", "members", "nodes", "shorter"): _SILENT,
}


def covers(key: Group, group: Group) -> bool:
    """Whether an entry of HARMLESS is about a group."""
    return all(mine in ("*", theirs) for mine, theirs in zip(key, group, strict=True))
