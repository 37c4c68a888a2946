"""
Who lags leaves the ISR in time, and nobody else: computed from the fetches that a leader has received.

A follower has caught up at a fetch that reaches the leader's log end, or at the fetch before it, if this one
reaches the log end of then. A new leader's ISR begins caught up.
Source:  Kafka Replication Design V3, G (maybe_change_ISR); KIP-16; Kafka's Replica.updateFetchState.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from targets.broker.core.messages import FetchRequest, TopicPartition
from targets.broker.core.state import Replica, Role, State
from targets.simulator.broker.node import Node
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS

# What timers of other steps may add.
SLACK_NS: Final = 5 * NS_PER_MS
# For so many times the lag after a slow disk has held up a step, lags are not judged.
UNKNOWN_LAGS: Final = 4


@dataclass(slots=True, kw_only=True)
class _Follower:
    """
    What a leader's fetches tell of a follower.

    Attributes:
        offset: of its last fetch.
        at_end_ns: when the leader's log last ended there.
        end: the leader's log end at its last fetch.
    """

    caught_up_ns: int
    offset: int = -1
    at_end_ns: int = 0
    fetched_ns: int = 0
    end: int = 0


@dataclass(slots=True, kw_only=True)
class _Reign:
    """One leadership: its replica, epoch, when it began by its node's clock, its ISR, and what was fetched."""

    replica: Replica
    epoch: int
    began_ns: int
    node: Node
    isr: tuple[int, ...] = ()
    asked: tuple[int, ...] | None = None
    followers: dict[int, _Follower] = field(default_factory=dict)


class Lag:
    """Judges the ISRs of one world's leaders."""

    def __init__(self, world: World, tps: Collection[TopicPartition]) -> None:
        """Start with nobody leading."""
        self._world = world
        self._tps = tps
        self._reigns: dict[tuple[str, TopicPartition], _Reign] = {}

    def look(self, name: str, state: State) -> None:
        """Note which leaderships of a node have begun or ended, after a step that may have read of them."""
        for tp in self._tps:
            self._reign(name, tp, state)

    def on_fetch(self, name: str, state: State, request: FetchRequest) -> None:
        """Note a follower's fetch, after the step that received it."""
        now_ns = self._world.nodes[name].clock.now_ns
        for part in request.partitions:
            reign = self._reign(name, part.tp, state) if part.tp in self._tps else None
            if reign is None or request.replica_id == state.config.broker_id:
                continue
            log = reign.replica.log
            counts = part.current_leader_epoch in (-1, reign.epoch) or not state.config.rules.fence_high_watermark
            if not counts or not log.start_offset <= part.fetch_offset <= log.end_offset:
                continue
            found = reign.followers.setdefault(request.replica_id, _Follower(caught_up_ns=0))
            if part.fetch_offset >= log.end_offset:
                found.caught_up_ns = now_ns
            elif found.fetched_ns and part.fetch_offset >= found.end:
                found.caught_up_ns = max(found.caught_up_ns, found.fetched_ns)
            found.offset, found.fetched_ns, found.end = part.fetch_offset, now_ns, log.end_offset

    def wrong(self, name: str, node: Node, state: State) -> Iterator[tuple[TopicPartition, str]]:
        """Yield members that should have left an ISR, and those that are taken out too early."""
        lag_ns = state.config.replica_lag_ms_max * NS_PER_MS
        # What a slow disk holds up is seen here when it is over: since when a follower was behind is not known.
        known = not node.held_up(self._world.clock.now_ns - UNKNOWN_LAGS * lag_ns)
        for tp in self._tps:
            reign = self._reign(name, tp, state)
            if reign is None:
                continue
            replica, asked = reign.replica, reign.replica.isr_asked
            if asked is not None and asked != reign.asked:
                for member in set(replica.isr) - {*asked}:
                    if (behind_ns := self._behind(reign, member)) <= lag_ns and known:
                        yield tp, self._text(f"{name}, leader of {tp}, takes out", member, behind_ns, lag_ns)
            reign.asked = asked
            for member in replica.isr:
                if member in reign.followers and member not in reign.isr:
                    # It joins at the high watermark, not at the end; whether it lags is looked at from now on.
                    reign.followers[member].at_end_ns = node.clock.now_ns
            reign.isr = replica.isr
            if asked is not None or replica.isr_blocked:
                # A write whose answer is lost is asked for again at the next look, whether it happened or not.
                for follower in reign.followers.values():
                    follower.at_end_ns = node.clock.now_ns
                continue
            quiet_ns = node.clock.now_ns - max(reign.began_ns, node.clock.own(node.resumed_ns))
            for member in replica.isr:
                if member == state.config.broker_id:
                    continue
                behind_ns, away_ns = self._behind(reign, member), self._away(reign, member)
                half_ns = lag_ns // 2 + SLACK_NS  # the leader looks at its ISR twice in the time of the lag
                if min(behind_ns, quiet_ns) > lag_ns + half_ns and away_ns > half_ns and known:
                    yield tp, self._text(f"{name}, leader of {tp}, keeps", member, behind_ns, lag_ns)

    def _reign(self, name: str, tp: TopicPartition, state: State) -> _Reign | None:
        """Return the leadership of a node, begun anew if its replica leads in another epoch than before."""
        replica = state.replicas.get(tp)
        if replica is None or replica.role is not Role.LEADER:
            self._reigns.pop((name, tp), None)
            return None
        reign = self._reigns.get((name, tp))
        if reign is None or reign.replica is not replica or reign.epoch != replica.leader_epoch:
            node = self._world.nodes[name]
            now_ns = node.clock.now_ns
            reign = _Reign(replica=replica, epoch=replica.leader_epoch, began_ns=now_ns, node=node)
            reign.followers = {member: _Follower(caught_up_ns=now_ns) for member in replica.isr}
            self._reigns[name, tp] = reign
        return reign

    def _behind(self, reign: _Reign, member: int) -> int:
        """Return for how long a member has been behind, 0 if it is not."""
        found = reign.followers.get(member)
        if found is None:
            return reign.node.clock.now_ns - reign.began_ns
        if found.offset == reign.replica.log.end_offset:
            return 0
        return reign.node.clock.now_ns - max(found.caught_up_ns, 0)

    def _away(self, reign: _Reign, member: int) -> int:
        """Return for how long the log has been seen to be longer than what a member has; called at every tick."""
        found, now_ns = reign.followers.get(member), reign.node.clock.now_ns
        if found is None:
            return now_ns - reign.began_ns
        if found.offset == reign.replica.log.end_offset:
            found.at_end_ns = now_ns
        return now_ns - found.at_end_ns

    def _text(self, does: str, member: int, behind_ns: int, lag_ns: int) -> str:
        who = self._world.name_of(member) or str(member)
        return (
            f"{does} {who}, which has lagged for {behind_ns / NS_PER_MS:.1f} ms, and may for {lag_ns // NS_PER_MS}"
        )
