"""What the page of a night shows, in words and rows, for HTML and Markdown alike: findings first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from harness.night.count import Finding
from harness.night.outcome import BAD, GOOD, LEFT_OUT, UNKNOWN, Group, Line, Outcome
from harness.night.plots import percent_of
from harness.night.schedule import Role
from harness.night.tables import Night, Tables, causes_of, tables_of
from harness.report.text import plural
from targets import VIRTUAL_HOST

# Findings of one cause that are listed; the others are counted, and in the JSON.
LISTED_MAX: Final = 12
_SHADES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseView:
    """
    One cause of findings.

    Attributes:
        key: the anchor of its section.
        about: how many runs, on which hosts and targets.
        before: whether it was seen in earlier nights, in words.
        shown: the finding that is told whole, with its line.
        more: the others that are listed.
        left: how many are not.
    """

    key: str
    group: Group
    about: str
    is_new: bool
    before: str
    shown: tuple[str, Finding]
    more: Sequence[tuple[str, Finding]]
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NightView:
    """
    A page of a night.

    Attributes:
        odd: what is not as expected, each in one line: (its words, status, the anchor of its section).
        gone: causes of the night before that were not seen in this one.
        faults: hosts, and of each kind of fault its cells on them: (text, note, shade).
        compared: a row for each night: its name and its cells.
    """

    outcome: Outcome
    headline: str
    odd: Sequence[tuple[str, str, str]]
    facts: Sequence[tuple[str, str]]
    causes: Sequence[CauseView]
    unknowns: Sequence[CauseView]
    gone: Sequence[str]
    canaries: Sequence[tuple[Line, str]]
    ran: Sequence[tuple[Line, Sequence[str]]]
    faults: tuple[Sequence[str], Sequence[tuple[str, Sequence[tuple[str, str, int]]]]]
    compared: Sequence[Sequence[str]]
    nights: Sequence[str]
    tables: Tables
    unread: Sequence[str]
    again: str


def view_of(outcome: Outcome, earlier: Sequence[Night], unread: Sequence[str], folder: str) -> NightView:
    """
    Return what the page of a night shows.

    Args:
        outcome: what came of the night.
        earlier: the nights before it, the oldest first, as their JSON has them.
        unread: what of earlier nights cannot be read.
        folder: where the night is, as commands name it.
    """
    nights = [*earlier, outcome.to_dict()]
    tables = tables_of(nights)
    causes = [
        _cause(number, group, earlier, "finding") for number, group in enumerate(outcome.violations, start=1)
    ]
    # What no night has had before is what people look for.
    causes.sort(key=lambda each: not each.is_new)
    return NightView(
        outcome=outcome,
        headline=headline(outcome),
        odd=_odd(outcome, causes),
        facts=_facts(outcome),
        causes=causes,
        unknowns=[_cause(number, group, (), "unknown") for number, group in enumerate(outcome.unknowns, start=1)],
        gone=_gone(outcome, earlier),
        canaries=[(line, _canary(line)) for line in outcome.of(Role.CANARY)],
        ran=[(line, _ran(line)) for line in outcome.lines if line.role != Role.CANARY and line.status != LEFT_OUT],
        faults=_faults(tables, outcome),
        compared=[
            _compared(row, night) for row, night in zip(tables.nights.to_dict("records"), nights, strict=True)
        ],
        nights=[short(str(night["night"])) for night in nights],
        tables=tables,
        unread=unread,
        again=f"fencepost check {folder}",
    )


def headline(outcome: Outcome) -> str:
    """Return how a night came out, as one sentence."""
    runs = sum(line.count.runs for line in outcome.lines if line.role != Role.CANARY)
    parts = []
    if groups := outcome.violations:
        found = sum(len(group.findings) for group in groups)
        parts.append(f"{plural(found, 'run')} of {runs:,} show a violation, of {plural(len(groups), 'cause')}")
    if tame := [line for line in outcome.of(Role.CANARY) if line.status == BAD]:
        parts.append(f"{plural(len(tame), 'canary')} did not fail".replace("canarys", "canaries"))
    if unknown := [line for line in outcome.lines if line.status == UNKNOWN]:
        parts.append(f"{len(unknown)} of {plural(len(outcome.lines), 'line')} unknown or not run")
    if outcome.notes:
        parts.append(plural(len(outcome.notes), "note"))
    left_out = sum(len(names) for _, names in outcome.left_out)
    if not parts:
        played = "every canary that was played" if left_out else "every canary"
        proven = f"all as expected: {plural(runs, 'run')} without a violation, and {played} failed"
        parts.append(outcome.unproven or proven)
    if left_out:
        parts.append(f"{left_out} of {plural(len(outcome.lines), 'line')} left out for what this machine lacks")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}{'.' if outcome.finished else ' – so far; the night is not over.'}"


def short(name: str) -> str:
    """Return a night's name as the moment at which it began, such as 11-25 19:36."""
    if len(name) < 13 or not name[:8].isdigit():
        return name[:12]
    return f"{name[4:6]}-{name[6:8]} {name[9:11]}:{name[11:13]}"


