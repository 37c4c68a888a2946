"""
The command `fencepost`: one table of commands, one table of exit codes.

    0 valid or as expected   1 crash of the harness   2 wrong usage   3 unknown   4 invalid or mismatch   5 hang
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from harness.cli.commands import COMMANDS
from harness.model import EXIT_CODES, FencepostError, UsageError
from harness.suite.interrupts import INTERRUPTS

INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; print an error as one line."""
    INTERRUPTS.catch()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        chosen = _parser(words).parse_args(words)
        return int(chosen.run(chosen))
    except UsageError as error:
        print(f"fencepost: {error}", file=sys.stderr)
        return EXIT_CODES["usage"]
    except FencepostError as error:
        print(f"fencepost: {error}", file=sys.stderr)
        return EXIT_CODES["crash"]
    except KeyboardInterrupt:
        INTERRUPTS.ignore()
        print("fencepost: interrupted; everything that was started is down again", file=sys.stderr)
        return INTERRUPTED


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser for these words; it has arguments only for the command that they name."""
    parser = argparse.ArgumentParser(prog="fencepost")
    parser.description = (
        "Fault injection for replicated logs. One set of rules judges every run: suites and single runs on "
        "PySpark, searches of many seeds in this process."
    )
    parser.epilog = "exit codes: " + ", ".join(f"{code} {word}" for word, code in EXIT_CODES.items())
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.help, description=command.help, epilog=parser.epilog)
        if name in words[:1]:
            module = command.load()
            module.configure(sub)
            sub.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
