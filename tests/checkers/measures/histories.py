"""A builder of histories whose times are written by hand, in milliseconds."""

from __future__ import annotations

from typing import Any, Self

from harness.events import Done, Event, Injection, LineUnreadable, Produce, Setup
from harness.model import Op, OpType

MS = 1_000_000
PLACE: dict[str, Any] = {"topic": "t", "partition": 0}


class Timed:
    """A history so far; every method adds ops and returns it."""

    def __init__(self, host: str = "local", target: str = "broker", protocol: str = "kip101") -> None:
        self.ops: list[Op] = []
        setup = Setup(
            **PLACE,
            scenario="s",
            protocol=protocol,
            rules={} if target == "broker" else {"models": "kip380"},
            host=host,
            target=target,
            seed=1,
            power_tier="none",
            nodes={"A": 1},
            replicas=("A",),
            records={},
            min_isr=1,
            unclean=False,
        )
        self.add(0, "runner", OpType.INFO, setup)

    def add(self, ms: float, process: str, type_: OpType, event: Event) -> Self:
        """Add an op at that time."""
        index = len(self.ops)
        self.ops.append(Op.of(event, index=index, time_ns=round(ms * MS), process=process, type=type_))
        return self

    def sent(self, ms: float, value: str, *, acks: int = -1, process: str = "client-1") -> Self:
        """Send a record."""
        return self.add(ms, process, OpType.INVOKE, _produce(value, acks))

    def ended(
        self, ms: float, value: str, outcome: OpType = OpType.OK, *, acks: int = -1, process: str = "client-1"
    ) -> Self:
        """End its produce."""
        return self.add(ms, process, outcome, _produce(value, acks))

    def fault(self, ms: float, name: str, type_: OpType, effect: str = "", heals: tuple[str, ...] = ()) -> Self:
        """Inject a fault into A, or end it."""
        injection = Injection(name=name, nodes=("A",), effect=effect or "none", heals=heals or None)
        return self.add(ms, "nemesis", type_, injection)

    def broken(self, ms: float, error: str) -> Self:
        """Add what the collector says of a line that it could not read."""
        return self.add(ms, "collector", OpType.FAIL, LineUnreadable(error=error))

    def done(self, ms: float) -> Self:
        """End the run."""
        return self.add(ms, "runner", OpType.INFO, Done())

    def lines(self) -> bytes:
        """Return its file."""
        return "".join(op.to_json() + "\n" for op in self.ops).encode()


def golden(host: str = "local") -> Timed:
    """
    Return a history of ten seconds of which everything was counted by hand.

    Window:     0    1    2    3    4    5    6    7    8    9
    tried:      yes  yes  yes  yes  yes  no   yes  yes  no   yes
    available:  yes  yes  no   no   no   no   no   yes  no   no
    """
    story = Timed(host)
    story.sent(100, "a").ended(105, "a")  # 5 ms
    story.sent(900, "b").ended(1_200, "b")  # 300 ms, into the next window
    # A is killed: one is refused, one waits for its answer in vain, one with acks=0 says nothing.
    story.fault(1_900, "kill", OpType.INVOKE, "down").fault(1_950, "kill", OpType.OK, "down")
    story.sent(2_000, "c").ended(2_040, "c", OpType.FAIL)
    story.sent(2_100, "d")
    story.sent(2_200, "e", acks=0, process="client-2").ended(2_200.001, "e", acks=0, process="client-2")
    story.ended(4_100, "d", OpType.INFO)  # 2 s
    # Asked, and without effect.
    story.fault(4_200, "pause", OpType.INVOKE, "paused").fault(4_300, "pause", OpType.FAIL, "paused")
    story.fault(5_000, "restart", OpType.INVOKE, heals=("down", "power-lost"))
    story.fault(5_500, "restart", OpType.OK, heals=("down", "power-lost"))
    story.sent(6_500, "f", acks=1).ended(7_900, "f", acks=1)  # 1.4 s: longer than a window
    story.sent(9_000, "g")  # never ends
    return story.done(10_000)


def _produce(value: str, acks: int) -> Produce:
    return Produce(**PLACE, name="m1", acks=acks, codec="none", value=value)
