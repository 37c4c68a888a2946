"""
The command `fencepost`: one table of commands, one table of exit codes.

    0 valid or as expected   1 crash of the harness   2 wrong usage   3 unknown   4 invalid or mismatch   5 hang
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from harness.cli.commands import commands
from harness.ending import Parser, end
from harness.model import EXIT_CODES, UsageError
from harness.suite.interrupts import INTERRUPTS
from harness.target.found import OPTION, also_in
from harness.version import PACKAGE, version

NAME: Final = "fencepost"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; print an error as one line."""
    INTERRUPTS.catch()
    words = sys.argv[1:] if arguments is None else arguments

    def work() -> int:
        if not words:
            raise UsageError(f"no command; expected one of {', '.join(commands())}. See `{NAME} --help`")
        with also_in(_folders(words)):
            chosen = _parser(words).parse_args(words)
            return int(chosen.run(chosen))

    return end(NAME, work, interrupted=_interrupted)


def _interrupted() -> str:
    INTERRUPTS.ignore()
    return "interrupted; everything that was started is down again"


def _folders(words: Sequence[str]) -> list[str]:
    """Return the folders of one's own targets, which may bring commands: they are read before any other option."""
    parser = Parser(add_help=False)
    parser.add_argument(OPTION, action="append", default=[])
    try:
        return list(parser.parse_known_args(words)[0].targets)
    except UsageError:
        return []  # the command's own parser says what is wrong


def _parser(words: Sequence[str]) -> Parser:
    """Return the parser for these words; it has arguments only for the command that they name."""
    parser = Parser(prog=NAME)
    parser.description = (
        "Fault injection for replicated logs. One set of rules judges every run: suites and single runs on "
        "PySpark, searches of many seeds in this process."
    )
    parser.add_argument("--version", action="version", version=f"{PACKAGE} {version()}")
    parser.epilog = "exit codes: " + ", ".join(f"{code} {word}" for word, code in EXIT_CODES.items())
    places = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in commands().items():
        sub = places.add_parser(name, help=command.help, description=command.help, epilog=parser.epilog)
        if name in words[:1]:
            module = command.load()
            module.configure(sub)
            sub.set_defaults(run=module.run)
            parser.help_of = sub.prog
    return parser


if __name__ == "__main__":
    sys.exit(main())
