"""
The least that a system must say to be a target: a class of PlainTarget leaves out what it has no need of.

A part that is left out is an ability that the target lacks.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Final

from harness.ability import Ability
from harness.launch import Launch
from harness.model import UsageError
from harness.registry import pick
from harness.target.clients import TargetClients
from harness.target.logs import Logs
from harness.target.metadata import Metadata, TargetRun
from harness.target.operator import Operator, requests_of
from harness.target.services import Service
from harness.target.target import NodeSpec, Printed
from harness.target.traits import Traits
from harness.target.wire import Wire
from harness.target.words import Lacks, Means

_TO: Final = "to"


class PlainOperator(Operator):
    """
    An operator, who has a method for each request that the system knows.

    Attributes:
        run: the run whose cluster is asked.
    """

    def __init__(self, run: TargetRun) -> None:
        self.run = run


class PlainTarget(ABC):
    """
    A target; see harness/target/target.py for every call.

    Attributes:
        versions: version's name -> its rules as text, from the oldest to the newest.
        asked: the operator, whose methods are what can be asked for.
        shows: what the metadata show, of members and a controller.
        always: what is true of every version.
        place: the partition that the nodes' lines are about, the one that the system has.
        patterns: what a line that a node prints means -> a regular expression that is searched in the line, with a
            group `to` for an offset.
    """

    name: ClassVar[str]
    versions: ClassVar[Mapping[str, Mapping[str, str]]]
    clients: ClassVar[TargetClients]
    logs: ClassVar[Logs]
    wire: ClassVar[Wire | None] = None
    words: ClassVar[Mapping[str, Means | Lacks]] = {}
    asked: ClassVar[type[PlainOperator]] = PlainOperator
    shows: ClassVar[Collection[Ability]] = ()
    downloads = None
    clocks = None
    services: ClassVar[Sequence[Service]] = ()
    faults: ClassVar[Mapping[str, object]] = {}
    patterns: ClassVar[Mapping[str, str]] = {}
    always: ClassVar[Traits] = Traits()
    place: ClassVar[tuple[str, int]] = ("log", 0)

    @property
    def abilities(self) -> frozenset[Ability]:
        """What can be asked for, and what the metadata show."""
        return requests_of(self.asked) | {*self.shows}

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """Return the versions with their rules."""
        return self.versions

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return a version's rules with these changes; raise UsageError for a rule that no version has."""
        rules = dict(pick(f"version of {self.name}", self.versions, protocol))
        for change in changes:
            name, equals, value = change.partition("=")
            if not equals or name not in rules:
                known = ", ".join(rules) or "none"
                raise UsageError(f"rule {change!r}; expected NAME=VALUE with a name of {known}")
            rules[name] = value
        return rules

    def traits(self, protocol: str, changes: Sequence[str]) -> Traits:
        """Return what is true of every version."""
        del protocol, changes
        return self.always

    def require(self, rules: Mapping[str, str]) -> None:
        """Lack nothing: this machine has what it needs."""
        del rules

    @abstractmethod
    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        """Return how to start a node."""

    @abstractmethod
    def metadata(self, run: TargetRun) -> Metadata:
        """Open the metadata of a run."""

    def operator(self, run: TargetRun, metadata: Metadata) -> Operator:
        """Return the operator of a run."""
        del metadata
        return self.asked(run)

    def printed(self, line: str) -> Printed | None:
        """Return what the first pattern that the line has means."""
        for what, pattern in self.patterns.items():
            if (found := re.search(pattern, line)) is not None:
                to = found[_TO] if _TO in found.re.groupindex else None
                topic, partition = self.place
                return Printed(what=what, topic=topic, partition=partition, to=None if to is None else int(to))
        return None
