"""
The page of a summary: one self-contained HTML file with plots for people, and the same numbers as tables.

Styles and drawings are in the file; there is no script. Colours repeat what words say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup

from harness.report.limits import DRAWN_RUNS_MAX
from harness.report.page import environment, keys_of, write_page
from harness.report.summary_plots import Distribution, distributions, pairs, stacked
from harness.report.summary_table import OUTCOMES, TITLES, columns_of, kept, records_of, share_of
from harness.report.text import plural
from harness.run.result import Status
from harness.version import build

Frames = Mapping[str, pd.DataFrame]
Row = Mapping[str, Any]

_OUTCOME_CSS: Final = {outcome: f"o-{outcome}" for outcome in OUTCOMES}
_STATUS_CSS: Final = {
    "as expected": "o-valid",
    "unknown": "o-unknown",
    "mismatch": "o-invalid",
    "unreadable": "o-unreadable",
}
# Shades of a heat table, from none to most.
_SHADES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """A table whose cells are shaded: what its columns are, and of each row its name and (text, note, shade)."""

    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[str, str, int]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A run on the page, and its section in its suite's report; "" if there is no report."""

    run: Row
    href: str


def build_summary(frames: Frames, out: Path) -> Path:
    """
    Write the page and return its path.

    Args:
        frames: of checkers.spark.aggregates.aggregates.
        out: the path of the page; links lead from its folder.
    """
    totals = records_of(frames["totals"])[0]
    clocks = sorted({*frames["nights"]["clock"]})
    text = (
        environment()
        .get_template("summary.html.j2")
        .render(
            headline=headline(totals),
            build=build(),
            totals=totals,
            plural=plural,
            outcomes=_OUTCOME_CSS,
            statuses=_STATUS_CSS,
            verdicts=_verdicts(frames),
            expected=_expected(frames),
            anomalies=_anomalies(frames),
            faults=_faults(frames),
            latencies=[(clock, _latencies(frames, clock)) for clock in clocks],
            availability=[(clock, _availability(frames, clock)) for clock in clocks],
            tables=[(TITLES[name][0], *_table(frames, name, len(clocks))) for name in TITLES],
            suites=_suites(frames, out.parent),
        )
    )
    return write_page(text, out)


def headline(totals: Row) -> str:
    """Return what a summary is of, and how it came out, as one sentence."""
    of = ", ".join(plural(totals[f"{noun}s"], noun) for noun in ("run", "suite", "night"))
    counts = ", ".join(f"{totals[outcome]:,} {outcome}" for outcome in OUTCOMES if totals[outcome])
    odd = [
        f"{totals[f'status_{status.name.lower()}']:,} {status.value}"
        for status in (Status.MISMATCH, Status.UNKNOWN)
        if totals[f"status_{status.name.lower()}"]
    ]
    as_expected = f"not as expected: {', '.join(odd)}" if odd else "all that can be read is as expected"
    return f"{of}: {counts or 'none'}; {as_expected}."


# --- plots -------------------------------------------------------------------------------------------------------
def _by_night(frames: Frames) -> list[tuple[str, list[dict[str, Any]]]]:
    rows = sorted(records_of(frames["nights"]), key=itemgetter("value"))
    return [(night, list(group)) for night, group in groupby(rows, key=itemgetter("value"))]


def _verdicts(frames: Frames) -> Markup:
    rows = [
        (night, {outcome: int(sum(row[outcome] for row in group)) for outcome in OUTCOMES})
        for night, group in _by_night(frames)
    ]
    said = "; ".join(f"{night}: {_counts(parts)}" for night, parts in rows)
    return stacked(rows, _OUTCOME_CSS, f"Runs of each night by verdict. {said}.")


def _expected(frames: Frames) -> Markup:
    rows = []
    for night, group in _by_night(frames):
        parts = {
            status.value: int(sum(row[f"status_{status.name.lower()}"] for row in group)) for status in Status
        }
        rows.append((night, parts | {"unreadable": int(sum(row["unreadable"] for row in group))}))
    said = "; ".join(f"{night}: {_counts(parts)}" for night, parts in rows)
    return stacked(rows, _STATUS_CSS, f"Runs of each night by comparison with their expectation. {said}.")


