"""The environment of real nodes, on any host of harness/hosts."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.ability import OF_TARGETS, Ability
from harness.clients.plain_part import PlainClients
from harness.cluster.cluster import Cluster
from harness.environment.machines import RealMachines
from harness.environment.needs import needs_of, own_services
from harness.environment.of_target import why_lacking
from harness.environment.opening import open_machines
from harness.environment.own_services import OwnServices
from harness.environment.services import start_shared
from harness.history.file import History
from harness.hosts import HOSTS, MakeHost
from harness.hosts.base import Host
from harness.model import UsageError
from harness.random_schedule.timing import REAL, Timing
from harness.registry import pick
from harness.run.environment import Environment
from harness.run.spec import RunSpec
from harness.target.clients import Client
from harness.target.operator import lacking
from harness.target.services import Others
from harness.target.target import Target


class RealEnvironment:
    """
    Real nodes, and the services that all clusters share.

    A run whose faults hit a service has services of its own, since the fault would hit all others too.

    Args:
        shared: The addresses of services that run already; None: `open` starts those that can be shared.
        client: The name of one of the target's clients; None: the target's choice.
    """

    def __init__(
        self,
        name: str,
        *,
        make_host: MakeHost,
        target: Target,
        power_tier: str | None = None,
        client: str | None = None,
        shared: Others | None = None,
    ) -> None:
        self.name = name
        self.jobs = os.cpu_count() or 1
        self.timing: Timing = REAL
        self._make_host = make_host
        self._target = target
        self._power_tier = power_tier
        self._client = client
        self._shared = shared
        self._host: Host | None = None

    def open(self, folder: Path) -> None:
        """Start the services that all clusters share, in the folder."""
        self._host = self._make_host(folder, power_tier=self._power_tier)
        self._host.open()
        self._shared = start_shared(self._host, self._target.services)

    @property
    def shared(self) -> Others | None:
        """The addresses of the services of all clusters; None before `open`."""
        return self._shared

    def lacks(self, ability: Ability) -> str:
        """Return why the target or the host cannot do it, "" if they can; asked after `open`."""
        if self._host is None:
            raise UsageError(f"environment {self.name}: asked for {ability}; expected open before")
        if ability in OF_TARGETS:
            return lacking(self._target.name, self._target.abilities, ability)
        return self._host.lacks(ability) or why_lacking(self._target, ability)

    def open_cluster(self, spec: RunSpec, folder: Path, history: History) -> Cluster:
        """Open the run's own host, and its nodes' disks and addresses; no node runs yet."""
        if self._shared is None:
            history.close()
            raise UsageError(f"environment {self.name}: no services; expected open before open_cluster")
        return open_machines(
            spec,
            folder,
            history,
            make_host=self._make_host,
            target=self._target,
            shared=self._shared,
            power_tier=self._power_tier,
            own=own_services(spec, self._target),
            client_links=Ability.CLIENT_LINKS in needs_of(spec, self._target),
        )

    def make_client(self, cluster: Cluster) -> Client:
        """Return a client over the network."""
        clients = self._target.clients
        if isinstance(clients, PlainClients):
            own = cluster.services.addresses if isinstance(cluster.services, OwnServices) else {}
            clients = replace(clients, target=self._target.name, services={**(self._shared or {}), **own})
        assert isinstance(cluster.host, RealMachines), "expected a cluster that this environment opened"
        return clients.make(
            self._client or clients.own(cluster.rules),
            history=cluster.history,
            bootstrap=cluster.clients_addresses,
            ledger=cluster.host.ledger,
        )

    def record_evidence(self, cluster: Cluster) -> None:
        """Do nothing: real nodes have no oracles."""

    def keep(self, cluster: Cluster, name: str, folder: Path) -> None:
        """Copy a node's data directory."""
        assert isinstance(cluster.host, RealMachines), "expected a cluster that this environment opened"
        cluster.host.keep(name, folder)

    def close(self) -> None:
        """Stop the services; safe to call twice."""
        if self._host is not None:
            self._host.close()


def make_environment(
    name: str, *, target: Target, power_tier: str | None, ports: range | None, machines: Path | None = None
) -> Environment:
    """Make the environment of real nodes on a host."""
    make_host = partial(pick("host", HOSTS, name), ports=ports, machines=machines)
    return RealEnvironment(name, make_host=make_host, target=target, power_tier=power_tier)
