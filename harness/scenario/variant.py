"""A variant: a protocol, or a mutant of one with some rules changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness.model import UsageError
from harness.registry import nearest
from harness.target.traits import Traits

# A rule's old name -> its current name. Options and stored suites may have either, for one release.
RENAMED_RULES: Final[Mapping[str, str]] = {"bounce_seen": "fence_broker_epoch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """
    A protocol with changed rules; its text is `kip320`, or `kip320+fence_fetch=no`.

    Attributes:
        changes: "rule=value", sorted, so that a variant has exactly one text.
    """

    protocol: str
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "+".join((self.protocol, *self.changes))

    @staticmethod
    def parse(text: str, where: str) -> Variant:
        """Parse a variant's text; raise UsageError with the place and what was expected."""
        protocol, *changes = text.strip().split("+")
        if not protocol or " " in text.strip() or any("=" not in change for change in changes):
            raise UsageError(f"{where}: {text.strip()!r}; expected PROTOCOL or PROTOCOL+RULE=VALUE")
        check_distinct(list(map(present_name, changes)), where)
        return Variant(protocol=protocol, changes=tuple(sorted(map(present_name, changes))))

    def names(self, traits: Traits) -> tuple[str, ...]:
        """
        Return the names by which a scenario may name the variant, the narrowest first.

        These are the variant's own text; for a release of another system, its name with the system's
        (kafka:2.1.1) and the name of our protocol that it corresponds to; the name of its protocol; and the name
        of the system.
        """
        named = traits.named
        found = (str(self), named, traits.models or self.protocol, self.protocol, named.partition(":")[0])
        return tuple(dict.fromkeys(name for name in found if name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants:
    """
    The variants that exist, for names in files.

    Attributes:
        protocols: the name of a protocol, of another system, or of one of its releases (kafka:2.1.1) -> its rules.
        change: returns the rules of a protocol with changes; raises UsageError for an unknown rule or value.
        messages: what the system that the file is read for calls its messages.
    """

    protocols: Mapping[str, Mapping[str, str]]
    change: Callable[[str, Sequence[str]], Mapping[str, str]]
    messages: Collection[str] = ()

    def check(self, variant: Variant, where: str) -> None:
        """Raise UsageError with the place if there is no such variant, or if its changes change nothing."""
        name = variant.protocol
        if name not in self.protocols:
            system = name.partition(":")[0]
            # The releases of a system are told to who asks for one of them.
            releases = [each for each in self.protocols if ":" in name and each.startswith(f"{system}:")]
            known = releases or [each for each in self.protocols if ":" not in each]
            near = nearest(name if releases else system, known)
            raise UsageError(f"{where}: protocol {name!r}; expected one of {', '.join(known)}{near}")
        if not variant.changes:
            return
        try:
            changed = self.change(name, variant.changes)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from error
        if changed == self.protocols[name]:
            raise UsageError(f"{where}: {variant} is {name} itself; expected a rule with another value")


def check_distinct(changes: Sequence[str], where: str) -> None:
    """Raise UsageError with the place if one rule is changed twice."""
    names = [change.partition("=")[0] for change in changes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{where}: rule {name!r} is changed twice; expected each once")


def present_name(change: str) -> str:
    """Return "rule=value" with the rule's current name."""
    name, equals, value = change.partition("=")
    return f"{RENAMED_RULES.get(name, name)}{equals}{value}"


def is_mutant(text: str) -> bool:
    """Return True if the text is that of a mutant."""
    return "+" in text


def expectation_of(variant: Variant, traits: Traits, expectations: Collection[str]) -> str | None:
    """
    Return the key of the expectation that applies to a variant, None if none does.

    A mutant never uses its protocol's expectation, because checkers are meant to detect it. A release of another
    system has its own expectation only where it differs from the protocol that it corresponds to.
    """
    names = (str(variant), traits.named, traits.models)
    return next((name for name in names if name in expectations), None)
