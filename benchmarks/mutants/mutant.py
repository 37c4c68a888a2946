"""A mutant: one bug of one to three lines in a module of the broker, as replacements in its source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from harness.model import FencepostError

# The package whose modules mutants change.
CORE: Final = "targets.broker.core"


class MutantError(FencepostError):
    """A mutant does not fit the source of its module any more."""


class Category(StrEnum):
    """What kind of bug a mutant is."""

    VISIBLE = "visible"
    COMMAND = "command"
    MANY = "many"
    PROTOCOL = "protocol"


CATEGORIES: Final = {
    Category.VISIBLE: "what a client may see: records, high watermarks, acknowledgements",
    Category.COMMAND: "who may command, and which writes count as done",
    Category.MANY: "more than one of anything: partitions, followers, timers, requests",
    Category.PROTOCOL: "truncation, epochs, elections, and the ISR's rules",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """
    One bug.

    Attributes:
        name: unique, in words joined by hyphens.
        module: the module that it changes, as "leader".
        package: where that module is: the core, or the broker's codec, whose mutants real processes have.
        sentence: what the broken broker does.
        breaks: the rule that it breaks and its source: a KIP, a section of V3, an issue, or Kafka's code.
        edits: (before, after) replacements; each `before` occurs once in the module's source.
        equivalent: why no test and no search can tell it from the original, "" if they can.
        unreachable: why no cluster of kip380 shows it, though a test of the core alone does, "" if one does.
    """

    name: str
    module: str
    package: str = CORE
    category: Category
    sentence: str
    breaks: str
    edits: tuple[tuple[str, str], ...]
    equivalent: str = ""
    unreachable: str = ""

    @property
    def full_module(self) -> str:
        """The module's full name."""
        return f"{self.package}.{self.module}"

    def applied(self, source: str) -> str:
        """
        Return the module's source with the bug.

        Raises:
            MutantError: a `before` does not occur exactly once.
        """
        for before, after in self.edits:
            found = source.count(before)
            if found != 1:
                raise MutantError(
                    f"mutant {self.name}: {before!r} occurs {found} times in {self.full_module}, expected once; "
                    "adapt the mutant to the module's source"
                )
            source = source.replace(before, after)
        return source
