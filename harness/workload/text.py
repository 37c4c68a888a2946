"""
Reads and prints a workload's clients and a run's further partitions, one line each, as a schedule has them.

    partition orders-0 B C
    producer  p1 log-0 orders-0 acks=all,1 batch=1..5 codecs=none,gzip every_ms=5..40 within_ms=400
    consumer  c1 log-0 via=every every_ms=2..20 wait_ms=40 max_bytes=4096 seek=0.1
    consumer  c2 log-0 client=aiokafka kill_after=20..60
    churner   n1 temp A B C partitions=2 replication=3 every_ms=5..40 records=1..3 within_ms=120

An option that is left out has its default, and is not printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Final, TypeAlias, TypeVar

from harness import limits
from harness.model import UsageError
from harness.numerals import whole
from harness.registry import nearest
from harness.workload.plan import ACKS_ALL, CODEC_NAMES, ChurnPlan, ConsumerPlan, Library, Place, ProducerPlan, Via

P = TypeVar("P", ProducerPlan, ConsumerPlan)
Plan: TypeAlias = ProducerPlan | ConsumerPlan | ChurnPlan

_PLACE: Final = re.compile(r"([a-z][a-z0-9]*)-([0-9]{1,4})")
_NAME: Final = re.compile(r"[a-z][a-z0-9]*")
_SHARE: Final = re.compile(r"0(\.[0-9]{1,3})?|1")
_ACKS: Final = {"0": 0, "1": 1, "all": -1}
_YES_NO: Final = {"yes": True, "no": False}
_ACKS_TEXT: Final = {number: word for word, number in _ACKS.items()}


def place_of(text: str) -> Place:
    """Return the partition that a word names; raise ValueError if it names none."""
    match = _PLACE.fullmatch(text)
    if match is None or str(int(match[2])) != match[2]:
        raise ValueError(text)
    return Place(match[1], int(match[2]))


def read_partition(where: str, text: str, nodes: Collection[str]) -> tuple[Place, tuple[str, ...]]:
    """Return a further partition and its replicas, the first of which leads; raise UsageError."""
    word, *replicas = text.split() or [""]
    try:
        place = place_of(word)
    except ValueError as error:
        raise UsageError(
            f"{where}: partition {word!r}; expected a topic and a number, such as orders-0"
        ) from error
    for node in replicas:
        if node not in nodes:
            near = nearest(node, nodes)
            raise UsageError(f"{where}: partition {text!r}: {node!r}; expected nodes of {', '.join(nodes)}{near}")
    if not replicas or len(set(replicas)) < len(replicas):
        raise UsageError(f"{where}: partition {text!r}; expected replicas, each once")
    return place, tuple(replicas)


def read_producer(where: str, text: str, places: Collection[Place]) -> ProducerPlan:
    """Return a producer's plan; raise UsageError with the word, the place and what was expected."""
    plan = _read(ProducerPlan, "producer", where, text, places)
    if plan.idempotent and (set(plan.acks) != {ACKS_ALL} or not plan.retries):
        raise UsageError(f"{where}: producer {plan.name}: idempotent=yes; expected acks=all and retries with it")
    return plan


def read_consumer(where: str, text: str, places: Collection[Place]) -> ConsumerPlan:
    """Return a consumer's plan; raise UsageError with the word, the place and what was expected."""
    return _read(ConsumerPlan, "consumer", where, text, places)


def read_churner(where: str, text: str, places: Collection[Place], nodes: Collection[str]) -> ChurnPlan:
    """
    Return a churner's plan; raise UsageError with the word, the place and what was expected.

    Args:
        places: the run's partitions; their topics are there all the time, so that none can be a churner's.
        nodes: the run's brokers.
    """
    name, words, found = _split(ChurnPlan, "churner", where, text)
    topic, *chosen = words or [""]
    taken = {place.topic for place in places}
    if not _NAME.fullmatch(topic) or topic in taken:
        raise UsageError(
            f"{where}: churner {name}: topic {topic!r}; expected a name of small letters and digits that is none "
            f"of {', '.join(sorted(taken))}: steps and other clients use those"
        )
    for node in chosen:
        if node not in nodes:
            near = nearest(node, nodes)
            raise UsageError(f"{where}: churner {name}: {node!r}; expected nodes of {', '.join(nodes)}{near}")
    if not chosen or len(set(chosen)) < len(chosen):
        raise UsageError(f"{where}: churner {text!r}; expected its topic and then its nodes, each once")
    plan = ChurnPlan(name=name, topic=topic, nodes=tuple(chosen), **found)
    if plan.replication > len(chosen):
        raise UsageError(
            f"{where}: churner {name}: {len(chosen)} nodes; expected at least {plan.replication}, a node for each "
            "replica of a partition (replication)"
        )
    return plan


def line_of(plan: Plan) -> str:
    """Return a plan's line, without the word in front; reading it returns the same plan."""
    about = (plan.topic, *plan.nodes) if isinstance(plan, ChurnPlan) else map(str, plan.places)
    words = [plan.name, *about]
    for each in fields(plan):
        if each.name in _OPTIONS and getattr(plan, each.name) != each.default:
            assert each.default is not MISSING, f"{each.name} has no default"
            words.append(f"{each.name}={_OPTIONS[each.name][1](getattr(plan, each.name))}")
    return " ".join(words)


