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
from typing import Any, Final

from checkers.judge import check_in_process
from harness.model import HistoryError, Op
from tests.checkers.harmless import HARMLESS, Group, covers
from tests.checkers.plants.edit import Edit, Line

# Clean runs: of our broker on real processes, of the simulator, and of Apache Kafka, whose brokers report nothing.
CLEAN: Final = ("local-kip101-1", "sim-clean", "kafka-kip101-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """
    One change of a history.

    Attributes:
        group: run, source, f, key of the value ("" for the whole op) and sort of change.
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
        yield Change(group=(run, source, f, "", "drop"), text=f"{what} dropped", lines=[*before, *behind])
        yield Change(
            group=(run, source, f, "", "double"), text=f"{what} doubled", lines=[*before, line, line, *behind]
        )
        after = next((n for n in range(place + 1, len(lines)) if lines[n]["process"] == line["process"]), None)
        if after is not None and line["value"] != lines[after]["value"]:
            yield Change(
                group=(run, source, f, "", "swap"),
                text=f"{what} after line {after}",
                lines=_swap(lines, place, after),
            )
        for path, sort, item in _altered(line["value"], (), nodes, ids):
            key = str(path[0])
            changed = copy.deepcopy(line)
            _set(changed["value"], path, item)
            yield Change(
                group=(run, source, f, key, sort),
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
    """Return why a change of that group is harmless, None if nothing says so."""
    return next((why for key, why in HARMLESS.items() if covers(key, group)), None)


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
    """Print the groups of changes that go unnoticed in the runs, most first, each with why it is harmless."""
    for run in runs or CLEAN:
        total, missed = unnoticed(run)
        groups = Counter(change.group for change in missed)
        print(f"{run}: {total} changes, {total - len(missed)} noticed, {len(missed)} in {len(groups)} groups not")
        for group, count in groups.most_common():
            example = next(change.text for change in missed if change.group == group)
            print(f"  {count:4} {' '.join(group):50} {reason(group) or '?':50} {example}")


if __name__ == "__main__":
    main(sys.argv[1:])
