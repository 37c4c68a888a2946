"""
`fencepost abilities`: print what this machine has for faults, hosts and tests, and what would bring the rest.

Each line is asked of the machine as a host asks it: a filesystem is mounted, a packet filter is listed. It changes
nothing that stays, and exits with 0 whatever is lacking.
"""

from __future__ import annotations

import argparse

from harness.machine.table import MACHINE
from harness.model import EXIT_CODES
from harness.report.console import console


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--missing", action="store_true", help="print only what is lacking")


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each row of the table, a second one for what is lacking."""
    out = console(highlight=False, soft_wrap=True, markup=False)
    for name, row in MACHINE.items():
        why = " ".join(row.why_not().split())
        if why:
            out.print(f"{name:16} no   {row.serves}", style="yellow")
            out.print(f"{'':16}      {why}; install: {row.install}")
        elif not arguments.missing:
            out.print(f"{name:16} yes  {row.serves}", style="green")
    return EXIT_CODES["valid"]
