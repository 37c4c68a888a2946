"""
The report of a suite: one self-contained HTML file.

The templates escape everything; styles and drawings are in the file; there is no script.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness.model import Op
from harness.report.limits import DRAWN_RUNS_MAX, OUTCOME_CHARS_MAX
from harness.report.run_view import RunView, view_of
from harness.report.text import clean, plural, shortened
from harness.run.result import RunResult, Status
from harness.run.suite import Suite
from harness.scenario.variant import is_mutant
from harness.version import named

STATUS_SIGNS: Final[Mapping[Status, str]] = {
    Status.AS_EXPECTED: "✓",
    Status.UNKNOWN: "?",
    Status.MISMATCH: "✗",
}
_TEMPLATES: Final = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One scenario and the sections of its runs."""

    scenario: str
    title: str
    source: str
    key: str
    views: tuple[RunView, ...]


def build_report(suite: Suite, runs: Mapping[str, Sequence[Op]], out: Path) -> Path:
    """
    Write the suite's report as one self-contained HTML file and return its path.

    The page counts everything that it leaves out. If there are very many runs, only those that are not as expected
    have a section.

    Args:
        suite: the suite.
        runs: the name of a run (RunResult.run) -> its history, in index order. A run that is missing has a section
            without drawings.
        out: the path of the report.
    """
    keys = keys_of((result.scenario, result.protocol) for result in suite.results)
    drawn = _drawn(suite)
    views = [view_of(r, keys[n], runs.get(r.run, ()) if r in drawn else ()) for n, r in enumerate(suite.results)]
    chapters = [
        Chapter(scenario=name, title=own[0].result.title, source=own[0].result.source, key=f"s-{n}", views=own)
        for n, (name, own) in enumerate(_by_scenario(views))
    ]
    by_cell = {(v.result.scenario, v.result.protocol): v for v in views}
    text = (
        environment()
        .get_template("page.html.j2")
        .render(
            suite=suite,
            chapters=chapters,
            by_cell=by_cell,
            drawn={view.key for view in views if view.result in drawn},
            columns=[protocol for protocol in suite.protocols if not is_mutant(protocol)],
            mutants=[view for view in views if is_mutant(view.result.protocol)],
            odd=[v for v in views if v.result.status is not Status.AS_EXPECTED],
            headline=headline(suite),
            facts=_facts(suite, views),
        )
    )
    return write_page(text, out)


def write_page(text: str, out: Path) -> Path:
    """Write a page as a whole, or leave what is there."""
    partial = out.with_suffix(".partial")
    try:
        partial.write_bytes(text.encode("utf-8", errors="replace"))
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return out


def _drawn(suite: Suite) -> Sequence[RunResult]:
    """Return the results that have a section: all, or if there are very many, those that are not as expected."""
    if len(suite.results) <= DRAWN_RUNS_MAX:
        return suite.results
    return [result for result in suite.results if result.status is not Status.AS_EXPECTED]


def headline(suite: Suite) -> str:
    """Return the suite's outcome as one sentence."""
    total = len(suite.results)
    counts = Counter(result.status for result in suite.results)
    if total == 0:
        return "No run was played."
    if counts[Status.AS_EXPECTED] == total:
        return f"{'The run' if total == 1 else f'All {total:,} runs'} came out exactly as expected."
    odd = total - counts[Status.AS_EXPECTED]
    parts = [f"{counts[s]} {s.value}" for s in (Status.MISMATCH, Status.UNKNOWN) if counts[s]]
    verb = "is" if odd == 1 else "are"
    return f"{odd} of {plural(total, 'run')} {verb} not as expected: {', '.join(parts)}."


def _by_scenario(views: Sequence[RunView]) -> list[tuple[str, tuple[RunView, ...]]]:
    order = {v.result.scenario: n for n, v in reversed(list(enumerate(views)))}
    ordered = sorted(views, key=lambda v: order[v.result.scenario])
    return [(name, tuple(group)) for name, group in groupby(ordered, key=lambda v: v.result.scenario)]


def keys_of(results: Iterable[tuple[str, str]]) -> list[str]:
    """
    Return a URL fragment for every result; it stays the same from suite to suite if the names do.

    Args:
        results: the scenario and the protocol of each result of a suite, in order.
    """
    seen: Counter[str] = Counter()
    keys = []
    for scenario, protocol in results:
        key = re.sub(r"[^a-z0-9]+", "-", f"cell {scenario} {protocol}".lower()).strip("-")
        seen[key] += 1
        keys.append(key if seen[key] == 1 else f"{key}--{seen[key]}")
    return keys


def _facts(suite: Suite, views: Sequence[RunView]) -> tuple[tuple[str, str], ...]:
    rules = ", ".join(f"{rule}={value}" for rule, value in suite.rules.items())
    anomalies = sum(len(result.anomalies) for result in suite.results)
    proven = "1 anomaly proven" if anomalies == 1 else f"{anomalies:,} anomalies proven"
    return (
        ("started", suite.started),
        ("took", f"{suite.seconds:.1f} s"),
        ("target", suite.target),
        ("host", suite.host),
        ("power loss", suite.power_tier),
        ("seed", str(suite.seed)),
        ("played by", named(suite.version, suite.commit)),
        ("rules changed", rules or "none"),
        (
            "history",
            f"{plural(sum(v.total for v in views), 'line')}, {proven}",
        ),
    )


def environment() -> Environment:
    """Return where pages' templates are; they escape everything."""
    found = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    found.filters["word"] = _class_word
    found.filters["outcome"] = _outcome
    found.globals["sign"] = _sign
    return found


def _finalized(value: Any) -> Any:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _outcome(text: str) -> str:
    return shortened(text, OUTCOME_CHARS_MAX)


def _class_word(text: str) -> str:
    """Return the CSS class of a status or verdict."""
    return re.sub(r"[^a-z]+", "-", text.lower())


def _sign(result: RunResult) -> str:
    return STATUS_SIGNS[result.status]
