"""Lives of clients that do not fit are found; each planted change has a lawful twin, the story itself."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from checkers.rules.lives import broken_lives
from harness.model import OpType, PartOps, Source
from tests.checkers.story import Story

AT = {"topic": "t", "partition": 0}
INVOKE, OK, FAIL, INFO = OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO


class Clients(Story):
    """A story of clients in processes of their own."""

    def __init__(self) -> None:
        super().__init__({})

    def born(self, process: str, name: str, pid: int, **more: object) -> Clients:
        return self.add(Source.CLIENT, process, INFO, "client-started", name=name, pid=pid, **more)

    def killed(self, process: str, name: str, pid: int, type_: OpType = OK, **more: object) -> Clients:
        self.add(Source.CLIENT, process, INVOKE, "client-killed", name=name, pid=pid)
        said = {"probe": "gone"} if type_ is OK else {"error": "alive"}
        return self.add(Source.CLIENT, process, type_, "client-killed", name=name, pid=pid, **(said | more))

    def sent(self, process: str, value: str) -> Clients:
        about = {**AT, "name": "p1", "acks": -1, "codec": "none", "value": value}
        self.add(Source.CLIENT, process, INVOKE, "produce", **about)
        return self.add(Source.CLIENT, process, INFO, "produce", **about, error="x")

    def polled(self, process: str, position: int, count: int, *, sought: bool = False) -> Clients:
        about = {**AT, "node": "A", "position": position} | ({"sought": True} if sought else {})
        records = [[offset, f"v{offset}"] for offset in range(position, position + count)]
        self.add(Source.CLIENT, process, INVOKE, "poll", **about)
        return self.add(Source.CLIENT, process, OK, "poll", **about, records=records, high_watermark=99)

    def done(self) -> Clients:
        return self.add(Source.RUNNER, "runner", INFO, "done")


def two_lives(
    *,
    begins: int = 3,
    first: int = 3,
    sought: bool = True,
    after: str = "client-2",
    value: str = "p1.2.0",
    then: Callable[[Clients], object] = lambda story: story,
    type_: OpType = OK,
) -> PartOps:
    """Return the history of a producer and a consumer that are killed, and live on."""
    story = Clients().born("client-1", "p1", 11).born("client-2", "c1", 12)
    story.sent("client-1", "p1.1.0").polled("client-2", 0, 3, sought=True)
    story.killed("client-1", "p1", 11).killed("client-2", "c1", 12, type_)
    story.born("client-3", "p1", 13, after="client-1").born(
        "client-4", "c1", 14, after=after, positions={"t-0": begins}
    )
    story.sent("client-3", value).polled("client-4", first, 2, sought=sought)
    then(story)
    return PartOps(story.done().ops)


def texts(ops: PartOps) -> list[str]:
    return [text for text, _ in broken_lives(ops)]


def test_lives_that_follow_each_other_are_lawful() -> None:
    assert [] == texts(two_lives())


def test_a_consumer_may_go_back_before_its_first_poll() -> None:
    assert [] == texts(two_lives(first=1))


def test_a_life_after_a_life_without_a_poll_begins_where_that_one_was_to_begin() -> None:
    def third(story: Clients) -> None:
        story.killed("client-4", "c1", 14).born("client-5", "c1", 15, after="client-4", positions={"t-0": 5})
        story.killed("client-5", "c1", 15).born("client-6", "c1", 16, after="client-5", positions={"t-0": 5})

    assert [] == texts(two_lives(then=third))


def again(story: Clients) -> None:
    story.born("client-5", "p1", 15, after="client-1")


@pytest.mark.parametrize(
    ("ops", "error"),
    [
        (two_lives(begins=4, first=4), "client-4 began at offset 4 of t-0 .* had read up to 3"),
        (two_lives(begins=2, first=2), "client-4 began at offset 2 of t-0 .* had read up to 3"),
        (two_lives(first=4), "client-4's first poll, .* is of offset 4; expected an assignment, of 3 or before"),
        (two_lives(sought=False), "client-4's first poll"),
        (two_lives(after="client-1"), "client-4 started .* after client-1, which was not killed before"),
        (two_lives(after="client-9"), "client-4 started .* after client-9, which was not killed before"),
        (two_lives(value="p1.1.0"), "client-3 sent p1.1.0 .*, which client-1 had sent"),
        (two_lives(type_=FAIL), "client-4 started .* after client-2, which was not killed"),
        (
            two_lives(then=lambda story: story.sent("client-1", "p1.1.1")),
            "client-1's produce .* after it was killed",
        ),
        (two_lives(then=lambda story: story.polled("client-2", 3, 1)), "client-2's poll .* after it was killed"),
        (two_lives(then=again), "client-5 and client-3 both continue client-1"),
        (two_lives(then=lambda story: story.born("client-3", "p1", 16)), "client-3 started twice"),
        (
            two_lives(then=lambda story: story.killed("client-3", "p1", 99)),
            "as p1, pid 99; it started as p1, pid 13",
        ),
        (
            two_lives(then=lambda story: story.killed("client-3", "p1", 13, FAIL)),
            "of client-3 at .* took no effect",
        ),
        (two_lives(then=lambda story: story.killed("client-3", "p1", 13, probe="")), "has no probe"),
        (
            two_lives(then=lambda story: story.killed("client-8", "p1", 18)),
            "client-8 was killed .* had not started",
        ),
    ],
)
def test_life_that_does_not_fit_is_named(ops: PartOps, error: str) -> None:
    found = texts(ops)
    assert found
    assert re.search(error, found[0]), found


def test_a_history_without_such_clients_has_no_lives() -> None:
    assert [] == texts(PartOps(Clients().sent("client-1", "a").sent("client-2", "a").done().ops))
