"""
`fencepost play`: every scenario under every protocol and mutant that it says something of.

PrintedLines one table scenario x protocol and one of mutants, and names the report to open.
"""

from __future__ import annotations

import argparse
from typing import Final

from harness.cli import suites

SELECTION: Final = suites.Selection(name="scenarios", make="scenarios", patterns=("*",))

configure = suites.configure


def run(arguments: argparse.Namespace) -> int:
    """Play them; see EXIT_CODES."""
    return suites.run(SELECTION, arguments)
