"""A variant: a protocol, or a mutant of one, in which some rules are changed; what one cell of a table plays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from harness.cluster.target import MODELS, NAMED
from harness.model import UsageError

# A rule's old name -> its name. Options and stored suites are read with either, for one release.
RENAMED_RULES: Final[Mapping[str, str]] = {"bounce_seen": "fence_broker_epoch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """
    What a cell plays; its text is `kip320`, or `kip320+fence_fetch=no`.

    Shapes:  changes are "rule=value", sorted, so that a variant has one text.
    """

    protocol: str
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "+".join((self.protocol, *self.changes))

    @staticmethod
    def parse(text: str, where: str) -> Variant:
        """Read its text; raise UsageError naming the place and what was expected."""
        protocol, *changes = text.strip().split("+")
        if not protocol or " " in text.strip() or any("=" not in change for change in changes):
            raise UsageError(f"{where}: {text.strip()!r}; expected PROTOCOL or PROTOCOL+RULE=VALUE")
        return Variant(protocol=protocol, changes=tuple(sorted(map(present_name, changes))))

    def names(self, rules: Mapping[str, str]) -> tuple[str, ...]:
        """
        Give the names by which scenarios may mean it, the narrowest first.

        Shapes:  its own; for a release of another system its name with the system's before it (kafka:2.1.1), and
                 that of the protocol of ours to which it corresponds; that of its protocol; the system's alone.
        """
        named = rules.get(NAMED, "")
        found = (str(self), named, rules.get(MODELS, self.protocol), self.protocol, named.partition(":")[0])
        return tuple(dict.fromkeys(name for name in found if name))


def present_name(change: str) -> str:
    """Return "rule=value" with the name that the rule has now."""
    name, equals, value = change.partition("=")
    return f"{RENAMED_RULES.get(name, name)}{equals}{value}"


def is_mutant(text: str) -> bool:
    """Whether the text is that of a mutant."""
    return "+" in text


def expectation_of(variant: Variant, rules: Mapping[str, str], expectations: Collection[str]) -> str | None:
    """
    Give the key of the expectation that holds for a variant, None when there is none.

    A mutant has an expectation of its own or none, since it is there to be found out; a release of another system
    has one of its own where it differs from the protocol to which it corresponds.
    """
    names = (str(variant), rules.get(NAMED), rules.get(MODELS))
    return next((name for name in names if name in expectations), None)
