"""ZooKeeper as tests use it: started on a host, as an environment does for all runs, or running already."""

from __future__ import annotations

from harness.environment.services import start_shared
from harness.hosts.base import Host
from harness.launch import Address
from harness.target.services import Others
from targets.zookeeper.server import ZOOKEEPER


def zookeeper_on(host: Host) -> Address:
    """Start one server on an open host; return its address when it serves."""
    (address,) = start_shared(host, (ZOOKEEPER,))[ZOOKEEPER.name]
    return address


def shared(zookeeper: Address) -> Others:
    """Return what an environment or a cluster takes for services that run already."""
    return {ZOOKEEPER.name: (zookeeper,)}
