"""Parses the head of a scenario: its nodes, and how many records each group has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from harness.model import UsageError
from harness.registry import nearest

_BOUND: Final = re.compile(r"^(?:(?P<name>[a-z]\w*)\+)?(?P<number>\d+)$")
_RECORDS: Final = re.compile(r"^(?P<name>[a-z]\w*) (?P<low>\S+?)(?:\.\.(?P<high>\S+))?$")
_NODE: Final = re.compile(r"^[A-Z]\d*$")


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


def nodes_of(where: str, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    Return the replicas in order of assignment, and all nodes with the controller first.

    Raises:
        UsageError: the text is malformed, or names no replicas or no controller.
    """
    replicas: tuple[str, ...] = ()
    controller: tuple[str, ...] = ()
    for part in text.split(","):
        *names, role = part.split() or [""]
        for name in names:
            if not _NODE.match(name):
                raise UsageError(f"{where}: node {name!r}; expected a capital letter, such as A or B2")
        if role == "replicas" and names:
            replicas = tuple(names)
        elif role == "controller" and len(names) == 1:
            controller = tuple(names)
        else:
            near = nearest(role, ("replicas", "controller"))
            raise UsageError(f"{where}: nodes {part.strip()!r}; expected 'A B replicas' or 'C controller'{near}")
    if not replicas or not controller:
        raise UsageError(f"{where}: nodes {text!r}; expected replicas and one controller")
    if len(set(replicas)) < len(replicas):
        raise UsageError(f"{where}: nodes {text!r}: a replica twice; expected each once")
    others = tuple(name for name in replicas if name not in controller)
    return replicas, controller + others


def counts_of(heads: Sequence[tuple[str, str]]) -> Iterator[Count]:
    """
    Yield how many records each group has.

    Raises:
        UsageError: a count is malformed, or a group is counted twice.
    """
    known: list[str] = []
    for where, part in ((where, part.strip()) for where, text in heads for part in text.split(",")):
        match = _RECORDS.match(part)
        low, high = (
            (_BOUND.match(match[side] or match["low"]) for side in ("low", "high")) if match else (None, None)
        )
        if match is None or low is None or high is None or low["name"] != high["name"]:
            raise UsageError(f"{where}: records {part!r}; expected 'm1 1..4', 'm1 11' or 'm3 m2+1..m2+3'")
        name, base = match["name"], low["name"] or ""
        if base and base not in known:
            near = nearest(base, known)
            raise UsageError(f"{where}: records {part!r}: {base!r} is not counted before it{near}")
        if int(low["number"]) > int(high["number"]):
            raise UsageError(
                f"{where}: records {part!r}: the first number is the larger one; expected the smaller number first"
            )
        if name in known:
            raise UsageError(f"{where}: records {part!r}: {name!r} is counted already; expected each group once")
        known.append(name)
        yield Count(name=name, low=int(low["number"]), high=int(high["number"]), base=base)
