"""The page of a night as Markdown, for a terminal, a chat or the summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.night.count import Finding
from harness.night.page import COMPARED, RAN
from harness.night.view import CauseView, NightView
from harness.report.text import clean, plural


def markdown_of(view: NightView) -> str:
    """Return the page."""
    outcome = view.outcome
    parts = [f"# Night of {outcome.about['started'][:10]}: {outcome.status}", view.headline]
    if view.odd:
        parts.append("\n".join(f"- **{status}**: {_line(text)}" for text, status, _ in view.odd))
    parts.append("\n".join(f"- {name}: {_line(text)}" for name, text in view.facts))
    parts.append("## Findings, by cause")
    parts += [_cause(each) for each in view.causes] or ["None: no run of this night shows a violation or a hang."]
    if view.gone:
        parts += [
            "Seen in the night before, and not in this one:",
            "\n".join(f"- {_line(text)}" for text in view.gone),
        ]
    parts.append("## Canaries")
    rows = [(line.name, line.status, str(line.count.runs), shown) for line, shown in view.canaries]
    parts.append(
        _table(("canary", "came out", "runs", "what it showed"), rows) if rows else "The plan has none here."
    )
    parts.append("## What could not be run, and why")
    not_run = [(name, str(units), why) for name, why, units in outcome.not_run]
    parts.append(_table(("what", "units", "why"), not_run) if not_run else "Nothing.")
    left_out = [(name, why) for why, names in outcome.left_out for name in names]
    parts.append("## Left out, since this machine lacks what it needs")
    parts.append(_table(("what", "what is missing"), left_out) if left_out else "Nothing: it has all.")
    if view.unknowns:
        parts += ["## Runs that nobody could judge", *(_cause(each) for each in view.unknowns)]
    ran = [(f"{line.role} {line.name}", line.status, *cells) for line, cells in view.ran]
    parts += ["## What ran", _table(("what", "came out", *RAN), ran)]
    hosts, faults = view.faults
    bit = [(kind, *(f"{text} {note}".strip() for text, note, _ in cells)) for kind, cells in faults]
    parts += ["## What bit, how often, on which host", _table(("fault", *hosts), bit) if bit else "Nothing."]
    parts += ["## Compared with the last nights", _table(COMPARED, view.compared)]
    if outcome.notes:
        parts += ["## Notes", "\n".join(f"- {_line(note)}" for note in outcome.notes)]
    return "\n\n".join(parts) + "\n"


def _cause(each: CauseView) -> str:
    group, (line, finding) = each.group, each.shown
    new = " (new)" if each.is_new else ""
    checker = group.cause.checker or "the harness"
    parts = [
        f"### {group.cause.kind}: {_line(group.cause.text) or group.verdict}{new}",
        f"{group.verdict}, proved by {checker}; {each.about}{f'; {each.before}' if each.before else ''}.",
        f"    {_line(finding.again)}",
        f"Seed {finding.seed}, {line}; {_place(finding)}.",
        "\n".join(f"- {_line(sentence)}" for sentence in finding.sentences),
    ]
    if each.more:
        seeds = ", ".join(str(other.seed) for _, other in each.more)
        left = f" and {each.left} more" if each.left else ""
        parts.append(f"{plural(len(each.more) + each.left, 'more run')} of this cause, seeds {seeds}{left}.")
    return "\n\n".join(filter(None, parts))


def _place(finding: Finding) -> str:
    if not finding.folder:
        return f"not kept: {finding.kept}"
    return f"`{finding.folder}`{f' ({_line(finding.kept)})' if finding.kept else ''}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([_line(cell).replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _line(text: str) -> str:
    """Return a text as one line in which nothing is taken for Markdown's own tags."""
    return clean(" ".join(text.split())).replace("<", "&lt;")
