"""Opens the cluster of one run on a host: its machines, the fabric between them, its services, its metadata."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from harness.ability import OF_DISKS
from harness.cluster.cluster import Cluster
from harness.environment.collector import Collector
from harness.environment.machines import RealMachines
from harness.environment.needs import needs_of
from harness.environment.node_links import (
    open_client_link,
    open_metadata_links,
    open_node_links,
    open_service_links,
    service_hosts,
)
from harness.environment.own_services import OwnServices
from harness.environment.printed_lines import PrintedLines
from harness.environment.real_time import RealTime
from harness.environment.served_host import served
from harness.environment.services import NONE_OWN, Own, beyond_links, of_metadata, start_own
from harness.events import Event
from harness.fabric.fabric import Fabric
from harness.history.file import History
from harness.hosts import MakeHost
from harness.launch import Address
from harness.model import OpType
from harness.run.spec import RunSpec
from harness.target.metadata import TargetRun
from harness.target.services import OfRun, Others, Process, Service
from harness.target.target import NodeSpec, Target, keeps_metadata


def open_machines(
    spec: RunSpec,
    folder: Path,
    history: History,
    *,
    make_host: MakeHost,
    target: Target,
    shared: Others,
    power_tier: str | None,
    own: Own = NONE_OWN,
    client_links: bool = False,
) -> Cluster:
    """
    Open the cluster of a run: host, collector, fabric, disks; no node runs yet.

    Args:
        shared: The addresses of the services that the run shares with others.
        own: Those that it must not share.
        client_links: Whether clients reach brokers through the fabric, so that they can be cut off.

    Raises:
        UsageError: The machine lacks something; everything is closed again, the history too.
    """
    collectors: list[Collector] = []

    def drain(node: str) -> None:
        collectors[0].drain(node)

    def witness(event: Event) -> None:
        history.record("fabric", OpType.INFO, event)

    with ExitStack() as made:
        made.callback(history.close)
        host = make_host(folder, power_tier=power_tier, drain=drain)
        made.callback(host.close)
        host.open()
        collector = made.enter_context(closing(Collector(host.bind_address, history, host.note_flushed)))
        collectors.append(collector)
        fabric = Fabric(host.bind_address, witness, target=target.name, wire=target.wire)
        made.callback(fabric.close)
        fabric.start()
        ids, stores = spec.draw.ids, _with_a_disk(spec, target)
        for name, number in ids.items():
            fabric.add_node(name, number)
        linked: dict[str, Mapping[str, Address]] = {}

        def tell(service: Service, process: Process, others: Others) -> OfRun:
            holding = past_links = tuple(of_metadata(target.services, others))
            if service.linked:
                linked[process.name] = open_service_links(
                    fabric, process.name, process.place.internal_outside, ids
                )
                holding = open_metadata_links(fabric, process.name, beyond_links(target.services, others))
            return OfRun(
                folder=folder.absolute(),
                protocol=spec.variant.protocol,
                rules=spec.rules,
                settings=spec.scenario.settings,
                metadata=holding,
                past_links=past_links,
                reached=linked.get(process.name, {}),
                hosts=service_hosts(fabric, process.name, ids) if service.linked else {},
            )

        started, addresses_of = start_own(host, target.services, own, shared, tell)
        held = of_metadata(target.services, addresses_of)
        answering: dict[str, Address] = {}
        run = TargetRun(
            target=target.name,
            ids=spec.draw.ids,
            folder=folder.absolute(),
            record=partial(history.record, "metadata", OpType.INFO),
            give_up=history.give_up,
            services=tuple(held),
            nodes=answering,
        )
        metadata = made.enter_context(closing(target.metadata(run)))
        operator = target.operator(run, metadata)
        reads = not spec.traits.emits_events
        printed_lines = (
            PrintedLines(spec.draw.ids, host.log_text, target.printed, history, target.name) if reads else None
        )
        services = OwnServices(host, started, metadata) if started else None
        machines = RealMachines(
            host=served(host, services),
            collector=collector,
            printed_lines=printed_lines,
            target=target,
            spec=spec,
            give_up=history.give_up,
        )
        # A disk that can fail costs throughput: every call of the node passes through the harness.
        fails = bool(needs_of(spec, target) & OF_DISKS)
        places = {name: host.add_node(name, disk=name in stores, fails=fails) for name in ids}
        answering.update((name, place.client_outside) for name, place in places.items())
        between = open_node_links(fabric, places, linked)
        for name, listening in places.items():
            place = open_client_link(fabric, name, listening) if client_links else listening
            links = open_metadata_links(fabric, name, beyond_links(target.services, addresses_of))
            machines.specs[name] = NodeSpec(
                name=name,
                broker_id=ids[name],
                place=place,
                advertised_internal=between[name].advertised,
                peers=between[name].peers,
                reached=between[name].reached,
                services=links,
                folder=folder.absolute(),
                collector=collector.address,
                settings=spec.scenario.settings,
                secret=collector.secret_of(name),
            )
        if printed_lines is not None:
            printed_lines.start()
        # All is open: from here on the cluster closes it.
        made.pop_all()
    cluster = Cluster(
        host=machines,
        target=target,
        protocol=spec.variant.protocol,
        rules=spec.rules,
        traits=spec.traits,
        ids=spec.draw.ids,
        replicas=spec.scenario.replicas,
        topic=spec.scenario.topic,
        partition=spec.scenario.partition,
        further=spec.scenario.further,
        churners=spec.scenario.clients.churners,
        removed=spec.scenario.removed,
        history=history,
        fabric=fabric,
        metadata=metadata,
        operator=operator,
        services=services,
        time=RealTime(host.require_all),
        addresses={name: str(spec.place.client_outside) for name, spec in machines.specs.items()},
    )
    history.listeners.append(cluster.listen)
    return cluster


def _with_a_disk(spec: RunSpec, target: Target) -> Collection[str]:
    """Return the nodes whose disk matters: those with a replica, and all if the metadata are on them too."""
    return spec.draw.ids if keeps_metadata(target) else spec.scenario.stores
