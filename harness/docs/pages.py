"""
Print the pages of docs/ that are generated from tables in the code, so that they always agree with it.

    python -m harness.docs.pages                      write every page
    python -m harness.docs.pages --check              write nothing; exit 1 if a page is stale
    python -m harness.docs.pages --picture SUITE.json draw the verdict table of a suite as docs/images/table.svg
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from harness import limits
from harness.cli.commands import commands
from harness.docs import markdown
from harness.docs.checker_page import checkers
from harness.docs.coverage_page import coverage
from harness.docs.history_page import history
from harness.docs.limit_page import broker_limits
from harness.docs.nemesis_page import nemeses
from harness.docs.rule_page import rules
from harness.docs.scenario_page import scenarios
from harness.docs.seam_table import methods
from harness.docs.summary_page import summary
from harness.docs.table_page import run_tables
from harness.docs.workload_page import workloads
from harness.ending import INTERRUPTED, READER_GONE, Parser, end
from harness.environment import ENVIRONMENTS
from harness.kafka_errors import KAFKA_ERRORS
from harness.model import EXIT_CODES, EXIT_OF_VERDICT, Verdict
from harness.report.table import render_table
from harness.run.suite import Suite
from harness.target.found import found
from targets.kafka_family.clients.part import CLIENTS
from workloads import WORKLOADS

ROOT: Final = Path(__file__).resolve().parents[2]
PICTURE: Final = "docs/images/table.svg"
PICTURE_COLUMNS: Final = 118

EXIT_MEANINGS: Final[Mapping[str, str]] = {
    "valid": "`test-kip101`, `play`, `test-kafka`, and `run --schedule` with a scenario that expects something: "
    "every run is exactly as expected. `lineage`: no directories disagree. "
    "`agree`: no run differs. `check`: every verdict is as stored; with `--jepsen`, every history is valid. "
    "`shrink`: the smallest schedule that was found is written. `nightly`: nothing was found, and every canary "
    "failed; lines may have been left out for what the machine lacks.",
    "crash": "The harness itself failed, outside of a run: a bug.",
    "usage": "An option or an input file is wrong, or the machine lacks something before the first run; one line "
    "says what to change.",
    "unknown": "A run could not be played, taken down, stored or judged; nothing is proven wrong. A search met a "
    "limit of the machine before it found something. `lineage`: "
    "something is *unreadable*, and nothing that was read differs. `check`: a run is unknown that was not stored "
    "as that, or something cannot be read; every other verdict is as stored; with `--jepsen`, a line "
    "cannot be used, or Jepsen's checker would throw. `summary`: something could not be read. "
    "`agree`: no run is in both suites, or a history is not whole, and no run that was compared differs. "
    "`clean`: an image could not be removed. `shrink`: the "
    "schedule shows no violation in the simulator. `nightly`: something is unknown, or could not be run; "
    "with `--strict`, a line was left out; without it, all plays or all canaries were.",
    "invalid": "`test-kip101`, `play`, `test-kafka`, `run --schedule`: a run is not as expected. "
    "`lineage`: directories disagree, or one is faulty. `agree`: a run differs. "
    "`check`: a verdict is not as stored; with `--jepsen`, a history is invalid. "
    "`nightly`: a violation or a hang was found, or a canary did not fail.",
    "hang": "Not healed, or not caught up in time. A suite shows it in its table (`hang`, `stuck`) and exits 0 "
    "or 4.",
}

INTERRUPTED_MEANING: Final = (
    "Ctrl-C or SIGTERM; everything that was started is down again. A search, or chaos seed by seed, that has "
    "found something ends with the code of that."
)


# --- pages ---------------------------------------------------------------------------------------------------
def exit_codes() -> str:
    """Return docs/exit-codes.md, from the tables of the data model."""
    codes = [(code, word, EXIT_MEANINGS[word]) for word, code in EXIT_CODES.items()]
    codes.append((INTERRUPTED, "interrupted", INTERRUPTED_MEANING))
    codes.append((READER_GONE, "reader gone", "The reader of stdout has ended, as in `| head`; no line says so."))
    merged = [(each.name.lower(), EXIT_OF_VERDICT[each]) for each in reversed(Verdict)]
    return markdown.page(
        "Exit codes",
        "harness/model.py",
        "Every command of `fencepost` ends with one of these; `make` turns any but 0 into 2.",
        markdown.table(("code", "word", "meaning"), codes),
        "With 1 and 2, stderr has one line that begins with `fencepost: `: where, what was found, what was "
        "expected. A traceback is a bug of ours; please report it.",
        "A run has one verdict, the most severe of its anomalies' verdicts; so nothing masks a violation.",
        markdown.table(("verdict, most severe first", "exit code of a single random run"), merged),
        "A suite is judged by its expectations: a run of `hw` with exactly the expected losses is as expected. So "
        "is `run --schedule FILE` if the file expects an outcome of the protocol: 0 as expected, 3 unknown, "
        "4 mismatch, whatever the verdict. Searches and chaos with many seeds have the code of the most severe "
        "verdict found.",
    )


def command_line() -> str:
    """Return docs/cli.md, from the commands' parsers and the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z][a-z0-9-]*):.*?## (.*)$", makefile, re.MULTILINE)
    parts = ["## make", markdown.table(("target", "does"), [(f"`make {name}`", text) for name, text in targets])]
    for name, command in commands().items():
        parser = argparse.ArgumentParser(add_help=False)
        command.load().configure(parser)
        rows = [_option(action) for action in parser._actions]
        parts += [
            f"## fencepost {name}",
            markdown.sentence(command.help),
            markdown.table(("argument", "means"), rows),
        ]
    tables = [
        ("`--host`", ", ".join(f"`{name}`" for name in ENVIRONMENTS)),
        ("`--target`", ", ".join(f"`{name}`" for name in found())),
        ("client", ", ".join(f"`{name}`" for name in CLIENTS)),
        ("workload", ", ".join(f"`{name}`" for name in WORKLOADS)),
    ]
    parts += [
        "## How options are read",
        "An option is written out: abbreviations are refused, since a new option would change what they mean.\n"
        "An option that may not be repeated, and is there twice, has its last value; a rule that is changed twice "
        "is refused.\n"
        "Numbers are plain digits: "
        f"`--seed` from 0 to {limits.OPTION_SEED_MAX}, `--seeds` from 1 to {limits.OPTION_SEEDS_MAX}, "
        f"`--jobs` from 1 to {limits.OPTION_JOBS_MAX}, seconds above 0 up to {limits.OPTION_S_MAX}.\n"
        "Whatever is wrong is one line on stderr, and exit code 2, before anything is started.",
    ]
    parts += [
        "## What is printed",
        "On a terminal a table fits its width.\n"
        "Elsewhere, as in a pipe, a file or the log of a CI job, it is as wide as it must be, and each row is one "
        "line, so that `grep` finds all of it.\n"
        "`COLUMNS` sets the width of both, and `NO_COLOR` leaves colours out.",
    ]
    parts += ["## Names", markdown.table(("of", "one of"), tables), "Exit codes: [exit-codes.md](exit-codes.md)."]
    return markdown.page("Commands", "harness/cli and the Makefile", *parts)


