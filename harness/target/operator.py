"""
What an operator can ask of a target. Each request is an ability (harness/ability.py) that a target may lack.

Whatever needs a request that a target lacks is not played on it, and says "TARGET has no move".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from harness.ability import OF_TARGETS, Ability
from harness.model import PreconditionError

# Those that are a method of `Operator`, with their own names.
REQUESTS: Final = (Ability.ELECT, Ability.MOVE, Ability.REMOVE, Ability.EXPIRE, Ability.DEPOSE)


class Operator:
    """
    An operator of one run's cluster. A target derives from it, and leaves out what it cannot be asked for.

    Each request returns what was asked, as one line.

    Raises:
        PreconditionError: it cannot be asked for now, or the target has no such request.
    """

    @property
    def creates(self) -> bool:
        """Whether topics are made by the operator: no client of the system can choose their nodes."""
        return type(self).create is not Operator.create

    def create(self, topic: str, assignments: Sequence[Sequence[str]]) -> str:
        """Make a topic with a partition on each of these groups of nodes, the first of each to lead."""
        raise _no(f"create {topic} on {assignments}")

    def add(self, topic: str, first: int, assignments: Sequence[Sequence[str]]) -> str:
        """Make further partitions of a topic, the first of which has this number; for one that `creates`."""
        raise _no(f"add {topic} from {first} on, on {assignments}")

    @property
    def appoints(self) -> bool:
        """Whether a controller is made by the operator: the node that starts first need not be it."""
        return type(self).appoint is not Operator.appoint

    def appoint(self, name: str) -> str:
        """Have a node be the controller; every node runs."""
        raise _no(f"appoint {name}")

    def elect(self, topic: str, partition: int, name: str) -> str:
        """Ask for a node that is in sync to lead, although no node failed."""
        raise _no(f"elect {name} for {topic}-{partition}")

    def elections_asked(self) -> object:
        """Return a mark that changes with every request for an election, granted or not; None if none is seen."""
        return None

    def move(self, topic: str, partition: int, names: Sequence[str]) -> str:
        """Ask for a partition to be moved to these nodes."""
        raise _no(f"move {topic}-{partition} to {', '.join(names)}")

    def wanted(self, topic: str, partition: int) -> tuple[str | None, ...]:
        """Return the nodes that a partition is to be on: those asked for last, else those that it is on."""
        raise _no(f"wanted nodes of {topic}-{partition}")

    def strayed(self, topic: str, partition: int) -> bool:
        """Return whether a partition was moved by a request that seemed to be refused."""
        del topic, partition
        return False

    def remove(self, topic: str, partitions: Sequence[int]) -> str:
        """Ask for these partitions, the highest, to be taken out of a topic."""
        raise _no(f"remove partitions {list(partitions)} of {topic}")

    def expire(self, name: str) -> str:
        """End a node's membership, as if the system had not heard of it for too long; return when it has ended."""
        raise _no(f"expire {name}")

    def depose(self) -> str:
        """Take its office from the controller, which has not failed."""
        raise _no("depose the controller")


def requests_of(operator: type[Operator]) -> frozenset[Ability]:
    """Return the requests that a target's own operator has a method for."""
    return frozenset(
        each for each in REQUESTS if getattr(operator, each.value) is not getattr(Operator, each.value)
    )


def lacking(target: str, able: Collection[Ability], ability: Ability) -> str:
    """Return why a target cannot be asked for it or does not show it, "" if it can, or if machines decide."""
    return f"{target} has no {ability.value}" if ability in OF_TARGETS and ability not in able else ""


def _no(request: str) -> PreconditionError:
    return PreconditionError(f"{request}: the target has no such request; expected one that has")
