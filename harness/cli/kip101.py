"""
`fencepost test-kip101`: KIP-101's scenarios and KAFKA-6361 under the protocols that they tell apart.

PrintedLines a table scenario x protocol of what was expected and what was found, and names the report to open.
"""

from __future__ import annotations

import argparse
from typing import Final

from harness.cli import suites

SELECTION: Final = suites.Selection(
    name="test-kip101",
    make="test-kip101",
    patterns=("kip101-*", "kafka-6361-elect-*"),
    protocols=("hw", "kip101", "kip279", "kip320"),
)

configure = suites.configure


def run(arguments: argparse.Namespace) -> int:
    """Play them; see EXIT_CODES."""
    return suites.run(SELECTION, arguments)
