"""The proxy on loopback and the simulator record the same events for the same script of rules and frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from harness.fabric.core.rules import Hold
from harness.fabric.core.verbs import LinkVerbs
from targets.broker.core.messages import EpochAnswer, EpochQuestion, ErrorCode, TopicPartition
from targets.broker.core.messages import OffsetForLeaderEpochRequest as Question
from targets.broker.core.messages import OffsetForLeaderEpochResponse as Answer
from targets.simulator.engine.pipe import ANSWERS, REQUESTS
from tests.fabric.nodes import World, until
from tests.simulator.ends import Keeper, Room, fetch
from tests.targets.kafka_family.wire import wire

Step: TypeAlias = tuple[Any, ...]
# The correlation ids of the frames that arrived at B and at A.
Arrived: TypeAlias = tuple[list[int], list[int]]

SEED: Final = 1
TP: Final = TopicPartition("t", 0)
FETCH: Final = ("fetch", "A", "B")
QUESTION: Final = ("epoch-question", "A", "B")
LIFTS: Final = ("release", "drop", "heal", "lift")

# dial | end | fetch CORRELATION OFFSET | question CORRELATION | answer CORRELATION | VERB NAME ARGUMENTS
SCRIPT: Final[tuple[Step, ...]] = (
    ("dial",),
    ("fetch", 1, 0),
    ("answer", 1),
    # Held from an offset on, with the frames behind; released in order, into a second hold.
    ("hold", "h", *FETCH, "request", 5),
    ("hold", "all", "*", "*", "*", "request"),
    ("release", "all"),
    ("fetch", 2, 4),
    ("fetch", 3, 5),
    ("question", 4),
    ("hold", "again", *FETCH, "request"),
    ("release", "h"),
    ("release", "again"),
    ("release", "again"),
    ("hold", "answers", *QUESTION, "answer"),
    ("answer", 2),
    ("answer", 3),
    ("answer", 4),
    ("release", "answers"),
    # Two requests arrive and one answer returns; a hold on answers does not hold the second answer.
    ("double", "d", *QUESTION),
    ("double", "f", *FETCH),
    ("question", 5),
    ("fetch", 6, 6),
    ("hold", "answers", "*", "A", "B", "answer"),
    ("answer", 5),
    ("answer", 5),
    ("answer", 6),
    ("release", "answers"),
    ("answer", 6),
    ("heal", "d"),
    ("heal", "f"),
    # Delayed, recorded once for its link, and passed on when the delay is healed.
    ("delay", "l", *FETCH, "request", 3600.0),
    ("fetch", 7, 7),
    ("question", 8),
    ("heal", "l"),
    # Held, then lost when it is released into a cut; reset when the cut heals.
    ("hold", "h", *FETCH, "request"),
    ("fetch", 9, 8),
    ("cut", "c", "A", "B"),
    ("release", "h"),
    ("heal", "c"),
    ("dial",),
    ("fetch", 10, 8),
    # Dropped with its connection.
    ("hold", "h", *FETCH, "request"),
    ("fetch", 11, 9),
    ("drop", "h"),
    ("dial",),
    ("fetch", 12, 9),
    # Held in both directions when the link is closed.
    ("hold", "h", *FETCH, "request"),
    ("hold", "answers", *FETCH, "answer"),
    ("answer", 12),
    ("fetch", 13, 10),
    ("close_links", "n", "A", "B"),
    ("heal_all", "n"),
    ("dial",),
    ("fetch", 14, 10),
    # A cut that closes connections, the open ones and those dialled later.
    ("cut", "c", "A", "B", True),
    ("dial",),
    ("fetch", 15, 11),
    ("heal", "c"),
    ("dial",),
    ("fetch", 16, 11),
    # A cut of a set of links, lifted; then one that takes a share of the frames: by this seed the third.
    ("cut_links", "c", (("A", "B"), ("B", "A"))),
    ("fetch", 17, 12),
    ("lift", "c"),
    ("dial",),
    ("share", "s", (("A", "B"),), 500),
    ("fetch", 18, 12),
    ("answer", 18),
    ("fetch", 19, 13),
    ("dial",),
    ("fetch", 20, 13),
    ("lift", "s"),
    ("heal_all", "n"),
    # Held while its sender ends; released, it arrives all the same, and then the end.
    ("dial",),
    ("hold", "h", *FETCH, "request"),
    ("fetch", 21, 14),
    ("end",),
    ("release", "h"),
)


def act(links: LinkVerbs[Any], made: dict[str, Any], verb: str, name: str, *arguments: Any) -> None:
    """Call a verb of either driver, and store what it returns under a name."""
    if verb in LIFTS:
        getattr(links, verb)(made[name])
    elif verb == "cut":
        made[name] = links.cut(*arguments[:2], close=bool(arguments[2:]))
    elif verb == "share":
        made[name] = links.cut_links(arguments[0], of_1000=arguments[1], seed=SEED)
    else:
        made[name] = getattr(links, verb)(*arguments)


class Simulated:
    """The script in the simulator, in virtual time."""

    def __init__(self) -> None:
        self.room = Room()
        self.made: dict[str, Any] = {}
        self.requests: dict[int, Any] = {}

    def step(self, what: str, *rest: Any) -> Arrived:
        room, network = self.room, self.room.network
        if what == "dial":
            self.pipe = room.dial()
        elif what == "end":
            network.hang_up_all("A")
        elif what == "answer":
            answer = EpochAnswer(tp=TP, error=ErrorCode.NONE, leader_epoch=-1, end_offset=21)
            body, request = (rest[0], Answer(answers=(answer,))), self.requests[rest[0]]
            network.send(self.pipe, ANSWERS, body, request, tag=rest[0])
        elif what in ("fetch", "question"):
            request = fetch(rest[1], "t") if what == "fetch" else question()
            self.requests[rest[0]] = request
            network.send(self.pipe, REQUESTS, (rest[0], request), request, tag=rest[0])
        else:
            act(room.links, self.made, what, *rest)
        room.settle(ms=10)
        return _correlations(room.b), _correlations(room.a)


class Proxied:
    """The script on sockets; each step waits for the frames and events that the simulator produced in it."""

    def __init__(self, net: World) -> None:
        self.net = net
        self.made: dict[str, Any] = {}
        self.requests: dict[int, bytes] = {}
        self.answers: dict[int, bytes] = {}

    def step(self, expected: Arrived, events: Sequence[Any], what: str, *rest: Any) -> None:
        if what == "dial":
            self.near, self.far = self.net.connect()
            self.over = False
        elif what == "end":
            self.near.kill()
            self.over = True
        elif what == "answer":
            self.far.send(self.answers[rest[0]])
        elif what == "fetch":
            self.requests[rest[0]] = wire.fetch(rest[1], correlation=rest[0])
            self.answers[rest[0]] = wire.answer(rest[0], b"records")
            self.near.send(self.requests[rest[0]])
        elif what == "question":
            self.requests[rest[0]] = wire.epoch_question(0, correlation=rest[0])
            self.answers[rest[0]] = wire.epoch_answer(0, correlation=rest[0])
            self.near.send(self.requests[rest[0]])
        else:
            act(self.net.fabric, self.made, what, *rest)
        self.far.expect(*(self.requests[correlation] for correlation in expected[0]))
        self.near.expect(*(self.answers[correlation] for correlation in expected[1]))
        until(lambda: len(self.net.record) >= len(events), f"{what} {rest}: {events[-2:]}, {self.net.record[-2:]}")

    def expect_reset(self) -> None:
        self.over = True
        self.near.expect_reset()
        self.far.expect_reset()


def test_proxy_and_simulator_record_the_same_events_and_deliver_the_same_frames(net: World) -> None:
    simulated, proxied = Simulated(), Proxied(net)
    for step in SCRIPT:
        arrived = simulated.step(*step)
        proxied.step(arrived, simulated.room.told, *step)
        if simulated.pipe.over and not proxied.over:
            proxied.expect_reset()
        assert [(f, dict(value)) for f, value in simulated.room.told] == net.record, step
    assert [simulated.pipe.number] == simulated.room.b.ended[-1:]
    proxied.far.expect_end()
    verbs = {"hold", "release", "cut", "heal", "delay", "double", "close"}
    assert {*verbs, "held", "lost", "delayed", "doubled", "dropped"} <= {f for f, _ in net.record}
    holds = [(name, rule) for name, rule in simulated.made.items() if isinstance(rule, Hold)]
    assert [len(rule.held) for _, rule in holds] == [len(proxied.made[name].held) for name, _ in holds]


def question() -> Question:
    """Return a follower's request for the end offset of epoch 4."""
    return Question(questions=(EpochQuestion(tp=TP, leader_epoch=4),))


def _correlations(keeper: Keeper) -> list[int]:
    """Return the correlation ids that arrived at an end since the last step, copies included."""
    got = [body[1] if body[0] == "copy of " else body for body in keeper.got]
    keeper.got.clear()
    return [body[0] for body in got]
