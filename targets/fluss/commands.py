"""What `fencepost test fluss` plays: what it loses, by scenarios of its own; `--scenario all` plays the rest."""

from __future__ import annotations

from typing import Final

COMMANDS: Final[dict[str, object]] = {}
USUAL: Final = (
    "restart-cuts",
    "all-die-leader-last",
    "uncommitted-stays",
    "returning-leader",
    "batch-across-the-cut",
)
