"""
Nodes as containers on the run's own internal network, with disks that the harness mounts.

No traffic of that network leaves the machine. The harness listens on the network's gateway address, and connects
to containers by their addresses. The run's files have the same layout as on the host `local`.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from docker.errors import APIError, ContainerError, DockerException
from docker.types import IPAMConfig, IPAMPool, Mount

from harness.ability import Ability
from harness.cleanup import engine
from harness.cleanup.ledger import runs_dir
from harness.clocks import Which
from harness.hosts import faketime, image_build, shaping
from harness.hosts.container import CONF, FAKETIME, LIBRARY, NodeContainer, Shape, faketime_mount
from harness.hosts.disks import Owner
from harness.hosts.engine_watch import EngineWatch
from harness.hosts.nodes import NodesHost
from harness.hosts.packets import Reached, why_not
from harness.hosts.site import write_files
from harness.launch import Address, Launch, Place, Runtime
from harness.model import FencepostError, UsageError
from harness.packets import NEEDS

# A node listens for clients on this one, and on the next ones for other nodes.
CLIENT_PORT: Final = 9092
NODE_UID: Final = 10001
LABEL: Final = "fencepost.run"
HOME_LABEL: Final = "fencepost.home"
NETWORK_TRIES_MAX: Final = 20
# Addresses of a run's network that are kept for nodes.
NODES_MAX: Final = 100
# Image -> why its processes cannot have clocks of their own, "" if they can.
_CLOCKS_TRIED: Final[dict[str, str]] = {}
# In the image of nodes that need Java.
JAVA: Final = "/opt/java/bin/java"


class DockerHost(NodesHost[NodeContainer]):
    """The host `docker`; see harness/hosts/base.py for every call."""

    java = JAVA

    def __init__(
        self,
        run_dir: Path,
        *,
        power_tier: str | None = None,
        drain: Callable[[str], None] | None = None,
        ports: range | None = None,
    ) -> None:
        """See harness.hosts.MakeHost."""
        if ports is not None:
            raise UsageError(
                f"ports {ports[0]} to {ports[-1]}: containers take none of this machine's; expected no range "
                "of ports with the host docker"
            )
        super().__init__("docker", run_dir, power_tier=power_tier, drain=drain)
        self._client: Any = None
        self._watch: EngineWatch | None = None
        self._images: image_build.Images | None = None
        self._network = ""
        self._gateway = ""
        self._free: list[str] = []
        self._mutex = threading.Lock()

    @property
    def bind_address(self) -> str:
        """The network's gateway address, which nodes can reach."""
        return self._gateway

    def open(self) -> None:
        """Connect to the engine, build missing images, reap killed runs, check the machine, make the network."""
        self._client = engine.connect()
        with engine.answering("build the images"):
            self._images = image_build.ensure(self._client)
        self._site.open()
        self.power_tier = self._site.power_tier
        self._watch = EngineWatch(self._client, self._label)
        with engine.answering("look for what dead runs left"):
            self._sweep()
        self._network = f"fencepost-{self._site.ledger.token}"
        self._site.ledger.note("network", name=self._network, label=self._label)
        with self._site.ledger.making(), engine.answering(f"make the network {self._network}"):
            self._make_network()

    def require_all(self) -> None:
        """Raise PreconditionError if the engine was gone since `open`, even if one answers again."""
        if self._watch is not None:
            self._watch.require("wait")

    def add_node(
        self, name: str, *, disk: bool, fails: bool = False, listeners: int = 2, beside: bool = False
    ) -> Place:
        """Make a node's disk and choose its address; its container is created at its start."""
        del beside  # each node is in a container of this machine
        ip = self._add(name, disk=disk, fails=fails)
        addresses = tuple(Address(host=ip, port=CLIENT_PORT + number) for number in range(listeners))
        self._listeners[name] = addresses
        client, *more = addresses
        internal, *further = more or addresses
        return Place(
            data_dir="/data",
            conf_dir=CONF,
            python="python3",
            client=client,
            internal=internal,
            client_outside=client,
            internal_outside=internal,
            java=self.java,
            library=LIBRARY,
            further=tuple(further),
        )

    def start(self, name: str, launch: Launch) -> None:
        """Write the launch's files and start its container."""
        write_files(self._site.folder("nodes", name, "conf"), launch)
        if launch.clocks is not None:
            self._clock(name).begin(launch.clocks)
        self._node(name).start(launch)
        self._packets.restore(name, self._reached(name))

    def close(self) -> None:
        """
        Remove all containers, disks' mounts and the network; safe to call twice.

        Raises:
            FencepostError: Something could not be undone, or the engine was gone meanwhile.
        """
        # No ExitStack: it would drop the error during whose handling this one is raised.
        try:
            for node in self._nodes.values():
                node.save_log()
        finally:
            try:
                self._close_site()
            finally:
                if self._client is not None:
                    self._client.close()

    def _close_site(self) -> None:
        """Undo everything through the ledger; if the engine was gone, that comes before what is left."""
        lost, left = "", ""
        try:
            self._site.close()
        except FencepostError as error:
            left = str(error)
        watch, self._watch = self._watch, None
        if watch is not None and (found := watch.close()):
            lost = f"{found}; expected it until the end of the run"
        if lost or left:
            raise FencepostError("; then ".join(filter(None, (lost, left))))

    def _lacks_packets(self, ability: Ability) -> str:
        return why_not(next(how for how, needed in NEEDS.items() if needed is ability))

    def _reached(self, name: str) -> Reached:
        """Return how packets reach a node: over the interface of its container, and nothing else does."""
        node = self._node(name)
        return replace(super()._reached(name), interface=lambda: shaping.interface_of(node.process()))

    def _lacks_clocks(self) -> str:
        """Try it in a container of each image, once for each engine and image."""
        if faketime.find() is None:
            return f"no libfaketime on this machine, which containers share; {faketime.INSTALL}"
        assert self._images is not None, "open comes first"
        images_tried = (self._images.broker, self._images.java)
        return next((why for image in images_tried if (why := self._image_lacks_clocks(image))), "")

    def _image_lacks_clocks(self, image: str) -> str:
        if image not in _CLOCKS_TRIED:
            _CLOCKS_TRIED[image] = self._try_clocks(image)
        return _CLOCKS_TRIED[image]

    def _try_clocks(self, image: str) -> str:
        """Look at the clocks of a container in which they stand still; return why they do not, or ""."""
        folder = self._site.folder("clock-trial")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / faketime.CONTROL).write_text(faketime.still_file(), encoding="utf-8")
        name = f"{self._network}-clock-trial"
        self._site.ledger.note("container", name=name, label=self._label)
        for which in Which:
            with engine.answering(f"try the clocks of image {image}"):
                try:
                    printed = self._client.containers.run(
                        image,
                        entrypoint=["python3", *faketime.LOOK],
                        environment=faketime.environment(FAKETIME, f"{CONF}/{faketime.CONTROL}", which),
                        name=name,
                        network_mode="none",
                        labels=self._labels,
                        mounts=[
                            Mount(target=CONF, source=str(folder), type="bind", read_only=True),
                            faketime_mount(),
                        ],
                        remove=True,
                        stderr=True,
                    ).decode("utf-8", errors="replace")
                except ContainerError as error:
                    printed = str(error)
            if reason := faketime.why_not(which, printed, printed):
                return f"image {image}: {reason}; expected a libfaketime of this machine that runs there"
        return ""

    @property
    def _labels(self) -> dict[str, str]:
        return {LABEL: self._site.ledger.token, HOME_LABEL: _home()}

    @property
    def _label(self) -> str:
        return f"{LABEL}={self._site.ledger.token}"

    def _add(self, name: str, *, disk: bool, fails: bool = False) -> str:
        assert self._images is not None and self._watch is not None, "open comes first"
        owner: Owner = (NODE_UID, NODE_UID) if os.geteuid() == 0 else None
        # The engine, which is root, cannot mount what another user has mounted by FUSE.
        fails = fails and os.geteuid() == 0
        data = self._site.add_disk(name, disk=disk, owner=owner, fails=fails).mounted
        conf = self._site.folder("nodes", name, "conf")
        conf.mkdir(parents=True, exist_ok=True)
        with self._mutex:
            if not self._free:
                raise UsageError(f"node {name}: network {self._network} has no address left")
            ip = self._free.pop(0)
        container = f"{self._network}-{name.lower()}"
        # Note it after the disk: later entries are undone first, and a mount in use cannot be undone.
        self._site.ledger.note("container", name=container, label=self._label)
        shape = Shape(
            name=container,
            images={Runtime.PYTHON: self._images.broker, Runtime.JAVA: self._images.java},
            network=self._network,
            gateway=self._gateway,
            ip=ip,
            user=":".join(map(str, owner or (os.geteuid(), os.getegid()))),
            labels=self._labels,
            data=data,
            conf=conf,
        )
        log = self._site.folder("nodes", name, "log.txt")
        ledger = self._site.ledger
        self._nodes[name] = NodeContainer(
            name=name, client=self._client, watch=self._watch, ledger=ledger, shape=shape, log=log
        )
        return ip

    def _sweep(self) -> None:
        """
        Remove containers and networks that the engine made for a run after its reap.

        The engine may carry out a request of a killed harness after the reap. Only containers and networks with
        this user's label are removed, and only if their run has no ledger any more.
        """
        ours = f"{HOME_LABEL}={_home()}"
        found = [*engine.containers(self._client, ours), *engine.networks(self._client, ours)]
        # After the lists: a run that began meanwhile has its ledger before its first container or network.
        living = {path.name for path in runs_dir().iterdir()}
        for each in found:
            if engine.labels_of(each).get(LABEL) not in living:
                with suppress(DockerException):  # another harness may be removing it too
                    engine.remove(each)

    def _make_network(self) -> None:
        """
        Make the run's network, and choose the addresses that nodes will get.

        Fixed addresses need a network with an explicit subnet. The engine first chooses a subnet that is free,
        and the network is then made again with exactly that subnet. If another process took it meanwhile, try
        again.
        """
        problem = ""
        for _ in range(NETWORK_TRIES_MAX):
            try:
                self._gateway, self._free = self._make_network_once()
            except APIError as error:
                problem = str(error.explanation)
                continue
            return
        raise UsageError(
            f"network {self._network}: {problem}; expected a free subnet; `docker network prune` frees some"
        )

    def _make_network_once(self) -> tuple[str, list[str]]:
        """Make the network; return its gateway, and addresses for nodes; raise APIError if its subnet is taken."""
        probe = self._client.networks.create(self._network, driver="bridge", internal=True, labels=self._labels)
        probe.reload()
        subnet = probe.attrs["IPAM"]["Config"][0]["Subnet"]
        probe.remove()
        gateway, *free = map(str, islice(ipaddress.ip_network(subnet).hosts(), 1 + NODES_MAX))
        self._client.networks.create(
            self._network,
            driver="bridge",
            internal=True,
            labels=self._labels,
            ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet, gateway=gateway)]),
        )
        return gateway, free


def _home() -> str:
    """Return the label's value for this user's ledgers; other users of the engine have other values."""
    return hashlib.sha256(f"{os.geteuid()} {runs_dir()}".encode()).hexdigest()[:16]
