"""
Have the leader of a stream step down again and again, whoever it is: terms of which some have no message.

Each stepdown is asked for as soon as somebody leads again; the last one prefers the node that the step names.
Source:  NATS's documentation, "nats stream cluster step-down"; KAFKA-6361 (elections faster than a truncation).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError
from targets.nats.nemeses.of_nats import operator_of

STEPDOWNS: Final = 10
# How many of them must have raised the term, so that it was a storm: the same one may be asked twice.
ROSE_MIN: Final = STEPDOWNS // 2
# How long one may wait until there is a leader that can be asked: an election by a timeout takes up to 9 s.
ASKED_S_MAX: Final = 20.0
# How long an election by a stepdown may take before the node is asked for again.
ELECTED_S_MAX: Final = 2.0


def inject(cluster: Cluster, name: str) -> str:
    """Ask for the stepdowns; the probe is a term that rose as often, and the node that leads then."""
    place, operator = cluster.named.place, operator_of(cluster)
    why = ["nobody was asked"]

    def granted(request: Callable[[], object]) -> bool:
        try:
            request()
        except PreconditionError as error:
            why.append(str(error))
            return False
        return True

    def ask(request: Callable[[], object]) -> None:
        if not cluster.time.until(lambda: cluster.cancelled or granted(request), ASKED_S_MAX):
            raise PreconditionError(f"stepdown-storm {name}: {why[-1]}")

    for _ in range(STEPDOWNS):
        ask(lambda: operator.step_down(*place))

    # Who is preferred need not be who is elected: it may lag for a moment.
    def leads() -> bool:
        asked = granted(lambda: operator.elect(*place, name))
        return asked and cluster.time.until(lambda: cluster.named.leader() == name, ELECTED_S_MAX)

    if not cluster.time.until(lambda: cluster.cancelled or leads(), ASKED_S_MAX):
        raise PreconditionError(f"stepdown-storm {name}: {cluster.named.leader()} leads; expected {name} then")
    return f"{STEPDOWNS} stepdowns, and more until {name} led"


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """Note the stream's term; return what shows that it hardly rose."""
    del name  # whose leading is waited for before
    before = _term(cluster)

    def unchanged() -> str:
        rose = _term(cluster) - before
        return "" if rose >= ROSE_MIN else f"the term rose by {rose}; expected {ROSE_MIN} at least"

    return unchanged


def _term(cluster: Cluster) -> int:
    truth = cluster.metadata.truth(*cluster.named.place)
    return 0 if truth is None else truth.epoch


FAULT = Fault(
    name="stepdown-storm",
    doc=f"have whoever leads the stream step down {STEPDOWNS} times, one after another, and the node lead then",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.LEADER_MOVED,
    band=Band.MARK,
    weight=0.5,
    needs=(Ability.ELECT,),
)
