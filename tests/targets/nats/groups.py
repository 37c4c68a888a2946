"""What servers say of a Raft group, as values and as answers of a server."""

from __future__ import annotations

from collections.abc import Mapping

from targets.nats.asking import FOLLOWER, LEADER, META, Group, Told
from targets.nats.streams import peer_of
from tests.targets.nats.server import Asked, Talk

NAMES = "ABC"
GROUP, OTHER = "S-R3F-one", "S-R3F-two"

# What each server says of a group: its state, its term, and whom it takes for the leader ("" for nobody).
Words = Mapping[str, tuple[str, int, str]]


def group(name: str, state: str, term: int, leader: str, members: str = NAMES) -> Group:
    peers = tuple(sorted(map(peer_of, members)))
    known = peer_of(leader) if leader else ""
    return Group(name=name, state=state, term=term, leader=known, members=peers, last_term=term)


def told(words: Words, name: str = GROUP, members: str = NAMES) -> dict[str, Told]:
    streams = {GROUP: "log-0", OTHER: "log-1"}
    return {
        server: Told(
            groups={name: group(name, state, term, leader, members)},
            streams={name: streams[name]} if name in streams else {},
        )
        for server, (state, term, leader) in words.items()
    }


def leads(name: str, term: int, *others: str) -> dict[str, tuple[str, int, str]]:
    """Return a leader's words, and those of its followers."""
    return {name: (LEADER, term, name), **dict.fromkeys(others, (FOLLOWER, term, name))}


def both(*looks: Mapping[str, Told]) -> dict[str, Told]:
    """Return what servers say that say all of this."""
    found: dict[str, Told] = {}
    for look in looks:
        for name, each in look.items():
            before = found.get(name, Told())
            found[name] = Told(groups={**before.groups, **each.groups}, streams={**before.streams, **each.streams})
    return found


class Node:
    """A server with groups; it answers RAFTZ and JSZ as the real one does."""

    def __init__(
        self, name: str, words: Words, streams: Mapping[str, str] | None = None, replicas: int = 3
    ) -> None:
        self.name, self.words, self.replicas = name, words, replicas
        self.streams = {GROUP: "log-0"} if streams is None else streams
        self.asked: list[str] = []
        # What else it says of a group, and how far each of its peers is, as it knows.
        self.more: dict[str, object] = {}
        self.replicated: dict[str, int] = {}

    def __call__(self, talk: Talk, asked: Asked) -> None:
        assert "sys" == talk.hello["user"]
        self.asked.append(asked.what)
        talk.tell(asked, {"server": {"name": self.name}, "data": self.answer(asked)})

    def answer(self, asked: Asked) -> object:
        if asked.what == "JSZ":
            assert {"account": "$G", "streams": True, "raft": True, "config": True} == asked.body
            config = {"num_replicas": self.replicas}
            details = [
                {"name": stream, "stream_raft_group": one, "config": config}
                for one, stream in self.streams.items()
            ]
            return {"account_details": [{"name": "$G", "stream_detail": details}]}
        state, term, leader = self.words[self.name]
        found = {
            "id": peer_of(self.name),
            "state": state,
            "term": term,
            "pterm": term,
            "leader": peer_of(leader) if leader else "",
            "peers": {
                peer_of(other): {"name": other, "last_replicated_index": self.replicated.get(other, 0)}
                for other in {*NAMES, *self.replicated} - {self.name}
            },
            **self.more,
        }
        if asked.body.get("account") != "$G":
            return {"$SYS": {META: found}}
        return {"$G": {GROUP: found}} if self.replicas > 1 else {}


def nodes(words: Words) -> dict[str, Node]:
    return {name: Node(name, words) for name in words}
