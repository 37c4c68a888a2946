"""
`fencepost check --jepsen FILE…`: judge histories of Jepsen's Kafka workload as Jepsen's own checker does.

Exit codes: 0 every history is valid; 2 a file is not there; 3 a history is unknown, because a line cannot be used
or Jepsen's checker would throw, and none is invalid; 4 a history is invalid. The first column decides.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from checkers.jepsen import COLUMNS, Column, Verdict, judge, read
from checkers.jepsen.history import ASSIGN, SUBSCRIBE, JepsenHistory
from checkers.jepsen.show import by_kind, sentence, verdicts
from harness.input_file import numbered_lines, open_file
from harness.limits import JEPSEN_BYTES_MAX, JEPSEN_LINE_BYTES_MAX
from harness.model import EXIT_CODES, UsageError
from harness.report.console import console as make_console
from harness.report.text import clean, plural, shortened
from harness.suite.options import MASTER

_WHAT: Final = "a history of Jepsen's, one JSON object a line"
# Of what is printed of one kind; --json has more.
_FINDINGS_MAX: Final = 5
_SENTENCE_CHARACTERS_MAX: Final = 1_000
_STYLES: Final = {"valid": "green", "unknown": "yellow", "invalid": "bold red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """
    A file and what was found.

    Attributes:
        path: the file as the user named it.
        judged: the verdicts by column, the first of which decides; empty if there are problems.
    """

    path: Path
    history: JepsenHistory
    judged: dict[Column, Verdict]

    @property
    def word(self) -> str:
        """Return the word of the exit code."""
        if not self.judged:
            return "unknown"
        valid = next(iter(self.judged.values())).valid
        return "unknown" if valid is None else "valid" if valid else "invalid"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that stand beside those of stored runs."""
    parser.add_argument(
        "--jepsen",
        metavar="FILE",
        nargs="+",
        type=_path,
        help="judge these histories of Jepsen's Kafka workload as Jepsen's checker does, instead of stored runs",
    )
    parser.add_argument(
        "--sub-via",
        choices=(ASSIGN, SUBSCRIBE),
        help="with --jepsen: how the test's consumers chose what they poll (default: both are shown, and assign "
        "decides)",
    )
    parser.add_argument(
        "--ww-deps",
        action=argparse.BooleanOptionalAction,
        help="with --jepsen: whether the order of a log makes dependencies between senders (default: both are "
        "shown, and with them decides)",
    )


def run(arguments: argparse.Namespace) -> int:
    """
    Judge the files, print what was found of each as soon as it is judged, and return the exit code.

    Raises:
        UsageError: an argument is for stored runs, or a file cannot be opened; nothing was judged.
    """
    _check_arguments(arguments)
    columns = _columns(arguments)
    words = []
    console = make_console(highlight=False)
    for path in arguments.jepsen:
        checked = check(path, columns)
        words.append(checked.word)
        if arguments.json:
            print(json.dumps(_raw(checked)))
        else:
            _print(console, checked)
    word = next((each for each in ("invalid", "unknown") if each in words), "valid")
    if len(words) > 1 and not arguments.json:
        counts = ", ".join(f"{words.count(each):,} {each}" for each in _STYLES)
        console.print(Text(f"{plural(len(words), 'file')}: {counts}", _STYLES[word]))
    return EXIT_CODES[word]


def check(path: Path, columns: Sequence[Column] = COLUMNS) -> Checked:
    """Read a file and judge it; a line that cannot be used makes it unknown."""
    history = _read(path)
    return Checked(path=path, history=history, judged={} if history.problems else judge(history, columns))


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError(f"'': expected {_WHAT}")
    return Path(text)


