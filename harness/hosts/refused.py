"""
Refuses what a host cannot do to its nodes yet: wrong clocks, disks that fail or are lost, bytes that flip.

A command that names such a fault is refused at the start, with `lacks`; these calls are what is left to refuse.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.ability import Ability
from harness.clocks import Reading, Setting
from harness.cluster.disk_error import DiskError
from harness.model import PreconditionError


class Refusing:
    """A part of a host; see harness/hosts/base.py for every call."""

    name: str

    def lacks(self, ability: Ability) -> str:
        """Return why this host cannot do it."""
        return f"host {self.name} has no {ability} yet; expected host local, docker or sim"

    def refusal(self, name: str, ability: Ability) -> PreconditionError:
        """Return the error of a call that needs the ability."""
        return PreconditionError(f"{name}: {self.lacks(ability)}")

    def lose_disk(self, name: str) -> str:
        """Refuse."""
        raise self.refusal(name, Ability.LOST_DISKS)

    def break_disk(self, name: str, error: DiskError) -> str:
        """Refuse."""
        raise self.refusal(f"{name}, {error}", Ability.DISK_ERRORS)

    def disk_state(self, name: str) -> str:
        """Return "": no disk here can fail."""
        del name
        return ""

    def mend_disk(self, name: str) -> str:
        """Do nothing: no disk here can fail."""
        del name
        return ""

    def set_clocks(self, name: str, setting: Setting, seen: Reading) -> None:
        """Refuse."""
        raise self.refusal(f"{name}, {setting} after {seen}", Ability.CLOCKS)

    def ask_clocks(self, name: str) -> Callable[[], str]:
        """Refuse."""
        raise self.refusal(name, Ability.CLOCKS)
