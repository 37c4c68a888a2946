"""
Nodes as processes of this machine, on loopback unless another address of it is named.

    RUN/nodes/NAME/conf      the launch's files
    RUN/nodes/NAME/log.txt   what the node printed
    RUN/nodes/NAME/data      the data, if the disk cannot lose power
    RUN/nodes/NAME/disk      the disk, if it can lose power: an image and its mount, or a folder and its shadow
    RUN/nodes/NAME/fuse      what the node sees of the disk, if it can fail
    RUN/nodes/NAME/lost-N    what was on a disk that it lost
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from harness.hosts import faketime
from harness.hosts.node import NodeProcess, child_environment
from harness.hosts.nodes import NodesHost
from harness.hosts.ports import PortClaims
from harness.hosts.site import write_files
from harness.launch import Address, Launch, Place
from harness.model import UsageError

LOOPBACK: Final = "127.0.0.1"
# The project's root, on the PYTHONPATH of nodes.
ROOT: Final = Path(__file__).resolve().parents[2]


class LocalHost(NodesHost[NodeProcess]):
    """The host `local`; see harness/hosts/base.py for every call."""

    def __init__(
        self,
        run_dir: Path,
        *,
        power_tier: str | None = None,
        drain: Callable[[str], None] | None = None,
        ports: range | None = None,
        address: str = LOOPBACK,
        ssh_ports: Collection[int] = (),
    ) -> None:
        """
        See harness.hosts.MakeHost.

        Args:
            address: The address of this machine on which nodes listen.
            ssh_ports: Ports of which no packet is ever dropped, besides 22.
        """
        super().__init__("local", run_dir, power_tier=power_tier, drain=drain, ssh_ports=ssh_ports)
        self._range = ports
        self._listens_on = address
        self._ports: PortClaims | None = None

    @property
    def bind_address(self) -> str:
        """Loopback, which nodes can reach."""
        return LOOPBACK

    def open(self) -> None:
        """Reap killed runs, check the machine, acquire the run's lock, choose the power tier."""
        self._site.open()
        self.power_tier = self._site.power_tier
        self._ports = PortClaims(self._range, self._listens_on)

    def add_node(
        self, name: str, *, disk: bool, fails: bool = False, listeners: int = 2, beside: bool = False
    ) -> Place:
        """Make a node's disk and claim its ports."""
        del beside  # each node is here
        data = self._site.add_disk(name, disk=disk, fails=fails).mounted
        self._add(name)
        self._listeners[name] = addresses = tuple(self._address() for _ in range(listeners))
        client, *more = addresses
        internal, *further = more or addresses
        return Place(
            data_dir=str(data),
            conf_dir=str(self._site.folder("nodes", name, "conf")),
            python=sys.executable,
            client=client,
            internal=internal,
            client_outside=client,
            internal_outside=internal,
            further=tuple(further),
        )

    def start(self, name: str, launch: Launch) -> None:
        """Write the launch's files and start its process."""
        folder = self._site.folder("nodes", name)
        write_files(folder / "conf", launch)
        env = child_environment({**launch.env, **self._clock_environment(name, launch)}, ROOT)
        self._node(name).start(launch.argv, env=env, cwd=folder)

    def close(self) -> None:
        """Kill all processes, unmount all disks and release the ports; safe to call twice."""
        try:
            self._site.close()
        finally:
            for node in self._nodes.values():
                node.forget()
            if self._ports is not None:
                self._ports.close()

    def _clock_environment(self, name: str, launch: Launch) -> dict[str, str]:
        """Return the variables of a process whose clocks can be set; none if they are the machine's."""
        if launch.clocks is None:
            return {}
        if reason := faketime.lacks():
            raise UsageError(f"start {name}: {reason}")
        clock = self._clock(name)
        clock.begin(launch.clocks)
        return faketime.environment(str(faketime.find()), str(clock.conf / faketime.CONTROL), launch.clocks)

    def _add(self, name: str) -> None:
        folder = self._site.folder("nodes", name)
        folder.mkdir(parents=True, exist_ok=True)
        self._nodes[name] = NodeProcess(name=name, ledger=self._site.ledger, log=folder / "log.txt")

    def _address(self) -> Address:
        if self._ports is None:
            raise UsageError(f"host in {self._site.run_dir}: not open; expected open before any other call")
        return Address(host=self._listens_on, port=self._ports.claim())
