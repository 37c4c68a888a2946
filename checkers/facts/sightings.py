"""
Where replicas' logs ended, as the fabric saw it: the only view of a log in between, if brokers report nothing.

A follower fetches from the end of its own log. So when a fetch was sent, the follower had everything below its
offset and nothing at or above it. A fetch that was held or delayed on its way shows an older log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from checkers.facts.fact import fact, select
from checkers.facts.view import setup_of
from harness.events import Delay, Fetch, Fetched, Heal, Held, Hold, Release
from harness.model import Op, Source, events_of

# How long after its release a held frame may be recorded, and what a delay takes more than its seconds.
_SLACK_NS: Final = 250_000_000
_REQUEST: Final = "request"
_ANY: Final = "*"

Link: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """
    The end of a follower's log.

    Attributes:
        leader: the node that it fetched from.
        sent_ns: the earliest time at which the fetch may have been sent.
    """

    node: str
    leader: str
    end: int
    op: Op
    sent_ns: int

    @property
    def fresh(self) -> bool:
        """Whether the log ended there when the fetch was recorded."""
        return self.sent_ns == self.op.time_ns


@fact
def sightings(ops: Sequence[Op]) -> list[Sighting]:
    """
    Return the ends of followers' logs that the fabric saw, in index order.

    There are none under the rule that KIP-101 rejects, by which a follower fetches before it has truncated.
    """
    setup = setup_of(ops)
    early = setup is not None and setup.rules.get("truncate_to") == "first_fetch"
    return [] if early else list(_sightings(ops))


def _sightings(ops: Sequence[Op]) -> Iterator[Sighting]:
    passing = _Passing()
    for op in select(ops, Source.FABRIC, "fetch", "hold", "held", "release", "delay", "heal"):
        match op.event:
            case Fetch(link=(follower, leader) as link, offset=end):
                sent = passing.sent_ns(link, op.time_ns)
                yield Sighting(node=follower, leader=leader, end=end, op=op, sent_ns=sent)
            case Hold() | Held() | Release() | Delay() | Heal() as event:
                passing.rule(op, event)


class _Passing:
    """How old a request may be when the fabric passes it on, link by link."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[Link, str], int] = {}  # when the first frame of an api that still waits was held
        self._holds: list[tuple[Link, str]] = []
        self._late: dict[Link, tuple[int, int]] = {}  # (until, since): what is passed on until then
        self._slow: dict[Link, int] = {}  # how much later frames are passed on; a link may have a `*`

    def rule(self, op: Op, event: Hold | Held | Release | Delay | Heal) -> None:
        """Take into account what happened to a link."""
        now, link = op.time_ns, event.link
        match event:
            case Held(direction=direction, api=api) if direction == _REQUEST:
                # A frame that one rule lets go may be held again by another.
                self._waiting.setdefault((link, api), self.sent_ns(link, now))
            case Hold(direction=direction, api=api) if direction == _REQUEST:
                self._holds.append((link, api))
            case Release(direction=direction, api=api) if direction == _REQUEST:
                self._holds = [hold for hold in self._holds if hold != (link, api)]
                for each in [key for key in self._waiting if not any(_holds(hold, key) for hold in self._holds)]:
                    self._late[each[0]] = (now + _SLACK_NS, self._waiting.pop(each))
            case Delay(seconds=seconds):
                self._slow[link] = max(self._slow.get(link, 0), round(seconds * 1e9) + _SLACK_NS)
            case Heal() if link in self._slow:
                by = self._slow.pop(link)
                self._late[link] = (now + by, now - by)
            case _:
                pass

    def sent_ns(self, link: Link, now: int) -> int:
        """Return the earliest time at which a request that is passed on now may have been sent."""
        sent = [now, *(since for (each, _), since in self._waiting.items() if each == link)]
        sent += [since for each, (until, since) in self._late.items() if _matches(each, link) and now <= until]
        sent += [now - by for each, by in self._slow.items() if _matches(each, link)]
        return min(sent)


def _holds(hold: tuple[Link, str], frame: tuple[Link, str]) -> bool:
    return _matches(hold[0], frame[0]) and hold[1] in (_ANY, frame[1])


def _matches(pattern: Link, link: Link) -> bool:
    return all(asked in (_ANY, end) for asked, end in zip(pattern, link, strict=True))


@fact
def fetches(ops: Sequence[Op]) -> Mapping[Link, tuple[list[int], list[int]]]:
    """Return the fetches of each follower from each leader: the indexes of the ops, and the offsets asked for."""
    found: dict[Link, tuple[list[int], list[int]]] = {}
    for op, fetch in events_of(ops, Fetch):
        indexes, offsets = found.setdefault(fetch.link, ([], []))
        indexes.append(op.index)
        offsets.append(fetch.offset)
    return found


def last_answer(ops: Sequence[Op], link: Link, before: int) -> int | None:
    """Return the index of the last answer to a follower before an op; -1 for none yet, None for none at all."""
    answers = _answers(ops).get(link)
    if answers is None:
        return None
    place = bisect_left(answers, before)
    return answers[place - 1] if place else -1


@fact
def _answers(ops: Sequence[Op]) -> Mapping[Link, Sequence[int]]:
    found: dict[Link, list[int]] = {}
    for op, fetched in events_of(ops, Fetched):
        found.setdefault(fetched.link, []).append(op.index)
    return found