def _check_arguments(arguments: argparse.Namespace) -> None:
    """Raise UsageError if an option is for stored runs, or if a file is none; before any file is read."""
    others = {
        "RESULTS": arguments.results,
        "--store": arguments.store,
        "--conf": arguments.conf,
        "--master": arguments.master != MASTER,
    }
    for name, value in others.items():
        if value:
            raise UsageError(f"--jepsen with {name}: expected only files, which are judged without Spark")
    seen: set[Path] = set()
    for path in arguments.jepsen:
        with open_file(path, _WHAT):
            pass
        if path in seen:
            raise UsageError(f"{path}: named twice; expected each file once")
        seen.add(path)


def _columns(arguments: argparse.Namespace) -> Sequence[Column]:
    """Return all columns, or the one that the options name."""
    if arguments.sub_via is None and arguments.ww_deps is None:
        return COLUMNS
    return (Column(arguments.sub_via or ASSIGN, arguments.ww_deps is not False),)


def _read(path: Path) -> JepsenHistory:
    try:
        with open_file(path, _WHAT) as file:
            if (size := path.stat().st_size) > JEPSEN_BYTES_MAX:
                return JepsenHistory(
                    ops=(), problems=[f"{path}: {size:,} bytes; expected at most {JEPSEN_BYTES_MAX:,}"]
                )
            return read(str(path), numbered_lines(file, JEPSEN_LINE_BYTES_MAX))
    except UsageError as error:
        return JepsenHistory(ops=(), problems=[str(error)])
    except OSError as error:
        return JepsenHistory(ops=(), problems=[f"{path}: {error.strerror}; expected {_WHAT}"])


# --- output ------------------------------------------------------------------------------------------------------
def _raw(checked: Checked) -> dict[str, Any]:
    return {
        "file": str(checked.path),
        "verdict": checked.word,
        "problems": [*checked.history.problems],
        "problems-left-out": checked.history.problems_left_out,
        "verdicts": verdicts(checked.history, checked.judged) if checked.judged else {},
    }


def _print(console: Console, checked: Checked) -> None:
    title = f"{checked.path}: {checked.word}"
    console.print(Text(clean(title), _STYLES[checked.word]), soft_wrap=True)
    for problem in checked.history.problems:
        _print_line(console, f"? {problem}")
    if checked.history.problems_left_out:
        _print_line(console, f"? {plural(checked.history.problems_left_out, 'more line')} cannot be used")
    if checked.judged:
        console.print(_table(checked.judged))
        _print_findings(console, checked)
    console.print()


def _table(judged: dict[Column, Verdict]) -> Table:
    table = Table(header_style="bold")
    for name in ("options", "verdict", "makes it invalid", "allowed"):
        table.add_column(name, overflow="fold")
    for column, verdict in judged.items():
        word = "no verdict" if verdict.crash else "valid" if verdict.valid else "invalid"
        counts = verdict.counts
        bad = [f"{kind} {counts[kind]:,}" for kind in verdict.bad]
        allowed = [f"{kind} {count:,}" for kind, count in counts.items() if kind not in verdict.bad]
        style = _STYLES.get(word, _STYLES["unknown"])
        table.add_row(str(column), Text(word, style), ", ".join(bad), ", ".join(allowed))
    return table


def _print_findings(console: Console, checked: Checked) -> None:
    """Print each finding once, under its kind, with the columns that have it if not all do."""
    crash = next(iter(checked.judged.values())).crash
    if crash:
        _print_line(console, f"? Jepsen's checker throws {crash}")
    shown: set[str] = set()
    for column, verdict in checked.judged.items():
        for kind, findings in by_kind(verdict.findings):
            if kind in shown:
                continue
            shown.add(kind)
            first = next(iter(checked.judged)) == column
            for finding in findings[:_FINDINGS_MAX]:
                about = f"{kind}: {sentence(finding)}" if first else f"{kind} ({column}): {sentence(finding)}"
                _print_line(console, shortened(about, _SENTENCE_CHARACTERS_MAX))
            if len(findings) > _FINDINGS_MAX:
                _print_line(console, f"{kind}: {len(findings) - _FINDINGS_MAX:,} more")


def _print_line(console: Console, text: str) -> None:
    console.print(Text(f"  {clean(text)}"), soft_wrap=True)