def _read(kind: type[P], what: str, where: str, text: str, places: Collection[Place]) -> P:
    name, words, found = _split(kind, what, where, text)
    chosen = [_known_place(f"{where}: {what} {name}", word, places) for word in words]
    if not chosen or len(set(chosen)) < len(chosen):
        raise UsageError(f"{where}: {what} {text!r}; expected its partitions, each once")
    return kind(name=name, places=tuple(chosen), **found)


def _split(kind: type[Plan], what: str, where: str, text: str) -> tuple[str, list[str], dict[str, Any]]:
    """Return a client's name, its words without an option, and the values of its options."""
    name, *words = text.split() or [""]
    if not _NAME.fullmatch(name):
        raise UsageError(f"{where}: {what} {name!r}; expected a name of small letters and digits, such as p1")
    known = [each.name for each in fields(kind) if each.name in _OPTIONS]
    found: dict[str, Any] = {}
    plain: list[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        if not equals:
            plain.append(word)
            continue
        if option not in known:
            near = nearest(option, known)
            raise UsageError(
                f"{where}: {what} {name}: option {word!r}; expected NAME=VALUE with a name of "
                f"{', '.join(known)}{near}"
            )
        if option in found:
            raise UsageError(f"{where}: {what} {name}: option {word!r} twice; expected each once")
        try:
            found[option] = _OPTIONS[option][0](value)
        except (ValueError, KeyError) as error:
            raise UsageError(
                f"{where}: {what} {name}: option {word!r}; expected {option}={_OPTIONS[option][2]}"
            ) from error
    return name, plain, found


def _known_place(where: str, word: str, places: Collection[Place]) -> Place:
    names = {str(place): place for place in places}
    if word not in names:
        raise UsageError(f"{where}: {word!r}; expected a partition of {', '.join(names)}{nearest(word, names)}")
    return names[word]


# --- options: how a value is read, how it is shown, what is expected ----------------------------------------
def _span(least: int, most: int) -> Callable[[str], tuple[int, int]]:
    def read(text: str) -> tuple[int, int]:
        low, dots, high = text.partition("..")
        found = whole(low, least, most), whole(high if dots else low, least, most)
        if found[0] > found[1]:
            raise ValueError(text)
        return found

    return read


def _show_span(span: tuple[int, int]) -> str:
    return f"{span[0]}..{span[1]}" if span[0] != span[1] else str(span[0])


def _several(one: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(one(word) for word in text.split(","))


def _codec(text: str) -> str:
    if text not in CODEC_NAMES:
        raise ValueError(text)
    return text


def _share(text: str) -> float:
    if not _SHARE.fullmatch(text):
        raise ValueError(text)
    return float(text)


def _number(least: int, most: int) -> Callable[[str], int]:
    return lambda text: whole(text, least, most)


def _commas(values: Sequence[object]) -> str:
    return ",".join(map(str, values))


_MS_MAX: Final = 1000 * limits.SCENARIO_TIME_S_MAX
_KILL_AFTER_MAX: Final = limits.WORKLOAD_KILL_AFTER_MAX
_OPTIONS: Final[Mapping[str, tuple[Callable[[str], Any], Callable[[Any], str], str]]] = {
    "acks": (
        _several(_ACKS.__getitem__),
        lambda acks: _commas([_ACKS_TEXT[each] for each in acks]),
        "0, 1 or all, or several of them with commas",
    ),
    "batch": (_span(1, limits.WORKLOAD_BATCH_MAX), _show_span, f"N..M, up to {limits.WORKLOAD_BATCH_MAX}"),
    "codecs": (_several(_codec), _commas, f"{', '.join(CODEC_NAMES)}, or several of them with commas"),
    "every_ms": (_span(0, _MS_MAX), _show_span, "N..M, in milliseconds"),
    "within_ms": (_number(1, _MS_MAX), str, "N, in milliseconds"),
    "pad": (_number(0, limits.WORKLOAD_VALUE_BYTES_MAX), str, f"N, up to {limits.WORKLOAD_VALUE_BYTES_MAX} bytes"),
    "keys": (_number(0, limits.WORKLOAD_BATCH_MAX), str, f"N, up to {limits.WORKLOAD_BATCH_MAX}"),
    "tombstones": (_share, lambda share: f"{share:g}", "a share from 0 to 1"),
    "together": (_share, lambda share: f"{share:g}", "a share from 0 to 1"),
    "retries": (_number(0, 1_000), str, "N, up to 1000"),
    "idempotent": (_YES_NO.__getitem__, lambda idempotent: "yes" if idempotent else "no", "yes or no"),
    "via": (Via, str, " or ".join(Via)),
    "client": (Library, str, " or ".join(Library)),
    "wait_ms": (_number(0, _MS_MAX), str, "N, in milliseconds"),
    "max_bytes": (_number(1, 2**31 - 1), str, "N, in bytes"),
    "lookups": (_share, lambda share: f"{share:g}", "a share from 0 to 1"),
    "partitions": (_number(1, limits.WORKLOAD_PARTITIONS_MAX), str, f"N, up to {limits.WORKLOAD_PARTITIONS_MAX}"),
    "replication": (_number(1, limits.SCENARIO_NODES_MAX), str, f"N, up to {limits.SCENARIO_NODES_MAX}"),
    "records": (_span(1, limits.WORKLOAD_BATCH_MAX), _show_span, f"N..M, up to {limits.WORKLOAD_BATCH_MAX}"),
    "kill_after": (
        _span(1, limits.WORKLOAD_KILL_AFTER_MAX),
        _show_span,
        f"N..M, up to {limits.WORKLOAD_KILL_AFTER_MAX}",
    ),
    "seek": (_share, lambda share: f"{share:g}", "a share from 0 to 1"),
}
