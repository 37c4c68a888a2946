"""
Every single change of a run's history, and whether the rules notice it: `python -m tests.checkers.sweep RUN…`.

An op is dropped, doubled or swapped with the next one of its process; each scalar of its value is changed by one,
to another word, node, boolean or null; each list loses an item or has one twice. Indexes follow the change, so
that a rule must notice what happened, not a gap in the numbers. A change is noticed if the findings differ.
"""

from __future__ import annotations

import copy
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from checkers.judge import check_in_process
from harness.model import HistoryError, Op
from tests.checkers.plants.edit import Edit, Line

# Clean runs: of our broker on real processes, of the simulator, and of Apache Kafka, whose brokers report nothing.
CLEAN: Final = ("local-kip101-1", "sim-clean", "kafka-kip101-1")

Group: TypeAlias = tuple[str, str, str, str]

_REPEAT = "says how the run was made, so that it can be repeated; what it did is judged by what was recorded"
_COUNT = "counts for the report's summary; no finding follows from it"
_RACE = "two ops of one client or part of the harness at about the same time; nothing depends on which was first"
_BYTES = "where in its file a batch lies, and how it is stored; its records and offsets are judged"
_PID = "the operating system's number of a process"
_PROBE = "the evidence in words, for a reader; that a probe is there is checked"
_TELLS = "narration for a reader: no rule reads the schedule or the text of steps"
_KEPT = "this run keeps its promises under either setting"
_READY = "the broker read ZooKeeper; what it does next is reported by itself"
_SEEN_ONCE = "a sight of a link, which may be missed or repeated; what the replica then did is judged by its log"

# (source, f, key, sort of change) -> why the change proves nothing; "*" stands for any.
HARMLESS: Final[dict[Group, str]] = {
    ("runner", "setup", "scenario", "other text"): _REPEAT,
    ("runner", "setup", "protocol", "other text"): "Apache Kafka's brokers do not say which protocol they run",
    ("runner", "setup", "changes", "null"): _REPEAT,
    ("runner", "setup", "host", "other text"): _REPEAT,
    ("runner", "setup", "target", "other text"): _REPEAT,
    ("runner", "setup", "seed", "*"): _REPEAT,
    ("runner", "setup", "random", "*"): _REPEAT,
    ("runner", "setup", "again", "*"): _REPEAT,
    ("runner", "setup", "schedule", "*"): _TELLS,
    ("runner", "setup", "min_isr", "*"): _KEPT,
    ("runner", "setup", "unclean", "flip"): _KEPT,
    ("runner", "setup", "replicas", "longer"): "a replica is named twice; it is one replica all the same",
    ("runner", "setup", "records", "shorter"): _TELLS,
    ("runner", "setup", "records", "longer"): _TELLS,
    ("runner", "setup", "message_format", "null"): "older histories have none",
    ("runner", "setup", "sends_once", "*"): _REPEAT,
    ("runner", "setup", "nodes", "*"): "a broker of Apache Kafka that holds no replica names its id to nobody",
    ("runner", "setup", "records", "other text"): "a record that was not sent in this run",
    ("runner", "step", "line", "*"): _TELLS,
    ("runner", "step", "text", "other text"): _TELLS,
    ("runner", "step", "", "drop"): _TELLS,
    ("runner", "step", "", "double"): _TELLS,
    ("runner", "step", "narrative", "other text"): "a comment in the schedule's file",
    ("runner", "step", "skipped", "other text"): "why a step was skipped, in words",
    ("runner", "step", "", "swap"): _RACE,
    ("client", "produce", "", "swap"): _RACE,
    ("nemesis", "*", "probe", "other text"): _PROBE,
    ("simulator", "world", "*", "*"): _COUNT,
    ("simulator", "world", "", "*"): _COUNT,
    ("fabric", "cut", "close", "flip"): "whether a cut also resets connections; what is lost is the same",
    ("fabric", "dropped", "*", "*"): "a held frame that its sender never got an answer to; the hold is judged",
    ("fabric", "held", "*", "*"): _SEEN_ONCE,
    ("fabric", "lost", "", "*"): _SEEN_ONCE,
    ("fabric", "fetch", "", "*"): _SEEN_ONCE,
    ("fabric", "fetched", "", "*"): _SEEN_ONCE,
    ("fabric", "epoch-question", "", "*"): _SEEN_ONCE,
    ("fabric", "epoch-question", "version", "*"): "the version of a request; its content is what counts",
    ("fabric", "epoch-answer", "", "*"): _SEEN_ONCE,
    ("fabric", "heal", "", "swap"): _RACE,
    ("fabric", "release", "", "swap"): _RACE,
    ("broker", "started", "pid", "*"): _PID,
    ("broker", "ready", "", "*"): _READY,
    ("broker", "registered", "czxid", "null"): "older histories have none",
    ("broker", "elected", "saw", "null"): "older histories have none",
    ("broker", "follower", "kept", "null"): "older histories have none",
    ("broker", "leader", "resumed", "null"): "older histories have none",
    ("broker", "printed", "*", "*"): "a line that Apache Kafka printed, for a reader; the log itself is judged",
    ("log", "batch", "position", "*"): _BYTES,
    ("log", "batch", "segment", "*"): _BYTES,
    ("log", "batch", "magic", "less"): _BYTES,
    ("log", "snapshot", "log_start_offset", "more"): "retention or DeleteRecords may have moved it",
    ("fabric", "hold", "", "swap"): _RACE,
    ("nemesis", "*", "", "swap"): _RACE,
    ("log", "snapshot", "", "double"): "a snapshot that was begun anew; its last reading counts",
}

