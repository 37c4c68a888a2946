"""The wire of a target that brings none: its connections are cut and reset, and no frame of theirs is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from harness.target.wire import Between, Hearing, Link, LinkKind, Reading, Sender, Stands, Wire, Word


class NoWire:
    """Nothing stands for any word; each pair of nodes has an address of its own, so that links can be cut."""

    links: Sequence[LinkKind] = (
        LinkKind(name="nodes", between=Between.NODES, sender=Sender.PAIR),
        LinkKind(name="metadata", between=Between.METADATA, sender=Sender.LISTENER),
        LinkKind(name="clients", between=Between.CLIENTS, sender=Sender.LISTENER),
    )
    messages: Collection[str] = ()

    def stands(self, rules: Mapping[str, str]) -> Mapping[Word, Stands]:
        """Return nothing."""
        del rules
        return {}

    def hear(self, nodes: Mapping[int, str]) -> Hearing:
        """Return what reads nothing."""
        del nodes
        return self

    def reading(self, kind: LinkKind, link: Link) -> Reading | None:
        """Return None."""
        del kind, link
        return None


NO_WIRE: Final[Wire] = NoWire()
