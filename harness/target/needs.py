"""
What a machine may lack, row by row; a target's folder brings rows of its own in its module `needs`, as `ROWS`.

The module is read without the target. A row that takes long to ask is asked when it is needed, and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MODULE: Final = "needs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    Something that a machine may lack.

    Attributes:
        why_not: Returns why this machine lacks it, "" if it has it; tries it once in a process.
        install: What brings it.
        serves: What needs it.
    """

    why_not: Callable[[], str]
    install: str
    serves: str = ""
