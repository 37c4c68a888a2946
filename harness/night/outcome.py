"""`Outcome`: what came of a night, as plain data: the page, the JSON and JUnit's XML are printed from it alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

from harness.model import EXIT_CODES, Verdict
from harness.night.cause import Cause
from harness.night.count import Count, Finding
from harness.night.schedule import LineKey, Role, Unit
from harness.night.state import State
from harness.night.trim import FINDINGS
from harness.report.text import plural
from harness.version import named

VERSION: Final = 1
GOOD, UNKNOWN, BAD = "as expected", "unknown", "not as expected"
# Of a line that is not played, since the machine lacks what it needs.
LEFT_OUT: Final = "left out"
_EXIT: Final = {GOOD: EXIT_CODES["valid"], UNKNOWN: EXIT_CODES["unknown"], BAD: EXIT_CODES["invalid"]}


@dataclass(slots=True, kw_only=True)
class Line:
    """
    All units of one role, host, target and kind of clients.

    Attributes:
        status: GOOD, UNKNOWN, BAD or LEFT_OUT.
        why: why it is not as expected, unknown, or left out.
        used_s: how long it was at work.
        units, ended: how many units there are, and how many of them are over.
        problems: what went wrong -> in how many units.
        notes: what was left out of its runs.
        count: what its runs showed, their findings among it.
    """

    role: str
    name: str
    host: str
    target: str
    status: str = GOOD
    why: str = ""
    used_s: float = 0.0
    units: int = 0
    ended: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    count: Count = field(default_factory=Count)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return found | {"count": self.count.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """
    The findings of one cause.

    Attributes:
        verdict: the gravest of them.
        where: line -> how many.
        findings: (line, finding), those that are kept whole first.
    """

    cause: Cause
    verdict: str
    where: Mapping[str, int]
    findings: Sequence[tuple[str, Finding]]

    @property
    def is_violation(self) -> bool:
        """Whether it is a violation or a hang, and not merely unknown."""
        return Verdict[self.verdict.upper()] >= Verdict.HANG

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        told = [{"line": line, **asdict(finding)} for line, finding in self.findings]
        return {"cause": asdict(self.cause), "verdict": self.verdict, "where": dict(self.where), "findings": told}


@dataclass(slots=True, kw_only=True)
class Outcome:
    """
    What came of a night.

    Attributes:
        about: the first line of its journal.
        ended: when this was told.
        finished: whether the night is over.
        sessions: how many processes played it.
        killed: how many of them ended without a word.
        spent_s: how long it was at work.
        lines: all lines, in the order in which they began.
        groups: the findings by cause, the gravest and most frequent first; those of canaries are not among them.
        removed: folders that were deleted for want of space.
        notes: what else went wrong.
        strict: whether a line that is left out makes the night unknown.
        commits: of the harness, in the order of the sessions.
        builds: versions with their commits, likewise.
    """

    about: Mapping[str, Any]
    ended: str
    finished: bool
    sessions: int
    killed: int
    spent_s: float
    commits: Sequence[str]
    builds: Sequence[str]
    lines: Sequence[Line]
    groups: Sequence[Group]
    removed: Mapping[str, int]
    notes: list[str]
    strict: bool = False

    @property
    def name(self) -> str:
        """The night's name."""
        return str(self.about["night"])

    @property
    def status(self) -> str:
        """
        The gravest status of a line; something that went wrong beside them makes it unknown.

        What is left out counts if the night is strict, or if it leaves nothing that proves something.
        """
        found = {line.status for line in self.lines}
        open_end = bool(self.notes or self.unproven or (self.strict and LEFT_OUT in found))
        return next((status for status in (BAD, UNKNOWN) if status in found), UNKNOWN if open_end else GOOD)

    @property
    def unproven(self) -> str:
        """Why what was played proves nothing, since too much is left out; "" if it does."""
        canaries = self.of(Role.CANARY)
        plays = [line for line in self.lines if line.role != Role.CANARY]
        if all(line.status == LEFT_OUT for line in plays):
            return "nothing but canaries could be played here"
        if canaries and all(line.status == LEFT_OUT for line in canaries):
            return "no canary could be played here, so that silence proves nothing"
        return ""

    @property
    def left_out(self) -> list[tuple[str, list[str]]]:
        """What the machine lacks, each with the lines that are left out for it."""
        return by_reason({(line.role, line.name): line.why for line in self.lines if line.status == LEFT_OUT})

    @property
    def code(self) -> int:
        """The exit code."""
        return _EXIT[self.status]

    def of(self, role: Role) -> list[Line]:
        """Return the lines of a role."""
        return [line for line in self.lines if line.role == role]

    @property
    def violations(self) -> list[Group]:
        """The causes of violations and hangs."""
        return [group for group in self.groups if group.is_violation]

    @property
    def unknowns(self) -> list[Group]:
        """What could not be judged, by its cause."""
        return [group for group in self.groups if not group.is_violation]

    @property
    def not_run(self) -> list[tuple[str, str, int]]:
        """What could not be run: the line, why, and in how many units."""
        return [(line.name, why, units) for line in self.lines for why, units in line.problems.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, as night.json has it."""
        return {
            "version": VERSION,
            "night": self.name,
            "status": self.status,
            "exit_code": self.code,
            "finished": self.finished,
            "started": self.about["started"],
            "ended": self.ended,
            "seed": self.about["seed"],
            "commits": list(self.commits),
            "builds": list(self.builds),
            "asked_s": self.about["seconds"],
            "spent_s": round(self.spent_s, 1),
            "sessions": self.sessions,
            "killed": self.killed,
            "lines": [line.to_dict() for line in self.lines],
            "causes": [group.to_dict() for group in self.groups],
            "known_left_out": self.about["known_left_out"],
            "removed": dict(self.removed),
            "notes": list(self.notes),
            "strict": self.strict,
        }


def outcome_of(state: State, units: Sequence[Unit], *, finished: bool) -> Outcome:
    """Return what has come of a night so far."""
    lines = [_line(list(group), state) for group in _by_line(units)]
    gone = {folder.partition("/")[2] for folder in state.removed if folder.startswith(f"{state.about['night']}/")}
    return Outcome(
        about=state.about,
        ended=datetime.now(UTC).isoformat(timespec="seconds"),
        finished=finished,
        sessions=len(state.sessions),
        killed=max(0, len(state.sessions) - state.interrupted - 1),
        spent_s=state.spent_s,
        commits=tuple(dict.fromkeys(str(session["commit"]) for session in state.sessions)),
        builds=tuple(
            dict.fromkeys(
                named(str(session.get("fencepost", "")), str(session["commit"])) for session in state.sessions
            )
        ),
        lines=lines,
        groups=_groups(lines, gone),
        removed=state.removed,
        notes=list(state.notes),
        strict=state.strict,
    )


def by_reason(left_out: Mapping[LineKey, str]) -> list[tuple[str, list[str]]]:
    """Return each reason with the lines that are left out for it, in their order."""
    found: dict[str, list[str]] = {}
    for key, why in left_out.items():
        found.setdefault(why, []).append(" ".join(key))
    return list(found.items())


def _by_line(units: Sequence[Unit]) -> list[list[Unit]]:
    """Return the units of each line, in the order in which lines begin."""
    found: dict[LineKey, list[Unit]] = {}
    for unit in units:
        found.setdefault(unit.key, []).append(unit)
    return list(found.values())


def _line(units: Sequence[Unit], state: State) -> Line:
    first = units[0]
    line = Line(role=first.role.value, name=first.line, host=first.host, target=first.target, units=len(units))
    for unit in units:
        progress = state.progress(unit.number)
        line.count.merge(progress.count)
        line.used_s += progress.used_s
        line.ended += progress.ended
        if progress.problem:
            line.problems[progress.problem] = line.problems.get(progress.problem, 0) + 1
        line.notes += [note for note in progress.notes if note not in line.notes]
    lack = state.left_out.get(first.key, "") if line.ended < line.units else ""
    if lack and not line.count.runs:
        line.status, line.why = LEFT_OUT, lack
        return line
    if lack:  # an earlier session had what it needs: what is gone is no plan's lack
        line.problems[f"not played to its end: {lack}"] = line.units - line.ended
    line.status, line.why = _canary(line, first) if first.role is Role.CANARY else _status(line)
    return line


def _status(line: Line) -> tuple[str, str]:
    """Return how a line came out, and why it is not as expected."""
    count, violations = line.count, line.count.violations
    if violations:
        return BAD, f"{len(violations)} of {count.runs} runs show a violation"
    if line.problems:
        return UNKNOWN, "; ".join(line.problems)
    if not count.runs:
        return UNKNOWN, "nothing was played" if line.ended else "not played yet"
    if count.verdict is Verdict.UNKNOWN:
        return UNKNOWN, f"{count.verdicts['unknown']} of {count.runs} runs are unknown"
    return GOOD, ""


def _canary(line: Line, first: Unit) -> tuple[str, str]:
    """Return how a canary came out: each of its scenarios, or one of its seeds, must show a violation."""
    shown = [finding for finding in line.count.findings if finding.verdict == Verdict.INVALID.name.lower()]
    wanted = len(first.runs) if first.seeds == len(first.runs) else 1
    if len(shown) >= wanted:
        return GOOD, ""
    if line.problems:
        return UNKNOWN, "; ".join(line.problems)
    if not line.ended:
        return UNKNOWN, "not played yet"
    if line.count.verdicts["unknown"]:
        return (
            UNKNOWN,
            f"{line.count.verdicts['unknown']} of {line.count.runs} runs are unknown, and no other fails",
        )
    return BAD, f"a violation was expected, and none was found in {plural(line.count.runs, 'run')}"


def _groups(lines: Iterable[Line], gone: set[str]) -> list[Group]:
    """Return the findings by cause, but those of canaries."""
    told = [
        (line.name, _present(finding, gone))
        for line in lines
        if line.role != Role.CANARY
        for finding in line.count.findings
    ]
    told.sort(key=lambda each: each[1].cause)
    groups = []
    for cause, group in groupby(told, key=lambda each: each[1].cause):
        findings = sorted(group, key=lambda each: not each[1].folder)
        where: dict[str, int] = {}
        for name, _ in findings:
            where[name] = where.get(name, 0) + 1
        worst = Verdict.merge(Verdict[finding.verdict.upper()] for _, finding in findings)
        groups.append(Group(cause=cause, verdict=worst.name.lower(), where=where, findings=findings))
    return sorted(groups, key=lambda each: (-Verdict[each.verdict.upper()], -len(each.findings), each.cause))


def _present(finding: Finding, gone: set[str]) -> Finding:
    """Return a finding with what is true now: its folder may have been deleted for want of space."""
    if not finding.folder.startswith(FINDINGS) or finding.folder not in gone:
        return finding
    return replace(finding, folder="", kept="deleted for want of space")