def _counts(parts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {part}" for part, count in parts.items() if count) or "none"


def _faults(frames: Frames) -> Markup:
    rows = [(row["kind"], int(row["asked"]), int(row["bit"])) for row in records_of(frames["faults"])]
    said = "; ".join(f"{kind}: {bit:,} of {asked:,}" for kind, asked, bit in rows)
    return pairs(rows, f"Faults that took effect, of those that were asked. {said}.")


def _latencies(frames: Frames, clock: str) -> Markup | None:
    buckets = [
        row
        for row in records_of(frames["latencies"])
        if row["clock"] == clock and row["outcome"] == "ok" and row["acks"] != 0
    ]
    marks = {row["value"]: row for row in records_of(frames["protocols"]) if row["clock"] == clock}
    rows = [
        Distribution(
            name=family,
            counts=[(row["from_ns"], row["to_ns"], row["count"]) for row in group],
            marks={name: marks[family][f"{name}_ms"] * 1e6 for name in ("p50", "p99", "max")},
        )
        for family, group in groupby(buckets, key=itemgetter("family"))
    ]
    said = "; ".join(
        f"{row.name}: p50 {row.marks['p50'] / 1e6:g} ms, p99 {row.marks['p99'] / 1e6:g} ms" for row in rows
    )
    return (
        distributions(rows, f"Latencies of acknowledged produces by protocol, {clock} time. {said}.")
        if rows
        else None
    )


# --- shaded tables -----------------------------------------------------------------------------------------------
def _anomalies(frames: Frames) -> Heat:
    """Return kinds by protocols: how many anomalies, and in how many runs."""
    rows = records_of(frames["anomalies"])
    heads = sorted({row["family"] for row in rows})
    most = max((row["anomalies"] for row in rows), default=1)
    by_kind = {
        f"{kind} ({verdict})": {row["family"]: row for row in group}
        for (kind, verdict), group in groupby(rows, key=itemgetter("kind", "verdict"))
    }
    return Heat(
        heads=heads,
        rows=[(kind, [_anomaly_cell(cells.get(h), most) for h in heads]) for kind, cells in by_kind.items()],
    )


def _anomaly_cell(row: Row | None, most: int) -> tuple[str, str, int]:
    if row is None:
        return "", "", 0
    # By the root, so that one of a thousand is still seen.
    shade = 1 + int((_SHADES - 1) * (row["anomalies"] / most) ** 0.5)
    return f"{row['anomalies']:,}", f"in {plural(row['runs'], 'run')}", min(shade, _SHADES)


def _availability(frames: Frames, clock: str) -> Heat:
    """Return protocols by nights: the share of windows, and the longest stretch without an acknowledgement."""
    rows = [row for row in records_of(frames["availability"]) if row["clock"] == clock]
    heads = sorted({str(row["night"]) for row in rows})
    by_family = {
        family: {str(row["night"]): row for row in group}
        for family, group in groupby(rows, key=itemgetter("family"))
    }
    return Heat(
        heads=heads,
        rows=[(family, [_available_cell(cells.get(h)) for h in heads]) for family, cells in by_family.items()],
    )


def _available_cell(row: Row | None) -> tuple[str, str, int]:
    if row is None or row["available_share"] is None:
        return "", "nothing was tried" if row else "", 0
    lost = 1 - row["available_share"]
    shade = 0 if not lost else min(_SHADES, 1 + int(_SHADES * lost))
    gap = f"{row['unavailable_s']:g} s, around {row['around'] or 'no fault'}" if row["unavailable_s"] else ""
    return share_of(row), gap, shade


# --- tables and links --------------------------------------------------------------------------------------------
def _table(frames: Frames, name: str, clocks: int) -> tuple[list[tuple[str, bool]], list[list[str]]]:
    rows = records_of(frames[name])
    columns = kept(columns_of(name, clocks), rows)
    heads = [(column.head, column.number) for column in columns]
    return heads, [[column.text(row) for column in columns] for row in rows]


def _suites(frames: Frames, base: Path) -> list[tuple[Row, str, list[Link]]]:
    """Return each suite with its report, "" for none, and its runs with their sections in it."""
    links = sorted(records_of(frames["links"]), key=lambda row: (str(Path(row["path"]).parent), row["place"]))
    by_folder = {folder: list(runs) for folder, runs in groupby(links, key=lambda row: Path(row["path"]).parent)}
    found: list[tuple[Row, str, list[Link]]] = []
    for folder, runs in by_folder.items():
        report = folder / "report.html"
        href = quote(os.path.relpath(report, base.resolve())) if report.is_file() else ""
        about = {
            "suite": folder.name,
            "night": runs[0]["night"],
            "runs": len(runs),
            "odd": sum(r["odd"] for r in runs),
        }
        found.append((about, href, _links(runs, href)))
    return found


def _links(runs: Sequence[Row], href: str) -> list[Link]:
    keys = keys_of((run["workload"], run["protocol"]) for run in runs)
    # Of very many runs, a report has a section for those alone that are not as expected.
    drawn = [len(runs) <= DRAWN_RUNS_MAX or run["status"] != Status.AS_EXPECTED for run in runs]
    return [
        Link(run=run, href=f"{href}#{key}" if href and there else href)
        for run, key, there in zip(runs, keys, drawn, strict=True)
    ]
