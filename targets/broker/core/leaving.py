"""
A broker that is asked to end has others lead its partitions first, so that clients need not wait for its failure.

It asks as an operator does, in the same node. One election for each partition gives it another leader and takes
this broker out of the ISR, so that no record waits for a follower that is about to end; there it fetches no more,
and so is not taken back (KAFKA-14140). It has left once it leads none that somebody else could lead, or when its
time is up; what is only its own ends with it.
Kafka's broker sends its controller a request of its own for it (ControlledShutdown).
Source:  Kafka, KafkaServer.controlledShutdown, KafkaController.doControlledShutdown; V3 has no such thing.
"""

from __future__ import annotations

from dataclasses import dataclass

from targets.broker.core.events import Left
from targets.broker.core.state import Core, Role
from targets.broker.core.wishes import Wishes
from targets.broker.core.zookeeper import ELECTIONS, ZkCreate, ZkError, ZkGet, ZkMulti, ZkNode, ZkResult, ZkSet


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitRequests:
    """What operators ask for, and no controller has taken yet, is being read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitSuccession:
    """That this broker is to lead nothing is being asked for."""


def begin(core: Core) -> None:
    """Begin to leave; a broker that was told so before goes on."""
    if core.state.leaving:
        return
    core.state.leaving = True
    core.observe("leaving", {"leads": _led_with_others(core)})
    core.after_ms(("left",), core.config.controlled_shutdown_ms)
    ask(core)


def ask(core: Core) -> None:
    """Ask to lead nothing that others could, or leave."""
    if not check(core):
        core.ask(AwaitRequests(), ZkGet(path=ELECTIONS))


def check(core: Core) -> bool:
    """Leave if nobody else could lead what this broker leads; return whether it does."""
    if not _led_with_others(core):
        leave(core)
        return True
    return False


def leave(core: Core) -> None:
    """End, whatever is still led here."""
    for key in (("left",), ("leave",)):
        core.state.timers.drop(key)
    core.effects.append(Left())


def _led_with_others(core: Core) -> int:
    """Return how many partitions are led here that another member of the ISR could lead."""
    led = (replica for replica in core.state.replicas.values() if replica.role is Role.LEADER)
    return sum(1 for replica in led if any(member != core.config.broker_id for member in replica.isr))


def on_requests(core: Core, result: ZkResult) -> None:
    """Write what is wanted beside what others want; look again after a while, also if it was refused."""
    node = result if isinstance(result, ZkNode) else None
    if node is not None or result is ZkError.NO_NODE:
        data = Wishes(leaving=frozenset({core.config.broker_id})).beside(None if node is None else node.data)
        write: ZkCreate | ZkSet = ZkCreate(path=ELECTIONS, data=data)
        if node is not None:
            write = ZkSet(path=ELECTIONS, data=data, version=node.version)
        core.ask(AwaitSuccession(), ZkMulti(ops=(write,)))
    core.after_ms(("leave",), core.config.controller_backoff_ms)
