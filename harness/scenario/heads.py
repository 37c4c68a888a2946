"""Parses the head of a scenario: its nodes, partitions and clients, and how many records each group has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness import limits
from harness.model import UsageError
from harness.numerals import whole
from harness.registry import nearest
from harness.target.settings import Settings, read_settings
from harness.workload.plan import Clients, Place
from harness.workload.text import read_churner, read_consumer, read_partition, read_producer

_BOUND: Final = re.compile(r"^(?:(?P<name>[a-z]\w*)\+)?(?P<number>[0-9]+)$")
_RECORDS: Final = re.compile(r"^(?P<name>[a-z]\w*) +(?P<low>\S+?)(?:\.\.(?P<high>\S+))?$")
_SERVICE: Final = re.compile(r"^(?P<name>[a-z][a-z0-9]*(?:-[a-z]+)*)(?: +(?P<count>\S+))?$")
_NODE: Final = re.compile(r"^[A-Z][0-9]{0,2}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """
    How many records a group has: drawn from `low` to `high`, both inclusive.

    Attributes:
        base: the group whose number of records is added; "" for none.
    """

    name: str
    low: int
    high: int
    base: str = ""


def nodes_of(where: str, text: str) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """
    Return the replicas in order of assignment; all nodes, `others` last; and whether a controller is named.

    The controller is the first of all nodes. The first replica is where none is named: the system may have none.

    Raises:
        UsageError: the text is malformed, or names no replicas.
    """
    replicas: tuple[str, ...] = ()
    controller: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    for part in text.split(","):
        *names, role = part.split() or [""]
        for name in names:
            if not _NODE.match(name):
                raise UsageError(f"{where}: node {name!r}; expected a capital letter, such as A or B2")
        if role == "replicas" and names and not replicas:
            replicas = tuple(names)
        elif role == "controller" and len(names) == 1 and not controller:
            controller = tuple(names)
        elif role == "others" and names and not more:
            more = tuple(names)
        elif role in ("replicas", "controller", "others") and names:
            raise UsageError(f"{where}: nodes {text!r}; expected replicas once, and one controller at most")
        else:
            near = nearest(role, ("replicas", "controller", "others"))
            raise UsageError(f"{where}: nodes {part.strip()!r}; expected 'A B replicas' or 'C controller'{near}")
    if not replicas:
        raise UsageError(f"{where}: nodes {text!r}; expected replicas, and a controller if the system has one")
    if len(set(replicas)) < len(replicas):
        raise UsageError(f"{where}: nodes {text!r}: a replica twice; expected each once")
    named, controller = bool(controller), controller or replicas[:1]
    if len({*replicas, *controller, *more}) < len({*replicas, *controller}) + len(more):
        raise UsageError(f"{where}: nodes {text!r}: others that are there already; expected each once")
    others = (*(name for name in replicas if name not in controller), *more)
    if len(controller + others) > limits.SCENARIO_NODES_MAX:
        raise UsageError(
            f"{where}: nodes: {len(controller + others)} of them; expected at most {limits.SCENARIO_NODES_MAX}"
        )
    return replicas, controller + others, named


def settings_of(heads: Sequence[tuple[str, str]], replicas: Sequence[str], groups: Sequence[str]) -> Settings:
    """Read the lines of settings; each may be there once; UsageError for one that contradicts the head."""
    found: dict[str, Any] = {}
    for place, words in heads:
        for name, value in read_settings(words, place).items():
            if name in found:
                raise UsageError(f"{place}: setting {name!r} has a value already; expected each once")
            if name == "min_isr" and value > len(replicas):
                raise UsageError(
                    f"{place}: setting 'min_isr={value}'; expected at most {len(replicas)}, the number of replicas"
                )
            found[name] = value
    settings = Settings(**found)
    check_tombstones(heads, settings, groups)
    return settings


def services_of(heads: Sequence[tuple[str, str]]) -> dict[str, int]:
    """
    Return the services that a run has for itself, each with the number of its processes.

    Raises:
        UsageError: a line is malformed, or a service is there twice.
    """
    found: dict[str, int] = {}
    for where, text in heads:
        match = _SERVICE.match(text)
        if match is None:
            raise UsageError(f"{where}: services {text!r}; expected 'NAME' or 'NAME NUMBER', such as 'NAME 3'")
        if match["name"] in found:
            raise UsageError(f"{where}: service {match['name']} is there already; expected each once")
        try:
            found[match["name"]] = whole(match["count"] or "1", 1, limits.SCENARIO_SERVICES_MAX)
        except ValueError as error:
            raise UsageError(
                f"{where}: services {text!r}; expected a whole number from 1 to {limits.SCENARIO_SERVICES_MAX}"
            ) from error
    return found


def words_of(services: Mapping[str, int]) -> tuple[str, ...]:
    """Return the words that steps have for services: each process, and each kind for all processes of it."""
    each = (f"{name}-{number}" for name, count in services.items() for number in range(1, count + 1))
    return (*services, *each)


def further_of(
    heads: Mapping[str, Sequence[tuple[str, str]]], nodes: Sequence[str], main: Place
) -> tuple[dict[Place, tuple[str, ...]], Clients]:
    """
    Return the partitions besides the main one, and the workload's clients.

    Raises:
        UsageError: a line is malformed, names what is not there, or a name is there twice.
    """
    further: dict[Place, tuple[str, ...]] = {}
    for where, text in heads.get("partition", ()):
        place, replicas = read_partition(where, text, nodes)
        if place in further or place == main:
            raise UsageError(f"{where}: partition {place} is there already; expected each once")
        further[place] = replicas
    places = (main, *further)
    clients = Clients(
        producers=tuple(read_producer(where, text, places) for where, text in heads.get("producer", ())),
        consumers=tuple(read_consumer(where, text, places) for where, text in heads.get("consumer", ())),
        churners=tuple(read_churner(where, text, places, nodes) for where, text in heads.get("churner", ())),
    )
    _check_names(heads, clients)
    for place in places:
        if place.partition and Place(place.topic, place.partition - 1) not in places:
            where = heads["partition"][0][0]
            raise UsageError(f"{where}: {place} without {place.topic}-{place.partition - 1}; expected 0, 1, 2, …")
    return further, clients


def _check_names(heads: Mapping[str, Sequence[tuple[str, str]]], clients: Clients) -> None:
    """Check that no two clients have one name, and no two churners one topic."""
    names: set[str] = set()
    for where, text in (line for kind in ("producer", "consumer", "churner") for line in heads.get(kind, ())):
        name = text.split()[0]
        if name in names:
            raise UsageError(f"{where}: a second client {name!r}; expected each name once")
        names.add(name)
    topics: set[str] = set()
    for (where, _), churner in zip(heads.get("churner", ()), clients.churners, strict=True):
        if churner.topic in topics:
            raise UsageError(f"{where}: a second churner of topic {churner.topic!r}; expected each topic once")
        topics.add(churner.topic)


def counts_of(heads: Sequence[tuple[str, str]]) -> Iterator[Count]:
    """
    Yield how many records each group has.

    Raises:
        UsageError: a count is malformed or too large, or a group is counted twice.
    """
    most: dict[str, int] = {}  # group -> how many records it has at most
    for where, part in ((where, part.strip()) for where, text in heads for part in text.split(",")):
        match = _RECORDS.match(part)
        low, high = (
            (_BOUND.match(match[side] or match["low"]) for side in ("low", "high")) if match else (None, None)
        )
        if match is None or low is None or high is None or low["name"] != high["name"]:
            raise UsageError(f"{where}: records {part!r}; expected 'm1 1..4', 'm1 11' or 'm3 m2+1..m2+3'")
        name, base = match["name"], low["name"] or ""
        if base and base not in most:
            near = nearest(base, most)
            raise UsageError(f"{where}: records {part!r}: {base!r} is not counted before it{near}")
        first, last = (_number(bound["number"], f"{where}: records {part!r}") for bound in (low, high))
        if first > last:
            raise UsageError(
                f"{where}: records {part!r}: the first number is the larger one; expected the smaller number first"
            )
        if not (first or base):
            raise UsageError(f"{where}: records {part!r}: a group without a record; expected numbers from 1")
        if name in most:
            raise UsageError(f"{where}: records {part!r}: {name!r} is counted already; expected each group once")
        most[name] = last + most.get(base, 0)
        if sum(most.values()) > limits.SCENARIO_RECORDS_MAX:
            raise UsageError(
                f"{where}: records {part!r}: {sum(most.values())} in all groups; "
                f"expected at most {limits.SCENARIO_RECORDS_MAX}"
            )
        if len(most) > limits.SCENARIO_GROUPS_MAX:
            raise UsageError(f"{where}: {len(most)} groups; expected at most {limits.SCENARIO_GROUPS_MAX}")
        yield Count(name=name, low=first, high=last, base=base)


def check_tombstones(heads: Sequence[tuple[str, str]], settings: Settings, groups: Sequence[str]) -> None:
    """
    Check that the records that are to be tombstones are there, and have keys to delete.

    Raises:
        UsageError: a name is no group of records, or there twice, or records have no keys.
    """
    if not settings.tombstones:
        return
    where = next(where for where, words in heads if any(word.startswith("tombstones=") for word in words.split()))
    said = f"{where}: setting 'tombstones={','.join(settings.tombstones)}'"
    for name in settings.tombstones:
        if name not in groups:
            near = nearest(name, groups)
            raise UsageError(f"{said}: {name!r}; expected groups of records: of {', '.join(groups)}{near}")
    if len(set(settings.tombstones)) < len(settings.tombstones):
        raise UsageError(f"{said}: a group twice; expected each once")
    if not settings.keys:
        raise UsageError(f"{said} of records without keys; expected keys=NUMBER too: a tombstone deletes a key")


def _number(digits: str, where: str) -> int:
    try:
        return whole(digits, 0, limits.SCENARIO_RECORDS_MAX)
    except ValueError as error:
        raise UsageError(f"{where}; expected at most {limits.SCENARIO_RECORDS_MAX} records") from error
