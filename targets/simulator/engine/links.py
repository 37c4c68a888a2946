"""The links of a world: the calls of harness/fabric/core/verbs.py, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from harness.fabric.core.effects import Effect
from harness.fabric.core.rules import Hold, Pattern
from harness.fabric.core.verbs import LinkVerbs
from targets.simulator.engine.network import Network

T = TypeVar("T")


class SimLinks(LinkVerbs[Hold]):
    """
    The links of one network; see harness.cluster.interfaces.Links for the calls of every environment.

    Args:
        words: what rules may name of messages: those of the system's wire.
    """

    def __init__(self, network: Network, words: Collection[str]) -> None:
        super().__init__(network.core, network.ends, words)
        self._network = network

    def run(self, function: Callable[[], T]) -> T:
        """Call the function: a world has one thread."""
        return function()

    def obey(self, effects: Sequence[Effect]) -> None:
        """Perform the link core's effects, in order."""
        self._network.obey(effects)

    def make_hold(self, pattern: Pattern) -> Hold:
        """Return a plain hold: waiting for it is the world's `until`."""
        return Hold(pattern)

    def close(self) -> None:
        """Do nothing: the links end with their world."""