def took(seconds: float) -> str:
    """Return a duration in hours, minutes or seconds."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def _cause(number: int, group: Group, earlier: Sequence[Night], word: str) -> CauseView:
    cause = (group.cause.kind, group.cause.checker, group.cause.text)
    seen = [short(str(night["night"])) for night in earlier if cause in causes_of(night)]
    about = ", ".join(f"{name}: {plural(count, 'run')}" for name, count in group.where.items())
    if not earlier:
        before = ""
    elif seen:
        before = f"seen in {len(seen)} of the last {plural(len(earlier), 'night')}, first {seen[0]}"
    else:
        before = f"not seen in the last {plural(len(earlier), 'night')}"
    more = group.findings[1:]
    return CauseView(
        key=f"{word}-{number}",
        group=group,
        about=about,
        is_new=bool(earlier) and not seen,
        before=before,
        shown=group.findings[0],
        more=more[:LISTED_MAX],
        left=max(0, len(more) - LISTED_MAX),
    )


def _odd(outcome: Outcome, causes: Sequence[CauseView]) -> list[tuple[str, str, str]]:
    odd = [
        (f"{each.group.cause.kind}: {each.group.cause.text or each.group.verdict} ({each.about})", BAD, each.key)
        for each in causes
    ]
    for line in outcome.lines:
        if line.role == Role.CANARY and line.status == BAD:
            odd.append((f"canary {line.name}: {line.why}", BAD, "canaries"))
    for line in outcome.lines:
        if line.status == UNKNOWN:
            anchor = "not-run" if line.problems else "canaries" if line.role == Role.CANARY else "ran"
            odd.append((f"{line.role} {line.name}: {line.why}", UNKNOWN, anchor))
    odd += [(f"{plural(len(names), 'line')}: {why}", LEFT_OUT, "left-out") for why, names in outcome.left_out]
    return odd + [(note, UNKNOWN, "notes") for note in outcome.notes]


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    about = outcome.about
    facts = [
        ("began", f"{about['started'][:16].replace('T', ' ')} UTC"),
        ("asked for", took(about["seconds"])),
        ("at work", took(outcome.spent_s)),
        ("seed", str(about["seed"])),
        ("played by", ", then ".join(outcome.builds)),
    ]
    if outcome.sessions > 1:
        facts.append(("sessions", f"{outcome.sessions}, {outcome.killed} of them killed"))
    known = sum(line.count.runs for line in outcome.of(Role.KNOWN))
    left = f", {about['known_left_out']} left out" if about["known_left_out"] else ""
    facts.append(("failed before, played again", f"{known}{left}"))
    return facts


def _gone(outcome: Outcome, earlier: Sequence[Night]) -> list[str]:
    if not earlier:
        return []
    now = {(each.cause.kind, each.cause.checker, each.cause.text) for each in outcome.violations}
    return [f"{kind}: {text}" for kind, _, text in sorted(causes_of(earlier[-1]) - now)]


def _canary(line: Line) -> str:
    if line.status != GOOD or not line.count.findings:
        return line.why
    shown = [finding for finding in line.count.findings if finding.is_violation]
    return f"seed {shown[0].seed} shows {', '.join(shown[0].kinds)}"


def _ran(line: Line) -> list[str]:
    """Return the cells of a line: runs, verdicts, faults, elections, acknowledged, availability, gap, time."""
    count = line.count
    verdicts = ", ".join(f"{number:,} {name}" for name, number in sorted(count.verdicts.items()))
    share = percent_of(count.available / count.windows) if count.windows else ""
    return [
        f"{count.runs:,}",
        verdicts,
        f"{sum(count.bit.values()):,} of {sum(count.asked.values()):,}",
        f"{count.elections:,}",
        f"{count.acked:,}",
        share,
        f"{count.gap_s:.0f} s" if count.gap_s else "",
        took(line.used_s),
    ]


def _faults(tables: Tables, outcome: Outcome) -> tuple[list[str], list[tuple[str, list[tuple[str, str, int]]]]]:
    """Return the hosts, and of each kind of fault how often it took effect on each."""
    faults = tables.faults[tables.faults["night"] == outcome.name]
    played = [line.host for line in outcome.lines if line.role != Role.CANARY]
    hosts = sorted(dict.fromkeys(played), key=lambda host: host != VIRTUAL_HOST)
    most = {
        host: int(faults[faults["host"] == host]["bit"].max()) for host in hosts if host in set(faults["host"])
    }
    rows = []
    for kind, group in faults.groupby("kind"):
        by_host = {row["host"]: row for row in group.to_dict("records")}
        rows.append((str(kind), [_fault(by_host.get(host), most.get(host, 1)) for host in hosts]))
    return hosts, rows


def _fault(row: Mapping[str, Any] | None, most: int) -> tuple[str, str, int]:
    if row is None or not row["asked"]:
        return "", "", 0
    # By the root, so that one of a thousand is still seen.
    shade = 1 + int((_SHADES - 1) * (row["bit"] / most) ** 0.5) if row["bit"] else 0
    return f"{row['bit']:,}", f"of {row['asked']:,}", min(shade, _SHADES)


def _compared(row: Mapping[str, Any], night: Night) -> list[str]:
    """Return the cells of a night: its runs, its findings, availability, faults, and how it came out."""
    share = row["share"]
    return [
        short(str(row["night"])),
        str(night["status"]),
        f"{int(row['runs']):,}",
        f"{int(row['invalid']):,}",
        f"{int(row['hang']):,}",
        f"{int(row['unknown']):,}",
        str(len(causes_of(night))),
        "" if pd.isna(share) else percent_of(float(share)),
        f"{int(row['bit']):,}",
        took(float(night["spent_s"])),
    ]
