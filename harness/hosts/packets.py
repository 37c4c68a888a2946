"""
What the kernel does to the packets of each node of this machine, and what it counts of that.

Dropping is a rule of the run's own chain (harness/cleanup/chains.py), on the node's own listeners; the other kinds
need an interface that only the node has (harness/hosts/shaping.py). What stands is asked of the kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

from harness.cleanup import chains
from harness.cleanup.chains import Chain
from harness.hosts import shaping
from harness.launch import Address
from harness.model import PreconditionError
from harness.packets import NEEDS, Packets


def why_not(how: Packets) -> str:
    """Return what this machine lacks for it, "" for nothing."""
    if how is not Packets.DROPPED:
        return shaping.why_not(how)
    reason = chains.why_not()
    return f"{reason}; expected root and iptables" if reason else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """
    How packets reach a node.

    Attributes:
        listeners: where it listens.
        alive: returns True if it runs; what is done to an interface is gone with its process.
        interface: returns the interface here by which all reaches it, and nothing else; None if it shares one.
            It raises PreconditionError while the node is down.
    """

    listeners: Collection[Address]
    alive: Callable[[], bool]
    interface: Callable[[], str] | None = None


class NodePackets:
    """The packets of a run's nodes; threads may call for different nodes."""

    def __init__(self, make_chain: Callable[[], Chain]) -> None:
        """Change nothing yet; the chain is made with the first node whose packets are dropped."""
        self._make_chain = make_chain
        self._chain: Chain | None = None
        self._making = threading.Lock()
        # Nodes whose interface is shaped: it is another one after each start.
        self._shaped: dict[str, Packets] = {}

    def impair(self, name: str, reached: Reached, how: Packets) -> None:
        """Let this become of the node's packets from now on; raise PreconditionError where it cannot."""
        if how is Packets.DROPPED:
            with self._making:
                self._chain = self._chain or self._make_chain()
            self._chain.drop(name, [(each.host, each.port) for each in reached.listeners])
            return
        if other := self._shaped.get(name):
            raise PreconditionError(f"packets of {name}: {other} already; expected them to pass, to be {how}")
        shaping.shape(_interface(name, reached, how), how)
        self._shaped[name] = how

    def restore(self, name: str, reached: Reached) -> None:
        """Do again to the interface of a node that was started what was done to the one before."""
        if (how := self._shaped.get(name)) is not None:
            shaping.shape(_interface(name, reached, how), how)

    def stands(self, name: str, reached: Reached, how: Packets) -> bool:
        """Return True if this becomes of the packets of a node that runs, as the kernel says."""
        if how is Packets.DROPPED:
            return self._chain is not None and self._chain.stands(name)
        return name in self._shaped and shaping.state(_interface(name, reached, how)) is how

    def met(self, name: str, reached: Reached, how: Packets) -> int:
        """Return how many packets it was done to, of a shaped interface since the node's last start."""
        if how is Packets.DROPPED:
            return 0 if self._chain is None else self._chain.dropped(name)
        return shaping.met(_interface(name, reached, how), how) if reached.alive() else 0

    def clear(self, name: str, reached: Reached, how: Packets) -> None:
        """Let the packets of a node pass again."""
        if how is Packets.DROPPED:
            if self._chain is not None:
                self._chain.clear(name)
        elif self._shaped.pop(name, None) is not None and reached.alive():
            shaping.clear(_interface(name, reached, how))


def _interface(name: str, reached: Reached, how: Packets) -> str:
    if reached.interface is None:
        raise PreconditionError(f"packets of {name}: {how} needs {NEEDS[how]}; expected an interface of its own")
    return reached.interface()
