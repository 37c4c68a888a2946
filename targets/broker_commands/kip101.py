"""
`fencepost test-kip101`: KIP-101's scenarios and KAFKA-6361 under the protocols that they distinguish.

Prints a table scenario x protocol with expected and found, and the path of the report.
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
    """Play the scenarios; return one of EXIT_CODES."""
    return suites.run(SELECTION, arguments)
