"""The page of a night: one self-contained HTML file, findings first, and the same as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
from markupsafe import Markup

from harness.environment import ENVIRONMENTS
from harness.night.outcome import BAD, GOOD, LEFT_OUT, UNKNOWN
from harness.night.plots import percent_of, shares
from harness.night.tables import VERDICTS
from harness.night.view import NightView
from harness.report.page import environment, write_page
from harness.report.summary_page import Heat
from harness.report.summary_plots import stacked
from harness.report.text import plural

RAN: Final = (
    "runs",
    "verdicts",
    "faults that bit",
    "elections",
    "acknowledged",
    "available",
    "longest gap",
    "time",
)
COMPARED: Final = (
    "night",
    "status",
    "runs",
    "invalid",
    "hang",
    "unknown",
    "causes",
    "available",
    "faults that bit",
    "at work",
)
_HOSTS: Final = {host: f"host-{number}" for number, host in enumerate(ENVIRONMENTS)}
_VERDICTS: Final = {verdict: f"o-{verdict}" for verdict in VERDICTS}
_STATUS: Final = {
    GOOD: ("✓", "as-expected"),
    UNKNOWN: ("?", "unknown"),
    BAD: ("✗", "mismatch"),
    LEFT_OUT: ("–", "left-out"),
}


def write_html(view: NightView, out: Path) -> None:
    """Write the page."""
    hosts, rows = view.faults
    text = (
        environment()
        .get_template("night.html.j2")
        .render(
            view=view,
            outcome=view.outcome,
            statuses=_STATUS,
            heads=RAN,
            compared_heads=COMPARED,
            faults=Heat(heads=hosts, rows=rows),
            hosts={host: _HOSTS[host] for host in hosts},
            verdicts=_VERDICTS,
            findings_plot=_findings(view),
            availability_plot=_availability(view),
            faults_plot=_faults(view),
            plural=plural,
        )
    )
    write_page(text, out)


# --- plots over nights -------------------------------------------------------------------------------------------
def _findings(view: NightView) -> Markup:
    table = view.tables.nights
    rows = [
        (name, {verdict: int(row[verdict]) for verdict in VERDICTS})
        for name, row in zip(view.nights, table.to_dict("records"), strict=True)
    ]
    return stacked(rows, _VERDICTS, f"Runs with a finding of each night, by verdict. {_said(rows)}.")


def _faults(view: NightView) -> Markup:
    rows = [
        (name, {str(row["host"]): int(row["bit"]) for row in mine})
        for name, mine in zip(view.nights, _by_night(view), strict=True)
    ]
    return stacked(rows, _HOSTS, f"Faults that took effect in each night, by host. {_said(rows)}.")


def _availability(view: NightView) -> Markup | None:
    by_night = [
        {str(row["host"]): None if pd.isna(row["share"]) else float(row["share"]) for row in mine}
        for mine in _by_night(view)
    ]
    hosts = {host: [night.get(host) for night in by_night] for host in _HOSTS}
    hosts = {host: values for host, values in hosts.items() if any(value is not None for value in values)}
    if not hosts:
        return None
    said = "; ".join(
        f"{name}: "
        + (", ".join(f"{host} {percent_of(value)}" for host in hosts if (value := night.get(host))) or "none")
        for name, night in zip(view.nights, by_night, strict=True)
    )
    return shares(view.nights, hosts, _HOSTS, f"Availability of each night, by host. {said}.")


def _by_night(view: NightView) -> list[list[dict[str, Any]]]:
    rows = view.tables.hosts.to_dict("records")
    return [[row for row in rows if row["night"] == night] for night in view.tables.nights["night"]]


def _said(rows: Sequence[tuple[str, Mapping[str, int]]]) -> str:
    return "; ".join(
        f"{name}: {', '.join(f'{count:,} {part}' for part, count in parts.items() if count) or 'none'}"
        for name, parts in rows
    )