_LEADERSHIP = "leadership, ISR and controller: to be judged by the rules about them"
_WATERMARK = "high watermarks: to be judged by the rule about them"
_LOGS = "final logs, reads and checkpoints: to be judged by the rules about them"
_FABRIC = "what the fabric saw, against what brokers reported: no rule compares them yet"
_STORY = "no rule can tell yet that a broker's story lacks it"

# Changes that a careful engineer would care about, and that no rule notices yet -> which rule should.
OPEN: Final[dict[Group, str]] = {
    ("broker", "controller", "*", "*"): _LEADERSHIP,
    ("broker", "elected", "*", "*"): _LEADERSHIP,
    ("broker", "isr", "*", "*"): _LEADERSHIP,
    ("broker", "leader", "*", "*"): _LEADERSHIP,
    ("broker", "follower", "*", "*"): _LEADERSHIP,
    ("broker", "fenced", "*", "*"): _LEADERSHIP,
    ("zookeeper", "leaderAndISR", "*", "*"): _LEADERSHIP,
    ("zookeeper", "controller", "*", "*"): _LEADERSHIP,
    ("zookeeper", "registered", "*", "*"): _LEADERSHIP,
    ("fabric", "commanded", "*", "*"): _LEADERSHIP,
    ("broker", "high-watermark", "*", "*"): _WATERMARK,
    ("log", "snapshot", "high_watermark", "*"): _WATERMARK,
    ("log", "batch", "*", "*"): _LOGS,
    ("broker", "checkpoint", "*", "*"): _LOGS,
    ("fabric", "epoch-answer", "*", "*"): _FABRIC,
    ("fabric", "epoch-question", "*", "*"): _FABRIC,
    ("fabric", "fetch", "*", "*"): _FABRIC,
    ("fabric", "fetched", "*", "*"): _FABRIC,
    ("broker", "append", "*", "*"): _STORY,
    ("broker", "append", "", "*"): _STORY,
    ("broker", "flush", "*", "*"): _STORY,
    ("broker", "flush", "", "*"): _STORY,
    ("runner", "setup", "rules", "other text"): "a rule's value that no release has; rules read a few of them",
    ("broker", "recovered", "*", "*"): _STORY,
    ("broker", "registered", "*", "*"): _STORY,
    ("broker", "started", "", "*"): _STORY,
    ("broker", "truncate", "*", "*"): _STORY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """
    One change of a history.

    Attributes:
        group: source, f, key of the value ("" for the whole op) and sort of change.
        text: the change in words.
        lines: the changed history; an op stands for a line of it that is as it was.
    """

    group: Group
    text: str
    lines: Sequence[Line | Op]

    @property
    def ops(self) -> list[Op]:
        """The changed history, numbered again; an op that cannot be written raises HistoryError."""
        return [_op(line, index) for index, line in enumerate(self.lines)]


def _op(line: Line | Op, index: int) -> Op:
    if isinstance(line, Op):
        return line if line.index == index else replace(line, index=index)
    return Op.from_json(json.dumps({**line, "index": index}))


def changes(run: str) -> Iterator[Change]:
    """Yield every single change of a run, always in the same order."""
    edit = Edit(run)
    lines, ops = edit.lines, edit.ops
    nodes = sorted(lines[0]["value"]["nodes"])
    ids = lines[0]["value"]["nodes"]
    for place, line in enumerate(lines):
        source, f = line["source"], "*" if line["source"] == "nemesis" else line["f"]
        what = f"line {place}: {source} {line['f']} {line['type']}"
        before, behind = ops[:place], ops[place + 1 :]
        yield Change(group=(source, f, "", "drop"), text=f"{what} dropped", lines=[*before, *behind])
        yield Change(group=(source, f, "", "double"), text=f"{what} doubled", lines=[*before, line, line, *behind])
        after = next((n for n in range(place + 1, len(lines)) if lines[n]["process"] == line["process"]), None)
        if after is not None and line["value"] != lines[after]["value"]:
            yield Change(
                group=(source, f, "", "swap"), text=f"{what} after line {after}", lines=_swap(lines, place, after)
            )
        for path, sort, item in _altered(line["value"], (), nodes, ids):
            key = str(path[0])
            changed = copy.deepcopy(line)
            _set(changed["value"], path, item)
            yield Change(
                group=(source, f, key, sort),
                text=f"{what}: {'.'.join(map(str, path))} = {item!r:.60}",
                lines=[*ops[:place], changed, *ops[place + 1 :]],
            )


def unnoticed(run: str) -> tuple[int, list[Change]]:
    """Return how many changes a run has, and those after which the rules find what they found before."""
    before = _findings(Edit(run).ops)
    total, found = 0, []
    for change in changes(run):
        total += 1
        try:
            noticed = _findings(change.ops) != before
        except HistoryError:
            noticed = True  # no reader takes such a line for an op
        if not noticed:
            found.append(change)
    return total, found


def reason(group: Group) -> str | None:
    """Return why a change of that group is harmless, or which rule should notice it; None if nothing says so."""
    table = HARMLESS | {key: f"OPEN: {why}" for key, why in OPEN.items() if key not in HARMLESS}
    return next((why for key, why in table.items() if covers(key, group)), None)


def covers(key: Group, group: Group) -> bool:
    """Whether an entry of HARMLESS is about a group."""
    return all(mine in ("*", theirs) for mine, theirs in zip(key, group, strict=True))


def _findings(ops: Sequence[Op]) -> Counter[str]:
    return Counter(found.kind.value for found in check_in_process(ops))


def _swap(lines: Sequence[Line], one: int, other: int) -> list[Line | Op]:
    """Return the lines with two of them in each other's place, each with the time of that place."""
    swapped: list[Line | Op] = [*lines]
    swapped[one] = {**lines[other], "time_ns": lines[one]["time_ns"]}
    swapped[other] = {**lines[one], "time_ns": lines[other]["time_ns"]}
    return swapped


def _set(value: Any, path: Sequence[Any], item: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = item


def _altered(
    value: Any, path: tuple[Any, ...], nodes: Sequence[str], ids: dict[str, int]
) -> Iterator[tuple[tuple[Any, ...], str, Any]]:
    """Yield (path, sort of change, new item) for each part of a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _altered(item, (*path, key), nodes, ids)
    elif isinstance(value, list):
        if value:
            yield path, "shorter", value[:-1]
            yield path, "longer", [*value, value[-1]]
            # The ends of a long list stand for its middle.
            for n in sorted({0, len(value) - 1}):
                yield from _altered(value[n], (*path, n), nodes, ids)
    else:
        for sort, item in _other(value, nodes, ids):
            yield path, sort, item
    if path and value is not None:
        yield path, "null", None


def _other(value: Any, nodes: Sequence[str], ids: dict[str, int]) -> Iterator[tuple[str, Any]]:
    match value:
        case bool():
            yield "flip", not value
        case int() | float():
            yield "more", value + 1
            yield "less", value - 1
            if value in ids.values():
                yield "other node", next(each for each in ids.values() if each != value)
        case str() if value in nodes:
            yield "other node", next(node for node in nodes if node != value)
        case str():
            yield "other text", f"{value}x"


def main(runs: Sequence[str]) -> None:
    """Print the groups of changes that go unnoticed in the runs, most first, and what is not named harmless."""
    for run in runs or CLEAN:
        total, missed = unnoticed(run)
        groups = Counter(change.group for change in missed)
        print(f"{run}: {total} changes, {total - len(missed)} noticed, {len(missed)} in {len(groups)} groups not")
        for group, count in groups.most_common():
            example = next(change.text for change in missed if change.group == group)
            print(f"  {count:4} {' '.join(group):50} {reason(group) or '?':50} {example}")


if __name__ == "__main__":
    main(sys.argv[1:])
