"""
What a cluster of NATS holds true: each stream's Raft group as its members know it, and the meta group's leader.

There is no one place to look at. A leader is who says that it leads in the highest term, else who its followers
name. An older leader that still says so is none: a higher term was seen before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from harness.metadata import Polled
from harness.target.metadata import Look, Office, PartitionTruth, Place, TargetRun
from targets.nats.asking import FOLLOWER, LEADER, META, Group, Servers, Told
from targets.nats.streams import peer_of, place_of


class NatsView(Polled):
    """The view of one cluster; see harness/target/metadata.py for every call."""

    def __init__(self, run: TargetRun) -> None:
        self._servers = Servers(run.nodes)
        self._seen = Seen(run.ids)
        super().__init__(run, self._looked)

    def _looked(self) -> Look | None:
        told = self._servers.all()
        return self._seen.look(told) if told else None

    def snapshot(self, topic: str, partition: int, name: str) -> int:
        """Return up to which index a node's snapshot of the stream's Raft log goes, as it says now; 0 for none."""
        self.refresh()
        return self._seen.snapshots.get((topic, partition), {}).get(name, 0)

    def close(self) -> None:
        """End the looks, then what they ask with."""
        super().close()
        self._servers.close()


class Seen:
    """
    What was seen of each group so far.

    Args:
        names: the nodes of the run; who is none of them is None.

    Attributes:
        snapshots: the index at which each member's snapshot of a stream's Raft log ends, as of the last look.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._nodes = {peer_of(name): name for name in names}
        # Group -> the highest term in which a leader was seen, and that leader's id.
        self._leaders: dict[str, tuple[int, str]] = {}
        self.snapshots: Mapping[Place, Mapping[str, int]] = {}

    def look(self, told: Mapping[str, Told]) -> Look:
        """Return what the metadata show, from what servers say of themselves."""
        words: dict[str, list[tuple[str, Group]]] = {}
        streams: dict[str, str] = {}
        for server, each in sorted(told.items()):
            streams.update(each.streams)
            peer = peer_of(server)
            for name, group in each.groups.items():
                words.setdefault(name, []).append((peer, group))
        truths = {name: truth for name, said in words.items() if (truth := self._truth(name, said)) is not None}
        states = {place_of(streams[name]): truth for name, truth in truths.items() if name in streams}
        named = {place_of(streams[name]): each for name, each in words.items() if name in streams}
        # A log begins behind its snapshot; an empty one without a snapshot begins at 0.
        self.snapshots = {
            place: {node: max(group.first - 1, 0) for peer, group in each if (node := self._nodes.get(peer))}
            for place, each in named.items()
        }
        meta = truths.get(META)
        return Look(
            states=states,
            office=None
            if meta is None or not meta.leader
            else Office(node=meta.leader, member=0, incarnation=meta.epoch),
            assigned={place: truth.in_sync for place, truth in states.items()},
            said={place: self._said(each) for place, each in named.items()},
        )

    def _said(self, words: Sequence[tuple[str, Group]]) -> Mapping[str, str]:
        """Return what each member says of itself, and whom or what it waits for."""
        return {node: self._word(group) for peer, group in words if (node := self._nodes.get(peer)) is not None}

    def _word(self, group: Group) -> str:
        where = f"in term {group.term} up to index {group.last} of its Raft log, {group.committed} committed"
        if group.state == LEADER:
            behind = sorted(self._nodes.get(peer) or peer for peer in group.behind)
            return f"leads {where}, and waits for {', '.join(behind) or 'nobody'}"
        if group.state == FOLLOWER and group.leader:
            leader = self._nodes.get(group.leader) or group.leader
            return f"follows {leader} {where}, and waits for {leader}"
        awaited = "a leader" if group.state == FOLLOWER else "votes"
        return f"is a {group.state.lower()} {where}, and waits for {awaited}"

    def _truth(self, name: str, said: Sequence[tuple[str, Group]]) -> PartitionTruth | None:
        """Return a group's state, by what its members say of it; None before it has its first leader."""
        leads = [(group.term, peer) for peer, group in said if group.state == LEADER]
        # Who has no entry of its term yet may name the leader of the one before.
        heard = [group for _, group in said if group.state == FOLLOWER and group.last_term == group.term]
        follows = [(group.term, group.leader) for group in heard if group.leader]
        known, before = self._leaders.get(name, (0, ""))
        # Of one term, who says that it leads counts before those who name another.
        term, leader = max(leads or follows, default=(0, ""))
        if follows and max(follows)[0] > term:
            term, leader = max(follows)
        if term > known or (term == known and leads):
            self._leaders[name] = known, before = term, leader
        if not known:
            return None
        # Members are those of the newest leader, else of who heard of it; an older leader may know others.
        witness = max(
            (group for _, group in said),
            key=lambda group: (group.term == known, group.state == LEADER, group.term),
        )
        return PartitionTruth(
            leader=self._nodes.get(before) if term == known else None,
            epoch=known,
            in_sync=tuple(map(self._nodes.get, witness.members)),
        )