def errors() -> str:
    """Return docs/errors.md, from the table of error codes."""
    rows = [
        (each.code, f"`{each.name}`", each.definite.value, "yes" if each.moved else "", each.meaning)
        for each in KAFKA_ERRORS.values()
    ]
    return markdown.page(
        "Error codes",
        "harness/kafka_errors.py",
        "What an error proves about the records of a produce, for every client, including the simulated one.\n"
        "A definite error proves that nothing was appended: the history has `fail`. "
        "After any other error, and after a code that is not in the table, the records may be in the log: `info`.",
        markdown.table(("code", "name", "definite", "look for the leader again", "meaning"), rows),
        "With acks=all a broker waits after its append, so a change of leader is reported for records that are "
        "in its log.\n"
        "librdkafka retries such records by itself, whatever the value of `retries`: with acks=all none of its "
        "errors is definite, since the last answer proves nothing about earlier attempts.",
    )


def architecture() -> str:
    """Return docs/architecture.md, which is written by hand but for which target has what of the seam."""
    return markdown.within((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), *methods())


# A new page is one function above and one line here.
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "docs/exit-codes.md": exit_codes,
    "docs/rules.md": rules,
    "docs/checkers.md": checkers,
    "docs/errors.md": errors,
    "docs/nemeses.md": nemeses,
    "docs/scenarios.md": scenarios,
    "docs/workloads.md": workloads,
    "docs/cli.md": command_line,
    "docs/history.md": history,
    "docs/limits.md": broker_limits,
    "docs/tables.md": run_tables,
    "docs/summary.md": summary,
    "docs/coverage.md": coverage,
    "docs/architecture.md": architecture,
}


def stale(root: Path, pages: Mapping[str, Callable[[], str]] = PAGES) -> list[str]:
    """Return the names of the pages that are missing or differ from the current output."""
    return [
        name
        for name, page in pages.items()
        if not (root / name).exists() or (root / name).read_text(encoding="utf-8") != page()
    ]


def picture(suite: Suite) -> str:
    """Return a suite's verdict table as SVG, as a terminal shows it, without external resources."""
    console = Console(record=True, width=PICTURE_COLUMNS, file=io.StringIO(), force_terminal=True)
    render_table(suite, console)
    drawn = console.export_svg(title=f"make {suite.name}", unique_id="table")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


# --- pieces -------------------------------------------------------------------------------------------------
def _option(action: argparse.Action) -> tuple[str, str]:
    name = " ".join((*action.option_strings, *([str(action.metavar)] if action.metavar else []))) or action.dest
    choices = f" ({', '.join(map(str, action.choices))})" if action.choices else ""
    return f"`{name}`", f"{action.help}{choices}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, check them, or draw the picture."""
    parser = Parser(prog="python -m harness.docs.pages", description=markdown.first_line(sys.modules[__name__]))
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is stale")
    one.add_argument("--picture", type=Path, metavar="SUITE.json", help=f"draw this suite's table as {PICTURE}")
    return end("harness.docs.pages", lambda: _print(parser.parse_args(arguments)))


def _print(chosen: argparse.Namespace) -> int:
    if chosen.picture:
        (ROOT / PICTURE).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / PICTURE).write_text(picture(Suite.read(chosen.picture)) + "\n", encoding="utf-8")
        return 0
    found = stale(ROOT)
    for name in found:
        if chosen.check:
            print(f"{name}: not as the code has it; expected what `make docs` prints", file=sys.stderr)
        else:
            (ROOT / name).write_text(PAGES[name](), encoding="utf-8")
            print(f"{name}: printed")
    return 1 if chosen.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
