"""
The words of scenarios that a target gives a meaning: conditions about its state, and what its operator can ask.

All other words mean the same for every target: `kill`, `cut`, `produce`, `held`. What stands for the words for
messages is the wire's to say (harness/target/wire.py). A section of docs/scenarios.md is printed from the tables
of the targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# In the order of the table: who leads and who is a member, what a node has and has heard, what can be asked for.
OF_TARGETS: Final = (
    "elected",
    "leader",
    "isr",
    "epoch rises",
    "controller",
    "registered",
    "gone",
    "unseen",
    "heard",
    "checkpoint",
    "log",
    "start",
    "compacted",
    "format",
    "one-batch",
    "sound",
    "settled",
    "truncated",
    "fenced",
    "stuck",
    "awaiting",
    "asked",
    "answered",
    "elect",
    "expire",
    "zombie",
    "cut-from-metadata",
    "depose-controller",
    "move-away",
    "add",
    "remove",
    "delete",
    "install",
    "delete-active-segment",
    "bit-rot-checkpoint",
)


@dataclass(frozen=True, slots=True)
class Means:
    """What stands for a word in a system."""

    text: str


@dataclass(frozen=True, slots=True)
class Lacks:
    """Why nothing stands for a word in a system."""

    why: str
