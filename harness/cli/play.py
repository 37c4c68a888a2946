"""
`fencepost play`: every scenario under every protocol and mutant that it has an expectation for.

Prints one table scenario x protocol, one table of mutants, and the path of the report.
"""

from __future__ import annotations

import argparse
from typing import Final

from harness.cli import suites

SELECTION: Final = suites.Selection(name="scenarios", make="scenarios", patterns=("*",))

configure = suites.configure


def run(arguments: argparse.Namespace) -> int:
    """Play the scenarios; return one of EXIT_CODES."""
    return suites.run(SELECTION, arguments)
