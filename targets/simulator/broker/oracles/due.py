"""
What a step must do at once: move a high watermark with its ISR, drop what a closed connection waited for, and fire
every timer that is due; and what none may do: ask ZooKeeper for more at once than its limit, or count a follower's
fetch for more than the leader's own log has.

Source:  Kafka Replication Design V3, G: the high watermark advances whenever the ISR or a log end in it changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from targets.broker.core.events import Event, Hungup, Tick, ZkAsk
from targets.broker.core.messages import FetchRequest, TopicPartition
from targets.broker.core.state import Replica, Role, State
from targets.broker.core.timers import TimerKey
from targets.broker.core.waits import Waits
from targets.broker.core.zookeeper import ZkMulti
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS


class Due:
    """Judges single steps of one world's cores."""

    def __init__(self, world: World, tps: Collection[TopicPartition]) -> None:
        """Start with no ISR seen."""
        self._world = world
        self._tps = tps
        self._isrs: dict[tuple[str, TopicPartition], tuple[int, ...]] = {}
        self._times: dict[str, dict[TimerKey, int]] = {}

    def asked(self, name: str, effect: ZkAsk) -> str:
        """Return what is wrong with an ask, "" if nothing: a single operation may be larger than the limit."""
        weight = sum(len(op.ops) if isinstance(op, ZkMulti) else 1 for op in effect.ops)
        most = self._world.nodes[name].config.together.ask_ops_max
        if weight <= most or len(effect.ops) == 1:
            return ""
        return f"{name} asks ZooKeeper for {weight} operations at once, and may for {most}"

    def wrong(self, name: str, event: Event, state: State) -> Iterator[tuple[TopicPartition | None, str]]:
        """Yield what a step left undone, with the partition that it is about."""
        if isinstance(event, Hungup):
            waiting_of: tuple[tuple[str, Waits[Any]], ...]
            waiting_of = ("fetch", state.fetches), ("produce", state.produces), ("deletion", state.deletions)
            for what, waits in waiting_of:
                callers = [waiting.caller for waiting in waits.requests.values()]
                if any(caller.connection == event.connection for caller in callers):
                    yield None, f"{name} lets a {what} wait whose connection is closed"
        elif isinstance(event, Tick):
            if self._world.nodes[name].held_up(self._world.clock.now_ns):
                return  # the step was before the time that its disk took
            now_ns = self._world.nodes[name].clock.now_ns
            late = sorted(str(key) for key, at_ns in state.timers.times() if at_ns <= now_ns)
            if late:
                yield None, f"{name} has not done what was due: {late[0]}"

    def counted(self, name: str, state: State, request: FetchRequest) -> Iterator[tuple[TopicPartition, str]]:
        """Yield leaders that take a follower's fetch for more than their own log has."""
        for part in request.partitions:
            replica = state.replicas.get(part.tp) if part.tp in self._tps else None
            if replica is None or replica.role is not Role.LEADER:
                continue
            progress, end = replica.progress.get(request.replica_id), replica.log.end_offset
            if progress is not None and progress.end > end:
                who = self._world.name_of(request.replica_id)
                yield (
                    part.tp,
                    f"{name} counts {who} as having all below {progress.end}, and its own log ends at {end}",
                )

    def timers(self, name: str, event: Event, state: State) -> str:
        """Return what is wrong with a node's timers after a step, "" if nothing; to be asked at every step."""
        before, times = self._times.get(name, {}), dict(state.timers.times())
        self._times[name] = times
        first_ns = min(times.values(), default=state.armed_ns)
        if first_ns < state.armed_ns:
            return f"{name} has a timer that is due {_ms(state.armed_ns - first_ns)} before it wakes"
        if isinstance(event, Tick) and before.keys() - times.keys():
            now_ns, ended = self._world.nodes[name].clock.now_ns, sorted(before.keys() - times.keys(), key=str)
            # A start in the present session ends the timers of an earlier one, and a deletion of old records the
            # waits of those who ask for them.
            early = [key for key in ended if before[key] > now_ns and ("paths",) not in ended]
            if times.get(("retention",)) != before.get(("retention",)):
                early = [key for key in early if key[0] != "fetch-wait"]
            if early:
                return f"{name} fires {early[0]} {_ms(before[early[0]] - now_ns)} too early"
        return ""

    def behind(self, name: str, state: State) -> Iterator[tuple[TopicPartition, str]]:
        """Yield leaders whose ISR has changed, and whose high watermark is below all that the ISR has."""
        for tp in self._tps:
            replica = state.replicas.get(tp)
            if replica is None or replica.role is not Role.LEADER or self._isrs.get((name, tp)) == replica.isr:
                continue
            self._isrs[name, tp] = replica.isr
            least = _least(replica, state.config.broker_id)
            if least > replica.high_watermark:
                text = f"has the high watermark {replica.high_watermark}, and its ISR {replica.isr} has all below"
                yield tp, f"{name}, leader in epoch {replica.leader_epoch}, {text} {least}"


def _ms(time_ns: int) -> str:
    return f"{time_ns / NS_PER_MS:.1f} ms"


def _least(replica: Replica, own: int) -> int:
    """Return the least log end in the ISR, as its leader knows it."""
    members = {*replica.isr, *(replica.isr_asked or ())}
    known = {member: replica.progress[member].end for member in members if member in replica.progress}
    return min(
        (replica.log.end_offset if member == own else known.get(member, -1) for member in members), default=-1
    )
