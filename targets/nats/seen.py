"""
What was seen of each Raft group so far: who leads in the highest term, and which group is a stream's now.

There is no one place to look at. A leader is who says that it leads in the highest term, else who its followers
name. An older leader that still says so is none: a higher term was seen before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.target.metadata import Look, Office, PartitionTruth, Place
from targets.nats import eras
from targets.nats.asking import FOLLOWER, LEADER, META, Group, Told
from targets.nats.streams import peer_of, place_of

# What members say of a group: the id of each, and its words.
Words = Sequence[tuple[str, Group]]


@dataclass(slots=True, kw_only=True)
class _Era:
    """
    The terms of one group, or of a stream while it has one replica and no group.

    Attributes:
        known: the highest term in which a leader was seen.
        leader: that leader's id.
        before: how many epochs the stream had before the group's first term.
        past: the groups that the stream had; a server that comes back may still name one.
    """

    group: str
    is_alone: bool = False
    known: int = 0
    leader: str = ""
    before: int = 0
    past: set[str] = field(default_factory=set)


class Seen:
    """
    What was seen so far.

    Args:
        names: the nodes of the run; who is none of them is None.

    Attributes:
        snapshots: the index at which each member's snapshot of a stream's Raft log ends, as of the last look.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._nodes = {peer_of(name): name for name in names}
        # By stream; that of the meta group by META.
        self._eras: dict[str, _Era] = {}
        # By stream, then by peer: the groups that it named last. Who is down, or starts, names none.
        self._named: dict[str, dict[str, set[str]]] = {}
        self.snapshots: Mapping[Place, Mapping[str, int]] = {}

    def look(self, told: Mapping[str, Told]) -> Look:
        """Return what the metadata show, from what servers say of themselves."""
        # A server may have a group, and not yet know whose it is.
        streams = {META: META} | {name: stream for each in told.values() for name, stream in each.streams.items()}
        words: dict[str, list[tuple[str, Group]]] = {}
        for server, each in sorted(told.items()):
            for name, group in each.groups.items():
                stream = streams.get(name)
                if stream is not None:
                    words.setdefault(stream, []).append((peer_of(server), group))
        current = {stream: self._current(stream, said) for stream, said in words.items()}
        truths = {stream: truth for stream, said in current.items() if (truth := self._truth(stream, said))}
        meta = truths.pop(META, None)
        named = {place_of(stream): said for stream, said in current.items() if said and stream != META}
        states = {place_of(stream): truth for stream, truth in truths.items()}
        # A log begins behind its snapshot; an empty one without a snapshot begins at 0.
        self.snapshots = {
            place: {node: max(group.first - 1, 0) for peer, group in each if (node := self._nodes.get(peer))}
            for place, each in named.items()
        }
        return Look(
            states=states,
            office=None
            if meta is None or not meta.leader
            else Office(node=meta.leader, member=0, incarnation=meta.epoch),
            assigned={place: truth.in_sync for place, truth in states.items()},
            said={place: self._said(each) for place, each in named.items()},
        )

    # --- which group is a stream's -----------------------------------------------------------------------------
    def _current(self, stream: str, said: Words) -> Words:
        """Return what is said of the stream's group of now; begin an era if it is another one."""
        naming: dict[str, set[str]] = {}
        for peer, group in said:
            naming.setdefault(peer, set()).add(group.name)
        self._named.setdefault(stream, {}).update(naming)
        alone = [(peer, group) for peer, group in said if group.is_alone]
        if any(group.state == LEADER for _, group in said if not group.is_alone):
            alone = []  # it has company, and has yet to hear of it
        era = self._eras.get(stream)
        if alone:
            self._is_alone(stream, era, *alone[0])
            return alone[:1]
        grouped = [(peer, group) for peer, group in said if not group.is_alone]
        names = {group.name for _, group in grouped}
        name = era.group if era is not None else ""
        if others := sorted(names - {name} - (era.past if era is not None else set())):
            # Of several that are new at once, nobody knows which came last: that of the highest term counts.
            name = max(others, key=lambda other: max(group.term for _, group in grouped if group.name == other))
        if grouped and (era is None or era.is_alone or name != era.group):
            self._begins(stream, era, name)
        return [(peer, group) for peer, group in grouped if group.name == name]

    def _is_alone(self, stream: str, era: _Era | None, peer: str, group: Group) -> None:
        """Note that a stream has one replica and no group: who has it leads, in the epoch in which it led."""
        if era is None:
            era = self._eras[stream] = _Era(group=group.name)
        if era.group != group.name:
            era.past.add(era.group)
            era.group = group.name
        era.is_alone = True
        if era.leader != peer:
            era.known, era.leader = era.known + 1, peer

    def _begins(self, stream: str, era: _Era | None, name: str) -> None:
        if era is None:
            self._eras[stream] = _Era(group=name)
            return
        before = era.before + era.known
        self._eras[stream] = _Era(group=name, before=before, past={*era.past, era.group} - {name})
        eras.begin(name, before)

    # --- who leads it -------------------------------------------------------------------------------------------
    def _truth(self, stream: str, said: Words) -> PartitionTruth | None:
        """Return a group's state, by what its members say of it; None before it has its first leader."""
        if not said:
            return None
        era = self._eras[stream]
        if era.is_alone:
            node = self._nodes.get(era.leader)
            return PartitionTruth(leader=node, epoch=era.before + era.known, in_sync=(node,))
        leads = [(group.term, peer) for peer, group in said if group.state == LEADER]
        # Who has no entry of its term yet may name the leader of the one before.
        heard = [group for _, group in said if group.state == FOLLOWER and group.last_term == group.term]
        follows = [(group.term, group.leader) for group in heard if group.leader]
        # Of one term, who says that it leads counts before those who name another.
        term, leader = max(leads or follows, default=(0, ""))
        if follows and max(follows)[0] > term:
            term, leader = max(follows)
        if term > era.known or (term == era.known and leads):
            era.known, era.leader = term, leader
        if not era.known and not era.before:
            return None
        # Members are those of the newest leader, else of who heard of it; an older leader may know others.
        witness = max(
            (group for _, group in said),
            key=lambda group: (group.term == era.known, group.state == LEADER, group.term),
        )
        return PartitionTruth(
            leader=self._nodes.get(era.leader) if era.known and term == era.known else None,
            epoch=era.before + era.known,
            in_sync=tuple(map(self._nodes.get, witness.members)),
            unheard=self._unheard(stream, era.group),
        )

    def _unheard(self, stream: str, group: str) -> frozenset[str]:
        """Return who named other groups of the stream when it named one last, and not this one."""
        named = self._named.get(stream, {}).items()
        nodes = {self._nodes.get(peer) for peer, names in named if group not in names}
        return frozenset(node for node in nodes if node is not None)

    # --- what they say -----------------------------------------------------------------------------------------
    def _said(self, words: Words) -> Mapping[str, str]:
        """Return what each member says of itself, and whom or what it waits for."""
        return {node: self._word(group) for peer, group in words if (node := self._nodes.get(peer)) is not None}

    def _word(self, group: Group) -> str:
        if group.is_alone:
            return "has the stream alone"
        where = f"in term {group.term} up to index {group.last} of its Raft log, {group.committed} committed"
        if group.state == LEADER:
            behind = sorted(self._nodes.get(peer) or peer for peer in group.behind)
            return f"leads {where}, and waits for {', '.join(behind) or 'nobody'}"
        if group.state == FOLLOWER and group.leader:
            leader = self._nodes.get(group.leader) or group.leader
            return f"follows {leader} {where}, and waits for {leader}"
        awaited = "a leader" if group.state == FOLLOWER else "votes"
        return f"is a {group.state.lower()} {where}, and waits for {awaited}"
