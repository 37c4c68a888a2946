"""Print docs/summary.md, from the columns of a summary's data set and the definitions of its measures."""

from __future__ import annotations

from typing import Final

from checkers.measures import availability, latency
from checkers.measures.availability import REAL_NS, VIRTUAL_NS
from checkers.measures.schema import COLUMNS, VERSION
from harness.docs import markdown

_WHAT: Final = {
    "runs": "A row for each run that a suite's table has.",
    "anomalies": "A row for each anomaly that the checkers proved, also of runs that cannot be read now.",
    "faults": "A row for each kind of fault or link rule of a run, as `checkers/facts/activity.py` counts them.",
    "latencies": "A row for each bucket of a run's histogram, by outcome and acks.",
    "unreadable": "A row for each suite, and each run of the other suites, that cannot be read.",
}
_EXAMPLE: Final = """\
fencepost summary results                           all suites below results
fencepost summary results/A results/B --out both    two suites
fencepost summary results --csv availability        one table, for a script
fencepost summary results --json                    all tables"""
_TABLES: Final = (
    (
        "`nights`, `protocols`, `releases`, `workloads`",
        "runs by outcome and expectation, anomalies, faults asked and bit, quantiles of latencies, availability",
    ),
    ("`anomalies`", "by kind and protocol: anomalies, runs, offsets"),
    ("`faults`", "by kind: asked, bit, runs, runs in which one bit"),
    ("`latencies`", "merged histograms by protocol, outcome, acks and clock"),
    ("`availability`", "by protocol, night and clock; of the longest stretch the run, and the faults around it"),
    ("`suites`", "runs of each suite by outcome"),
    ("`unreadable`", "what cannot be read, and why"),
)


def summary() -> str:
    """Return docs/summary.md."""
    return markdown.page(
        "Summary of many runs",
        "checkers/measures",
        "`fencepost summary RESULTS…` reads stored suites, thousands of runs at once, with one Spark session. "
        "It writes a data set and a page with plots to `RESULTS/summary`, and prints tables.",
        markdown.code(_EXAMPLE),
        "It judges nothing: verdicts are those that were stored when the runs ended. "
        "Small runs are measured from the lines of their histories, large ones from their [tables](tables.md); "
        "what comes back of a run does not grow with its records.\n"
        "A summary that is there already is replaced when the new one is whole.",
        "## Nights",
        "A night is the noon-to-noon day, in UTC, in which a suite began, and has the date on which it begins.",
        "## Latencies",
        markdown.docstring(latency),
        "A latency is the time from a produce's invoke to its completion, by the history's clock. "
        "Produces are counted by outcome, which are never added up: `ok` was acknowledged, `fail` surely appended "
        "nothing, of `info` nobody knows, and one that never ended has no latency.\n"
        "Quantiles are those of `ok` with acks=1 or acks=all, since with acks=0 there is no answer to wait for. "
        "A quantile is the end of the bucket in which it lies, and the greatest latency is exact.\n"
        "The simulator's time is virtual: it says how many delays a request met, and is never added to real time.",
        "## Availability",
        markdown.docstring(availability),
        f"A window is {REAL_NS / 1e9:g} s, or {VIRTUAL_NS / 1e6:g} ms of virtual time. "
        "The faults *around* a stretch took effect and were in force in it, or in the window before it. "
        "The availability of many runs is the share of all their windows.\n"
        "Faults are aimed at the moments that matter, and a run has little else: a share is to be compared with "
        "that of another protocol under the same schedules, and says nothing about a cluster in production.",
        "## What cannot be read",
        "A suite's table that is damaged, a folder that cannot be listed, "
        "a history that is missing, torn, or has a line that is no op, "
        "and damaged tables of a large run are each one row of `unreadable` with the reason. "
        "They end nothing. Such a run has the outcome `unreadable`, whatever its stored verdict, and is never "
        "valid; the exit code is then 3. "
        "The runs of a suite whose table cannot be read are not counted one by one.",
        "## Runs without a table",
        "A search, chaos seed by seed, a comparison and a night keep runs one by one and write no suite.json. "
        "Such a run counts with what its history and its anomalies.json say: what was played, and what was found "
        "when it was judged; how long it took is not known. Its folder began when its name, or that of the night, "
        "says. A run that was never judged, as in a suite whose command was killed, is a row of `unreadable`.",
        "## Tables",
        "The terminal shows the columns for which it is wide enough, and names the others; the page has all. "
        "`--csv TABLE` prints one of these, `--json` all.",
        markdown.table(("table", "rows"), _TABLES),
        "## Data set",
        f"`data/schema.json` has the version, which is {VERSION}, and the columns; it is written last. "
        "Each table is a folder of Parquet files.",
        *markdown.columns(COLUMNS, _WHAT, "###"),
    )
