"""Reducers of how wide a run is: partitions, brokers and clients (harness/random_schedule/width.py draws them)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Final, TypeVar

from harness.scenario.file import Scenario
from harness.scenario.steps import Inject
from harness.search.shrink.candidates import acts_of, with_acts
from harness.workload.plan import NO_CLIENTS, ChurnPlan, Clients, ConsumerPlan, Place, ProducerPlan

P = TypeVar("P", ProducerPlan, ConsumerPlan)

_KINDS: Final = ("producers", "consumers", "churners")


def fewer_clients(scenario: Scenario) -> Iterator[Scenario]:
    """Leave out all clients, or all of a kind, or one."""
    clients = scenario.clients
    found = [NO_CLIENTS]
    found += [replace(NO_CLIENTS, **{kind: getattr(clients, kind)}) for kind in _KINDS]
    found += [replace(clients, **{kind: ()}) for kind in _KINDS]
    for kind in _KINDS:
        plans = getattr(clients, kind)
        found += [replace(clients, **{kind: plans[:at] + plans[at + 1 :]}) for at in range(len(plans))]
    for fewer in dict.fromkeys(found):
        if fewer != clients:
            yield _with_clients(scenario, fewer)


def fewer_partitions(scenario: Scenario) -> Iterator[Scenario]:
    """Leave out all further partitions, or the last one of a topic, with what steps and clients do there."""
    if scenario.further:
        yield _without(scenario, tuple(scenario.further))
    for place in reversed(tuple(scenario.further)):
        if len(scenario.further) > 1 and Place(place.topic, place.partition + 1) not in scenario.further:
            yield _without(scenario, (place,))


def fewer_further_replicas(scenario: Scenario) -> Iterator[Scenario]:
    """Leave out a replica of a further partition; the last first."""
    for place, replicas in scenario.further.items():
        for name in reversed(replicas if len(replicas) > 1 else ()):
            left = tuple(each for each in replicas if each != name)
            further = {**scenario.further, place: left}
            acts = [
                act
                for act in acts_of(scenario)
                if not (isinstance(act, Inject) and act.place == place and name in act.nodes)
            ]
            yield with_acts(replace(scenario, further=further), acts)


def fewer_brokers(scenario: Scenario) -> Iterator[Scenario]:
    """Leave out a broker that has no replica and is no controller, with the faults that hit it alone."""
    stores = {scenario.nodes[0], *scenario.stores}  # a churner's nodes too: `simpler_clients` leaves them out
    for name in reversed(scenario.nodes):
        if name in stores:
            continue
        acts = [act for act in acts_of(scenario) if not _names(act, name)]
        yield with_acts(replace(scenario, nodes=tuple(each for each in scenario.nodes if each != name)), acts)


def simpler_clients(scenario: Scenario) -> Iterator[Scenario]:
    """Give a client one partition fewer, or an option its default."""
    clients = scenario.clients
    for at, producer in enumerate(clients.producers):
        for simpler in _simpler(producer):
            producers = (*clients.producers[:at], simpler, *clients.producers[at + 1 :])
            yield _with_clients(scenario, replace(clients, producers=producers))
    for at, consumer in enumerate(clients.consumers):
        for simple in _simpler(consumer):
            consumers = (*clients.consumers[:at], simple, *clients.consumers[at + 1 :])
            yield _with_clients(scenario, replace(clients, consumers=consumers))
    for at, churner in enumerate(clients.churners):
        for plain in _simpler_churner(churner):
            churners = (*clients.churners[:at], plain, *clients.churners[at + 1 :])
            yield _with_clients(scenario, replace(clients, churners=churners))


def _simpler_churner(plan: ChurnPlan) -> Iterator[ChurnPlan]:
    if plan.replication > 1:
        yield replace(plan, replication=plan.replication - 1)
    for node in plan.nodes if len(plan.nodes) > plan.replication else ():
        yield replace(plan, nodes=tuple(each for each in plan.nodes if each != node))
    usual = ChurnPlan(name=plan.name, topic=plan.topic, nodes=plan.nodes)
    for name in ("partitions", "every_ms", "records", "within_ms"):
        if getattr(plan, name) != getattr(usual, name):
            yield replace(plan, **{name: getattr(usual, name)})


def _simpler(plan: P) -> Iterator[P]:
    for place in plan.places if len(plan.places) > 1 else ():
        yield replace(plan, places=tuple(each for each in plan.places if each != place))
    usual = type(plan)(name=plan.name, places=plan.places)
    for each in fields(plan):
        value: Any = getattr(usual, each.name)
        if getattr(plan, each.name) != value:
            yield replace(plan, **{each.name: value})


def _without(scenario: Scenario, places: tuple[Place, ...]) -> Scenario:
    further = {place: replicas for place, replicas in scenario.further.items() if place not in places}
    clients = replace(
        scenario.clients,
        producers=tuple(
            _leaving(plan, places) for plan in scenario.clients.producers if {*plan.places} - {*places}
        ),
        consumers=tuple(
            _leaving(plan, places) for plan in scenario.clients.consumers if {*plan.places} - {*places}
        ),
    )
    acts = [act for act in acts_of(scenario) if getattr(act, "place", None) not in places]
    return with_acts(replace(scenario, further=further, clients=clients), acts)


def _leaving(plan: P, places: tuple[Place, ...]) -> P:
    return replace(plan, places=tuple(place for place in plan.places if place not in places))


def _with_clients(scenario: Scenario, clients: Clients) -> Scenario:
    smaller = replace(scenario, clients=clients)
    return with_acts(smaller, acts_of(smaller))


def _names(act: object, name: str) -> bool:
    ends = (getattr(act, "src", None), getattr(act, "dst", None), getattr(act, "via", None))
    return name in ends or name in getattr(act, "nodes", ())
