"""
The reducers: each returns smaller forms of a schedule, the smallest first; `REDUCERS` has their order.

A new field of a scenario, or a new option of a step, is reduced by one more function and one more line there. What
no reducer knows passes through unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from itertools import combinations
from typing import Any, Final

from harness.scenario.file import Scenario
from harness.scenario.steps import Inject, Produce
from harness.search.random_runs import is_written
from harness.search.shrink.breadth import (
    fewer_brokers,
    fewer_clients,
    fewer_further_replicas,
    fewer_partitions,
    simpler_clients,
)
from harness.search.shrink.candidates import acts_of, replaced, without
from harness.search.shrink.minimal import Reducer
from harness.search.shrink.names import nodes_named, with_plain_names
from harness.search.shrink.times import awaiting_instead, shorter_times
from harness.target.settings import Settings

# Up to this many steps each pair is tried too: it may be that neither a kill nor its restart is needed.
PAIRS_STEPS_MAX: Final = 24
# These settings stay: with the default of the first a hang takes long on real processes.
_KEPT_SETTINGS: Final = ("heal_within_s",)


def without_pairs(scenario: Scenario) -> Iterator[Scenario]:
    """Leave out two steps that need each other."""
    if len(scenario.steps) <= PAIRS_STEPS_MAX:
        for pair in combinations(range(len(scenario.steps)), 2):
            yield without(scenario, pair)


def fewer_sufferers(scenario: Scenario) -> Iterator[Scenario]:
    """Leave out one node of a fault that hits several."""
    for at, act in enumerate(acts_of(scenario)):
        if isinstance(act, Inject) and len(act.nodes) > 1:
            for name in act.nodes:
                left = tuple(each for each in act.nodes if each != name)
                yield replaced(scenario, at, replace(act, nodes=left))


def fewer_replicas(scenario: Scenario) -> Iterator[Scenario]:
    """Leave out a replica that no step names; the last first."""
    named = nodes_named(scenario)
    for name in reversed(scenario.replicas if not scenario.further and not scenario.clients.churners else ()):
        others = tuple(each for each in scenario.replicas if each != name)
        if name in named or len(others) < max(2, scenario.settings.min_isr):
            continue
        left = tuple(each for each in scenario.nodes if each != name)
        yield replace(scenario, replicas=others, nodes=left)


def controller_that_replicates(scenario: Scenario) -> Iterator[Scenario]:
    """Make a replica the controller, in place of a node of its own that no step names; the last replica first."""
    controller = scenario.nodes[0]
    if (
        scenario.further
        or scenario.clients.churners
        or controller in scenario.replicas
        or controller in nodes_named(scenario)
    ):
        return
    for name in reversed(scenario.replicas):
        others = (each for each in scenario.nodes[1:] if each != name)
        yield replace(scenario, nodes=(name, *others))


def fewer_records(scenario: Scenario) -> Iterator[Scenario]:
    """Give all groups one record, or else one group fewer records: one, or half of them."""
    ones = tuple(replace(count, low=1, high=1, base="") for count in scenario.records)
    if ones != scenario.records:
        yield replace(scenario, records=ones)
    for at, count in enumerate(scenario.records):
        for number in dict.fromkeys((1, count.high // 2)):
            if not count.base and 0 < number < count.high:
                fewer = replace(count, low=number, high=number)
                yield replace(scenario, records=(*scenario.records[:at], fewer, *scenario.records[at + 1 :]))


def simpler_produces(scenario: Scenario) -> Iterator[Scenario]:
    """Leave out an option of a produce; in a written scenario, wait for its outcome."""
    for at, act in enumerate(acts_of(scenario)):
        if isinstance(act, Produce):
            names = ("singly", "codec", "via", "age_ms", *(("outcome",) if is_written(scenario) else ()))
            for name, default in _defaults(act, names).items():
                yield replaced(scenario, at, replace(act, **{name: default}))


def default_settings(scenario: Scenario) -> Iterator[Scenario]:
    """Give a setting its default."""
    for name, default in _defaults(scenario.settings, [each.name for each in fields(Settings)]).items():
        if name not in _KEPT_SETTINGS:
            settings = replace(scenario.settings, **{name: default})
            # Only records with keys are tombstones.
            settings = settings if settings.keys else replace(settings, tombstones=())
            yield replace(scenario, settings=settings)


def _defaults(value: Any, names: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, of these, that have another value than their default, with the default."""
    found = {each.name: each.default for each in fields(value) if each.name in names}
    return {
        name: default
        for name, default in found.items()
        if default is not MISSING and getattr(value, name) != default
    }


# The order matters for what is found, not for its being minimal: first what makes later tries fewer and faster.
REDUCERS: Final[tuple[Reducer, ...]] = (
    fewer_clients,
    fewer_partitions,
    fewer_further_replicas,
    fewer_brokers,
    simpler_clients,
    without_pairs,
    fewer_sufferers,
    controller_that_replicates,
    fewer_replicas,
    fewer_records,
    default_settings,
    simpler_produces,
    shorter_times,
    awaiting_instead,
    with_plain_names,
)
