"""From played cells to verdicts: all histories in one Spark session, each cell against its exact expectation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from checkers.verdict import Records, difference, found_text, parse_expectation, records_of, verdict_of
from harness.cell import Played
from harness.cli.beside import Beside
from harness.history import read_history
from harness.model import Anomaly, Op, UsageError, Verdict
from harness.store import write_anomalies
from harness.suite import Cell, Status


def judge(
    spark: Beside, played: Sequence[Played], rerun: Callable[[Played], str]
) -> tuple[list[Cell], dict[str, list[Op]]]:
    """Check every run; give the cells in order, and the histories for the report."""
    found = spark.check([one.run.parquet for one in played])
    cells: list[Cell] = []
    histories: dict[str, list[Op]] = {}
    for one in played:
        ops = read_history(one.run.history)
        anomalies = found.get(one.run.name, [])
        write_anomalies(one.run, anomalies)
        histories[one.run.name] = ops
        cells.append(cell_of(one, ops, anomalies, rerun(one)))
    return cells, histories


def cell_of(one: Played, ops: Sequence[Op], anomalies: Sequence[Anomaly], rerun: str) -> Cell:
    """Hold what was found against what was expected."""
    scenario, expected = one.spec.scenario, one.spec.expectation
    assert expected is not None, "only cells of which their scenario says something are played"
    records = records_of(ops)
    status, reason = compare(expected, anomalies, records)
    return Cell(
        scenario=scenario.name,
        title=scenario.title,
        source="; ".join(scenario.sources),
        protocol=str(one.spec.variant),
        expected=expected,
        found=found_text(anomalies, records),
        status=status,
        reason=reason,
        verdict=verdict_of(anomalies),
        anomalies=tuple(anomalies),
        run=one.run.name,
        rerun=rerun,
        seconds=one.seconds,
    )


def compare(expected: str, anomalies: Sequence[Anomaly], records: Records) -> tuple[Status, str]:
    """
    Say how a cell stands to its expectation, and why when it is not as expected.

    What could not be checked makes a cell unknown, unless a violation that nobody expected was proven: that is
    never masked.
    """
    terms = parse_expectation(expected)
    unknown = [anomaly for anomaly in anomalies if anomaly.verdict is Verdict.UNKNOWN]
    expected_kinds = {term.kind for term in terms}
    violations = [a for a in anomalies if a.verdict is Verdict.INVALID and a.kind not in expected_kinds]
    if unknown and not violations:
        return Status.UNKNOWN, " | ".join(anomaly.sentence for anomaly in unknown)
    try:
        differs = difference(terms, anomalies, records)
    except UsageError as error:
        # The expectation names records that this run never got acknowledged: its promise was not even made.
        return Status.UNKNOWN, str(error)
    return (Status.MISMATCH, differs) if differs else (Status.AS_EXPECTED, "")


def exit_code(cells: Sequence[Cell], codes: Mapping[str, int]) -> int:
    """0 when every cell is exactly as expected, 4 at a mismatch, else 3: a cell is unknown."""
    statuses = {cell.status for cell in cells}
    if Status.MISMATCH in statuses:
        return codes["invalid"]
    return codes["unknown"] if Status.UNKNOWN in statuses or not cells else codes["valid"]
