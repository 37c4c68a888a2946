"""What runs beside the harness while nodes are on other machines: the host `local` with a station's calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

from harness.clocks import Reading, Setting
from harness.hosts.local import LocalHost
from harness.launch import Launch
from harness.packets import Packets

# What a station is sent as text -> what the host takes.
_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "torn": lambda seed: None if seed is None else Random(seed),
    "was": bytes.fromhex,
    "now": bytes.fromhex,
}


class Here:
    """See harness/hosts/remote/station.py for every call."""

    def __init__(self, host: LocalHost) -> None:
        """Use a host that is, or will be, open."""
        self._host = host

    def start(self, name: str, launch: Launch) -> None:
        """Start a node's process."""
        self._host.start(name, launch)

    def alive(self, name: str) -> bool:
        """Return True if the node's process exists."""
        return self._host.alive(name)

    def paused(self, name: str) -> bool:
        """Return True if the kernel has stopped all threads of the node's process."""
        return self._host.paused(name)

    def act(self, do: str, name: str, **more: Any) -> str:
        """Do one of the host's acts to a node; return what its probe saw."""
        return self.see(do, name, **more) or "done"

    def see(self, do: str, name: str, **more: Any) -> str:
        """The same, "" if its probe had nothing to see."""
        known = {key: _READ.get(key, lambda value: value)(value) for key, value in more.items()}
        return str(getattr(self._host, do)(name, **known) or "")

    def lose_disk(self, name: str) -> str:
        """Give a node that is down an empty disk."""
        return self._host.lose_disk(name)

    def set_clocks(self, name: str, setting: Setting, seen: Reading) -> None:
        """Set the clocks of a node's process."""
        self._host.set_clocks(name, setting, seen)

    def ask_clocks(self, name: str) -> Callable[[], str]:
        """Have a node's process print its clocks; return what returns what it has printed since."""
        return self._host.ask_clocks(name)

    def unflushed(self, name: str) -> tuple[str, ...]:
        """Return the files of the node's disk that are not durable."""
        return self._host.unflushed(name)

    def packets_impaired(self, name: str, how: Packets) -> bool:
        """Return True if this becomes of the node's packets now, as the kernel says."""
        return self._host.packets_impaired(name, how)

    def packets_met(self, name: str, how: Packets) -> int:
        """Return how many packets of the node it was done to so far."""
        return self._host.packets_met(name, how)

    def data(self, name: str) -> Path:
        """Return the node's data directory."""
        return self._host.disk(name)

    def log_text(self, name: str) -> str:
        """Return everything that the node's processes have printed so far."""
        return self._host.log_text(name)
