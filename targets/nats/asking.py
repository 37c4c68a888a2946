"""
Asks every server about itself, side by side: one that is paused or gone holds up nobody.

Each server answers for itself alone, through its system account: which Raft groups it has, in which term it is,
who leads there as it knows.

Source:  NATS's documentation, "System Events & Decentralized JWT": $SYS.REQ.SERVER.ID.RAFTZ and JSZ; raft.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Final

from harness import limits
from harness.launch import Address
from harness.model import FencepostError, TargetError
from targets.nats.clients.connection import SYSTEM, Connection
from targets.nats.streams import peer_of

META: Final = "_meta_"
# How long one server may take; it may be paused. What it says later is heard at the next look.
PATIENCE_S: Final = 0.3
# What is taken of an answer of JSON: a server with thousands of streams is none of a run's.
ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024
LEADER: Final = "LEADER"
FOLLOWER: Final = "FOLLOWER"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """
    A Raft group, as one of its members knows it.

    Attributes:
        state: LEADER, FOLLOWER, or another word for who is neither.
        leader: the id of the member that leads as this one knows, perhaps in an earlier term; "" for none.
        members: the ids of all members, this one among them.
        last_term: the term of the last entry of its Raft log.
        last: the index of that entry.
        committed: how far that is committed, as this one knows.
        behind: of a leader, the ids of the members that have not all of it.
        first: the index at which its Raft log begins: behind that of its snapshot.
        is_alone: the stream has one replica, and no Raft group: there are no terms.
    """

    name: str
    state: str
    term: int
    leader: str
    members: tuple[str, ...]
    last_term: int = 0
    last: int = 0
    committed: int = 0
    behind: tuple[str, ...] = ()
    first: int = 0
    is_alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """
    What one server said of itself.

    Attributes:
        groups: its groups, by name; the meta group is META.
        streams: group -> the stream that it replicates.
    """

    groups: Mapping[str, Group] = field(default_factory=dict)
    streams: Mapping[str, str] = field(default_factory=dict)


class Servers:
    """
    The servers of one run.

    Args:
        addresses: server -> where it answers clients; it grows while the cluster is opened.
    """

    def __init__(self, addresses: Mapping[str, Address]) -> None:
        self._addresses = addresses
        self._askers: dict[str, _Asker] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._busy: dict[str, Future[Told | None]] = {}

    def all(self) -> Mapping[str, Told]:
        """
        Return what each server says of itself now; one that does not answer in time is missing.

        Raises:
            TargetError: an answer is none that a server of NATS gives.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(limits.SCENARIO_NODES_MAX, thread_name_prefix="asks nats")
        for name, address in dict(self._addresses).items():
            asker = self._askers.setdefault(name, _Asker(name, str(address)))
            if name not in self._busy:
                self._busy[name] = self._pool.submit(asker.ask)
        done = wait(self._busy.values(), PATIENCE_S).done
        ended = {name: self._busy.pop(name) for name, future in list(self._busy.items()) if future in done}
        answers = ((name, future.result()) for name, future in ended.items())
        return {name: told for name, told in answers if told is not None}

    def close(self) -> None:
        """End all questions; safe to call twice."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        for asker in self._askers.values():
            asker.close()


class _Asker:
    """One server, on a connection that is kept."""

    def __init__(self, name: str, address: str) -> None:
        self._name = name
        self._address = address
        self._open: Connection | None = None

    def ask(self) -> Told | None:
        """Return what the server says, None if it says nothing."""
        try:
            if self._open is None:
                self._open = Connection(self._address, PATIENCE_S, user=SYSTEM)
            groups = {group.name: group for which in ({}, {"account": "$G"}) for group in self._groups(which)}
            streams: dict[str, str] = {}
            for group, stream, replicas in self._named():
                streams[group] = stream
                if replicas == 1 and group not in groups:
                    groups[group] = self._alone(group)
            return Told(groups=groups, streams=streams)
        except TargetError:
            self.close()
            raise
        except (OSError, FencepostError):  # it is gone, paused, or not yet ready
            self.close()
            return None

    def close(self) -> None:
        """Close the connection."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    def _groups(self, which: Mapping[str, str]) -> Iterator[Group]:
        told = self._asked("RAFTZ", which)
        try:
            for groups in (told or {}).values():
                for name, found in groups.items():
                    yield _group(name, found)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _nonsense("RAFTZ", told) from error

    def _named(self) -> Iterator[tuple[str, str, int]]:
        """Yield each stream's group, the stream, and how many replicas it is to have."""
        told = self._asked("JSZ", {"account": "$G", "streams": True, "raft": True, "config": True})
        try:
            for account in (told or {}).get("account_details") or ():
                for stream in account.get("stream_detail") or ():
                    if group := stream.get("stream_raft_group"):
                        replicas = (stream.get("config") or {}).get("num_replicas")
                        yield str(group), str(stream["name"]), int(replicas or 0)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _nonsense("JSZ", told) from error

    def _alone(self, name: str) -> Group:
        """Return the group of a stream with one replica, of which RAFTZ says nothing: its one member leads it."""
        own = peer_of(self._name)
        return Group(name=name, state=LEADER, term=0, leader=own, members=(own,), is_alone=True)

    def _asked(self, what: str, options: Mapping[str, Any]) -> Any:
        assert self._open is not None, "it is connected before it is asked"
        text = self._open.ask(f"$SYS.REQ.SERVER.{self._open.server}.{what}", options, within_s=PATIENCE_S)
        if len(text) > ANSWER_BYTES_MAX:
            raise TargetError(f"{self._address}: {what} of {len(text)} bytes; expected at most {ANSWER_BYTES_MAX}")
        try:
            found = json.loads(text)
            if found.get("error"):  # as while JetStream is starting
                return {}
            return found.get("data", {})
        except (ValueError, AttributeError, RecursionError) as error:
            raise _nonsense(what, text[:200]) from error


def _group(name: str, found: Mapping[str, Any]) -> Group:
    state, last, peers = str(found["state"]), int(found.get("pindex") or 0), found.get("peers") or {}
    behind = {peer for peer, said in peers.items() if int(said.get("last_replicated_index") or 0) < last}
    return Group(
        name=name,
        state=state,
        term=int(found["term"]),
        leader=str(found.get("leader") or ""),
        members=tuple(sorted({str(found["id"]), *map(str, peers)})),
        last_term=int(found.get("pterm") or 0),
        last=last,
        committed=int(found.get("committed") or 0),
        behind=tuple(sorted(map(str, behind))) if state == LEADER else (),
        first=int((found.get("wal") or {}).get("first_seq") or 0),
    )


def _nonsense(what: str, found: object) -> TargetError:
    return TargetError(f"{what} answered {found!r:.200}; expected what a server of NATS answers")
