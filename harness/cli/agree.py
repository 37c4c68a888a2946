"""
`fencepost agree SUITE SUITE`: compare two stored suites, run by run.

The suites may come from two hosts, two commits or two nights. In each run that both have, the anomalies must be
the same at the same offsets, and every replica's log must end with the same records of the same epochs. Records
are drawn from the seed, so the suites must have the same seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from checkers.facts.sequence import breaks_in
from harness.ending import one_line
from harness.events import Batch, Done, LineUnreadable
from harness.history.file import read_history
from harness.model import EXIT_CODES, Anomaly, HistoryError, Op, UsageError, events_of
from harness.report.console import console as make_console
from harness.run.result import RunResult
from harness.run.store import Run
from harness.run.suite import Suite
from harness.suite.described import suite_in

# Node -> the records in its final log: offset, leader epoch, value.
Lineage: TypeAlias = dict[str, list[tuple[int, int, str]]]
# An anomaly without its sentence, which contains times.
Finding: TypeAlias = tuple[str, tuple[tuple[int, int], ...], tuple[str, ...], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """
    The end of a run: its anomalies, and the records of every log.

    Attributes:
        unread: why the history cannot be compared, "" if it was read whole.
    """

    findings: list[Finding]
    logs: Lineage
    unread: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("suites", metavar="SUITE", nargs=2, type=Path, help="a suite's folder: results/SUITE")


def run(arguments: argparse.Namespace) -> int:
    """
    Print every difference; return 0 if there is none, 4 if there is one.

    Returns 3 if the suites share no run, or if none differs and a history could not be read.
    """
    console = make_console(highlight=False, soft_wrap=True)

    def say(text: str) -> None:
        console.print(text, markup=False)

    described = [suite_in(folder) for folder in arguments.suites]
    pairs = _pairs(arguments.suites, [each.suite for each in described])
    unlike = unread = 0
    for folder, each in zip(arguments.suites, described, strict=True):
        unread += len(each.unread)
        for name, why in each.unread.items():
            say(one_line(f"{folder / name}: not compared: {why}"))
    agreed = 0
    for pair in pairs:
        ends = [_end(folder, cell) for folder, cell in zip(arguments.suites, pair, strict=True)]
        lines = [f"not compared: {end.unread}" for end in ends if end.unread]
        if lines:
            unread += 1
        else:
            lines = differences(*ends)
            unlike, agreed = unlike + bool(lines), agreed + (not lines)
        for line in lines:
            say(one_line(f"{pair[0].scenario} under {pair[0].protocol}: {line}"))
    first, second = (each.suite for each in described)
    alone = len(first.results) + len(second.results) - 2 * len(pairs)
    say(
        f"{len(pairs)} runs in both ({_name(first)}; {_name(second)}): {agreed} agree in "
        f"anomalies and in every record of every log, {unlike} differ; {alone} in one suite only"
        + (f"; {unread} not compared" if unread else "")
    )
    if unlike:
        return EXIT_CODES["invalid"]
    return EXIT_CODES["unknown" if unread or not pairs else "valid"]


def differences(one: End, other: End) -> list[str]:
    """Return a line for each difference between two ends of a run."""
    mine, theirs = set(one.findings), set(other.findings)
    lines = [f"only the first found {_said(finding)}" for finding in one.findings if finding not in theirs]
    lines += [f"only the second found {_said(finding)}" for finding in other.findings if finding not in mine]
    for node in sorted(one.logs.keys() | other.logs.keys()):
        first, second = one.logs.get(node, []), other.logs.get(node, [])
        if first != second:
            at = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
            at = min(len(first), len(second)) if at is None else at
            lines.append(f"log of {node}: {_at(first, at)} in the first, {_at(second, at)} in the second")
    return lines


def findings(anomalies: Sequence[Anomaly]) -> list[Finding]:
    """Return the anomalies without their sentences, which contain times."""
    return sorted((str(a.kind), a.ranges, a.nodes, a.epoch) for a in anomalies)


def lineages(ops: Sequence[Op]) -> Lineage:
    """Return the records of every replica's final log."""
    found: Lineage = {}
    for op, batch in events_of(ops, Batch):
        if batch.store:
            continue
        records = found.setdefault(op.process, [])
        records += [(offset, batch.epoch, str(value)) for offset, _, value in batch.records]
    return found


def _pairs(folders: Sequence[Path], suites: Sequence[Suite]) -> list[tuple[RunResult, RunResult]]:
    """Return the results of the runs that are in both suites; raise UsageError if they have two seeds."""
    first, second = suites
    pairs = [(cell, other) for cell in first.results if (other := second.result(cell.scenario, cell.protocol))]
    # A search has a seed for each run; the results of older suites have none.
    seeds = [(one.seed or first.seed, other.seed or second.seed) for one, other in pairs]
    if any(one != other for one, other in seeds or [(first.seed, second.seed)]):
        raise UsageError(
            f"{folders[0]} has seed {first.seed}, {folders[1]} has {second.seed}; "
            "expected one seed, from which both drew their records; play one again with --seed"
        )
    return pairs


def _end(folder: Path, cell: RunResult) -> End:
    path = Run(path=folder / cell.run).history
    try:
        ops = read_history(path)
    except OSError as error:
        return End(findings=[], logs={}, unread=f"{path}: {error.strerror}; expected a run's history")
    except HistoryError as error:
        return End(findings=[], logs={}, unread=str(error))
    if why := _not_whole(ops):
        return End(findings=[], logs={}, unread=f"{path}: {why}; expected a run's whole history")
    return End(findings=findings(cell.anomalies), logs=lineages(ops))


def _not_whole(ops: Sequence[Op]) -> str:
    """Return why a history does not tell how its run ended, "" if it does: the logs are read at the end."""
    if not ops:
        return "no line"
    if broken := next((event.error for _, event in events_of(ops, LineUnreadable)), ""):
        return broken
    if broken := next((each.sentence for each in breaks_in(ops)), ""):
        return broken.removesuffix(".")
    return "" if any(events_of(ops, Done)) else f"no end after {len(ops)} lines: it was cut short"


def _name(suite: Suite) -> str:
    return f"{suite.target} on {suite.host}, {suite.started}"


def _said(finding: Finding) -> str:
    kind, ranges, nodes, epoch = finding
    offsets = " ".join(f"{first}-{end - 1}" for first, end in ranges)
    return " ".join(filter(None, (kind, offsets, *nodes, f"(epoch {epoch})" if epoch is not None else "")))


def _at(records: Sequence[tuple[int, int, str]], at: int) -> str:
    if at >= len(records):
        return "no more record"
    offset, epoch, value = records[at]
    return f"offset {offset}, epoch {epoch}, {value}"
