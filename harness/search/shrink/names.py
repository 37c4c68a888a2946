"""The names in a schedule: which nodes its steps name, and a schedule with the names that a reader expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from string import ascii_uppercase
from typing import Any

from harness.random_schedule.final_records import FINAL_RECORDS
from harness.scenario.file import Scenario
from harness.scenario.offsets import Mark
from harness.scenario.steps import Produce
from harness.search.shrink.candidates import acts_of, with_acts


def nodes_named(scenario: Scenario) -> set[str]:
    """Return the nodes that steps name."""
    return {word for act in acts_of(scenario) for word in str(act).split() if word in scenario.nodes}


def with_plain_names(scenario: Scenario) -> Iterator[Scenario]:
    """Name the replicas A, B, … in their order, another controller next, and groups m1, m2, … as they are sent."""
    apart = [name for name in scenario.nodes if name not in scenario.replicas]
    nodes = dict(zip((*scenario.replicas, *apart), ascii_uppercase, strict=False))
    sent = [act.group for act in acts_of(scenario) if isinstance(act, Produce)]
    others = [count.name for count in scenario.records if count.name not in (*sent, *FINAL_RECORDS)]
    groups = {name: f"m{number}" for number, name in enumerate(dict.fromkeys((*sent, *others)), start=1)}
    names = {**nodes, **groups}
    if not (scenario.further or scenario.clients.churners) and any(old != new for old, new in names.items()):
        order = sorted(scenario.records, key=lambda count: [*groups, *FINAL_RECORDS].index(count.name))
        yield with_acts(
            replace(
                scenario,
                replicas=tuple(nodes[name] for name in scenario.replicas),
                nodes=tuple(nodes[name] for name in scenario.nodes),
                records=tuple(
                    replace(count, name=groups.get(count.name, count.name), base=groups.get(count.base, ""))
                    for count in order
                ),
                settings=replace(scenario.settings, tombstones=_renamed(scenario.settings.tombstones, groups)),
            ),
            [_renamed(act, names) for act in acts_of(scenario)],
        )


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a step, or a part of one, with other names of nodes and groups."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, tuple):
        return tuple(_renamed(each, names) for each in value)
    if isinstance(value, Mark):
        return replace(value, name=names.get(value.name, value.name))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _renamed(getattr(value, each.name), names) for each in fields(value)})
    return value
