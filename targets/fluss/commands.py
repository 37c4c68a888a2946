"""What `fencepost test fluss` plays: KIP-101's scenarios, and its own; `--scenario all` plays the rest."""

from __future__ import annotations

from typing import Final

COMMANDS: Final[dict[str, object]] = {}
USUAL: Final = (
    "kip101-*",
    "restart-cuts",
    "all-die-leader-last",
    "uncommitted-stays",
    "returning-leader",
    "batch-across-the-cut",
)
