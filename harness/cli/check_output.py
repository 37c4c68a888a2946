"""What `fencepost check` prints: a table by suite, then each run whose verdict is not as stored."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from checkers.judge import Conclusion
from harness.model import Anomaly
from harness.report.text import clean, offset_ranges, plural, shortened
from harness.run.result import Status
from harness.suite.again import Again, Change
from harness.suite.recheck import CheckedSuite

# Of what is printed; --json has all of it.
_RUNS_MAX: Final = 40
_ANOMALIES_MAX: Final = 12
_SENTENCE_CHARACTERS_MAX: Final = 600
_STYLES: Final = {Change.SAME: "green", Change.UNKNOWN: "yellow", Change.DIFFERENT: "bold red"}
_SIGNS: Final = {Change.SAME: "✓", Change.UNKNOWN: "?", Change.DIFFERENT: "✗"}


def print_text(console: Console, suites: Sequence[CheckedSuite], problems: Iterable[str]) -> None:
    """Print the table, what could not be read, and the differences."""
    console.print(_table(suites))
    for problem in problems:
        console.print(Text(f"? {clean(problem)}", _STYLES[Change.UNKNOWN]), soft_wrap=True)
    changed = [each for suite in suites for each in suite.runs if each.change is not Change.SAME]
    for each in changed[:_RUNS_MAX]:
        _print_run(console, each)
    if len(changed) > _RUNS_MAX:
        console.print(f"\n{plural(len(changed) - _RUNS_MAX, 'more run')} not as stored; --json lists all")
    console.print(_totals(suites))


def json_text(suites: Sequence[CheckedSuite], problems: Iterable[str], verdict: str) -> str:
    """Return all of it as one JSON object; docs/check.md has its keys."""
    return json.dumps(
        {
            "verdict": verdict,
            "problems": list(problems),
            "suites": [
                {"path": suite.stored.place, **_counts(suite.runs), "runs": len(suite.runs)} for suite in suites
            ],
            "differences": [
                _raw(each) for suite in suites for each in suite.runs if each.change is not Change.SAME
            ],
        },
        indent=1,
    )


def _counts(runs: Sequence[Again]) -> dict[str, int]:
    statuses = Counter(each.now.status for each in runs)
    changes = Counter(each.change for each in runs)
    return {
        **{status.value.replace(" ", "_"): statuses[status] for status in Status},
        **{change.value: changes[change] for change in Change if change is not Change.UNKNOWN},
        "new": sum(len(each.appeared) for each in runs if each.before),
        "gone": sum(len(each.gone) for each in runs),
    }


def _raw(each: Again) -> dict[str, Any]:
    return {
        "suite": str(each.stored.run.folder).rpartition("/")[0],
        "run": each.stored.run.name,
        "change": each.change.value,
        "expected": each.expected,
        "before": _raw_conclusion(each.before),
        "now": _raw_conclusion(each.now),
        "why": _why(each),
        "new": [anomaly.to_dict() for anomaly in each.appeared],
        "gone": [anomaly.to_dict() for anomaly in each.gone],
    }


def _raw_conclusion(conclusion: Conclusion | None) -> dict[str, str] | None:
    if conclusion is None:
        return None
    return {
        "found": conclusion.found,
        "status": conclusion.status.value,
        "verdict": conclusion.verdict.name.lower(),
        "reason": conclusion.reason,
    }


def _table(suites: Sequence[CheckedSuite]) -> Table:
    table = Table(title=Text("checked again"), title_justify="left", header_style="bold")
    table.add_column("suite", overflow="fold")
    columns = ("runs", *(status.value for status in Status), "as stored", "new", "gone")
    for column in columns:
        table.add_column(column, justify="right")
    names = Counter(suite.stored.folder.path.name for suite in suites)
    for suite in suites:
        counts = _counts(suite.runs)
        path = suite.stored.folder.path
        place: Path | str = suite.stored.uri or path
        statuses = (counts[status.value.replace(" ", "_")] for status in Status)
        numbers = (len(suite.runs), *statuses, counts["same"], counts["new"], counts["gone"])
        name = path.name if names[path.name] == 1 else _shown(place)
        table.add_row(Text(clean(name)), *(f"{number:,}" for number in numbers))
    return table


def _totals(suites: Sequence[CheckedSuite]) -> Text:
    runs = [each for suite in suites for each in suite.runs]
    changes = Counter(each.change for each in runs)
    worst = next((each for each in reversed(Change) if changes[each]), Change.SAME)
    fresh = sum(each.before is None for each in runs)
    words = f"{plural(len(runs), 'run')} in {plural(len(suites), 'suite')}: {changes[Change.SAME]:,} as stored, "
    words += f"{changes[Change.DIFFERENT]:,} not, {changes[Change.UNKNOWN]:,} unknown"
    return Text(words + (f"; {fresh:,} had no verdict before" if fresh else ""), _STYLES[worst])


def _print_run(console: Console, each: Again) -> None:
    title = f"\n{_SIGNS[each.change]} {each.change}: {_shown(each.stored.run.folder)}"
    console.print(Text(clean(title), _STYLES[each.change]), soft_wrap=True)
    lines = [
        f"expected {each.expected}",
        f"before   {_said(each.before)}",
        f"now      {_said(each.now)}",
        *([f"why      {shortened(why, _SENTENCE_CHARACTERS_MAX)}"] if (why := _why(each)) else []),
        *_anomalies("new ", each.appeared),
        *_anomalies("gone", each.gone),
    ]
    for line in lines:
        console.print(Text(f"  {clean(line)}"), soft_wrap=True)


def _said(conclusion: Conclusion | None) -> str:
    if conclusion is None:
        return "no verdict is stored"
    return f"{conclusion.found} ({conclusion.status}, {conclusion.verdict.name.lower()})"


def _why(each: Again) -> str:
    return each.stored.doubt or each.now.reason


def _anomalies(word: str, anomalies: Sequence[Anomaly]) -> Iterable[str]:
    for anomaly in anomalies[:_ANOMALIES_MAX]:
        yield f"{word}     {_about(anomaly)}: {shortened(anomaly.sentence, _SENTENCE_CHARACTERS_MAX)}"
    if len(anomalies) > _ANOMALIES_MAX:
        yield f"{word}     {len(anomalies) - _ANOMALIES_MAX:,} more"


def _about(anomaly: Anomaly) -> str:
    parts = [
        anomaly.kind.value,
        offset_ranges(anomaly.ranges),
        " ".join(anomaly.nodes),
        f"epoch {anomaly.epoch}" if anomaly.epoch is not None else "",
        f"by {anomaly.checker}" if anomaly.checker else "",
    ]
    return " ".join(filter(None, parts))


def _shown(path: Path | str) -> str:
    """Return a path as a reader of the current folder would write it."""
    if isinstance(path, str):
        return path
    here = Path(os.getcwd())
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
