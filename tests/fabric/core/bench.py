"""A driver of the core without sockets: time is a number, and every frame that the core passes on is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.fabric.core.effects import Effect, Held, Later, Lose, Over, Pass, Record, Reset, Wake
from harness.fabric.core.lanes import ANSWERS, DIRECTIONS, Connection, Frame
from harness.fabric.core.links import LinkCore
from harness.fabric.core.rules import NS_PER_S, Link, Seen
from tests.events.as_recorded import as_recorded


@dataclass(slots=True, eq=False)
class Letter(Frame):
    """A frame with a sequence number, which counts the frames that the bench sent."""

    number: int = -1
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A frame that the core passed on, and when."""

    connection: Connection
    direction: int
    letter: Letter
    at_ns: int


@dataclass
class Bench:
    """The core, its connections, and a record of everything that they did."""

    core: LinkCore = field(default_factory=LinkCore)
    now_ns: int = 0
    sent: int = 0
    arrived: list[Arrival] = field(default_factory=list)
    ended: list[tuple[Connection, int]] = field(default_factory=list)
    reset: list[Connection] = field(default_factory=list)
    records: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    alarms: set[int] = field(default_factory=set)

    def connect(self, link: Link) -> Connection:
        connection = Connection(link)
        self.core.connections[connection] = None
        return connection

    def send(
        self, connection: Connection, direction: int, api: str = "fetch", *, offset: int = 0, correlation: int = -1
    ) -> None:
        """Append a frame to its lane, and pump the lane."""
        lane = connection.lanes[direction]
        surplus = direction == ANSWERS and not connection.takes_answer(correlation)
        if connection.over or not lane.open or surplus:
            return
        offsets = (("log", offset),) if api == "fetch" else ()
        seen = Seen(
            link=connection.link,
            api=api,
            direction=DIRECTIONS[direction],
            offsets=offsets,
            correlation=correlation,
        )
        self.sent += 1
        lane.frames.append(Letter(self.now_ns, number=self.sent, seen=seen))
        self.pump(connection, direction)

    def end(self, connection: Connection, direction: int) -> None:
        """End one direction of a connection."""
        if connection.over:
            return
        connection.lanes[direction].frames.append(Frame(self.now_ns, end=True))
        self.pump(connection, direction)

    def wait(self, seconds: float) -> None:
        """Advance the time, and pump all lanes at every alarm that falls due."""
        until = self.now_ns + int(seconds * NS_PER_S)
        while due := {alarm for alarm in self.alarms if alarm <= until}:
            self.now_ns = max(self.now_ns, min(due))
            self.alarms.discard(min(due))
            self.pump_all()
        self.now_ns = until

    def pump_all(self) -> None:
        for connection in list(self.core.connections):
            for direction in range(2):
                self.pump(connection, direction)

    def pump(self, connection: Connection, direction: int) -> None:
        """Judge a lane until it is empty or its first frame waits."""
        lane, going = connection.lanes[direction], True
        while going and lane.frames:
            effects = self.core.judge(connection, lane, self.now_ns)
            going = any(isinstance(effect, Pass | Lose) for effect in effects)
            for effect in effects:
                match effect:
                    case Pass(frame=Letter() as letter):
                        self.arrived.append(Arrival(connection, direction, letter, self.now_ns))
                    case Pass():
                        self.ended.append((connection, direction))
                    case Later(at_ns=at_ns):
                        self.alarms.add(at_ns)
                    case Lose():
                        pass
                    case _:
                        self.obey((effect,))

    def obey(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Record():
                    self.records.append(as_recorded(effect.event))
                case Held():
                    effect.hold.note_held(effect.seen)
                case Over():
                    effect.hold.note_over()
                case Reset():
                    self.reset.append(effect.connection)
                case Wake():
                    self.pump_all()
                case _:
                    raise AssertionError(f"{effect}: expected none that is of a lane")

    def of(self, f: str) -> list[dict[str, object]]:
        return [value for name, value in self.records if name == f]
