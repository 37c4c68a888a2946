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
from harness.hosts.nodes import ZOOKEEPER, NodesHost
from harness.hosts.ports import PortClaims
from harness.hosts.site import write_files
from harness.java import find_java
from harness.launch import Address, Launch, Place
from harness.model import UsageError
from targets.kafka_family.zookeeper import server
from targets.kafka_family.zookeeper.server import Server

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

    def start_zookeeper(self) -> Address:
        """Start a real ZooKeeper server from pyspark's jars; return when it answers."""
        java, jars = find_java(), server.find_jars()
        address = self._address()
        folder = self._site.folder("nodes", ZOOKEEPER)
        launch = server.launch(
            java=str(java.executable),
            jars=[str(jar) for jar in jars],
            conf_dir=str(folder / "conf"),
            data_dir=str(self._site.add_disk(ZOOKEEPER, disk=False).data),
            address=address,
        )
        self._add(ZOOKEEPER)
        self.start(ZOOKEEPER, launch)
        return self._await_zookeeper(address)

    @property
    def zookeeper_host(self) -> LocalHost:
        """This one."""
        return self

    def start_own_zookeeper(self, servers: int) -> tuple[Server, ...]:
        """Start a ZooKeeper of the run's own; return when all of its servers serve."""
        java, jars = find_java(), server.find_jars()
        members = [
            server.Member(number=number, peers=self._address(), election_port=self._address().port)
            for number in range(1, servers + 1)
        ]
        made: list[Server] = []
        for member in members:
            name, address = f"{ZOOKEEPER}-{member.number}", self._address()
            data = self._site.add_disk(name, disk=False).data
            (data / server.MY_ID).write_text(f"{member.number}\n", encoding="ascii")
            launch = server.launch(
                java=str(java.executable),
                jars=[str(jar) for jar in jars],
                conf_dir=str(self._site.folder("nodes", name, "conf")),
                data_dir=str(data),
                address=address,
                ensemble=members if servers > 1 else (),
            )
            self._add(name)
            self.start(name, launch)
            made.append(Server(name=name, address=address, launch=launch))
        for each in made:
            self._await_zookeeper(each.address, each.name)
        return tuple(made)

    def add_node(self, name: str, *, disk: bool, fails: bool = False) -> Place:
        """Make a node's disk and claim its ports."""
        data = self._site.add_disk(name, disk=disk, fails=fails).mounted
        self._add(name)
        client, internal = self._listeners[name] = self._address(), self._address()
        return Place(
            data_dir=str(data),
            conf_dir=str(self._site.folder("nodes", name, "conf")),
            python=sys.executable,
            client=client,
            internal=internal,
            client_outside=client,
            internal_outside=internal,
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
