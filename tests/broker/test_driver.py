"""The driver around a scripted core: effects run in order, and nothing is served after an exit or an error."""

from __future__ import annotations

import asyncio
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from targets.broker.checkpoints import Checkpoints
from targets.broker.config import Driver as Settings
from targets.broker.core.events import (
    Answer,
    Arm,
    Caller,
    Effect,
    Event,
    Exit,
    Flush,
    Flushed,
    Hungup,
    Received,
    Send,
    Tick,
    WriteHighWatermarks,
    ZkAnswered,
    ZkAsk,
)
from targets.broker.core.messages import MetadataRequest, MetadataResponse, StopReplicaRequest, TopicPartition
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Config
from targets.broker.core.zookeeper import (
    Registration,
    ZkError,
    ZkGet,
    ZkNode,
    ZkResult,
    broker_path,
    encode_registration,
)
from targets.broker.driver import Driver
from targets.broker.log import LogInDoubtError
from targets.broker.log.data_dir import open_data_dir
from targets.broker.memory import keep_freed_memory
from tests.needs import needs

TP = TopicPartition("t", 0)
REGISTRATION = Registration(node="A", host="a", port=1, internal_host="127.0.0.1", internal_port=2)
ANSWER = MetadataResponse(brokers=(), controller_id=-1, topics=())
QUESTION = StopReplicaRequest(controller_id=1, controller_epoch=1, ack_timeout_ms=1, partitions=())
Play = Callable[[Event], list[Effect]]


class Core:
    """A scripted core that records its events."""

    def __init__(self, play: Play) -> None:
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self._play = play

    def step(self, now_ns: int, event: Event, room: int, *, wall_ms: int) -> list[Effect]:
        self.events.append(event)
        self.effects = []
        self.effects = self._play(event)
        return self.effects


class ZooKeeper:
    """A coordination that records its asks and answers none."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, tuple[Any, ...]]] = []
        self.connected = True

    def ask(self, tag: int, ops: tuple[Any, ...]) -> None:
        self.asked.append((tag, ops))


class Rig:
    """A driver with these fakes and an open data directory, set up as by `run`."""

    def __init__(self, folder: Path, play: Play, runner: asyncio.Runner) -> None:
        self._runner = runner
        config = Config(broker_id=1, registration=REGISTRATION, protocol="kip101", rules=PROTOCOLS["kip101"])
        settings = Settings(
            node="A",
            listen_client=("127.0.0.1", 1),
            listen_internal=("127.0.0.1", 2),
            zookeeper="127.0.0.1:3",
            session_timeout_ms=1000,
            data_dir=folder,
            collector=None,
            segment_bytes=4096,
        )
        self.core, self.zookeeper = Core(play), ZooKeeper()
        self.driver = Driver(config, settings)
        self.driver._broker = self.core  # type: ignore[assignment]
        self.driver._coordination = self.zookeeper  # type: ignore[assignment]
        self.driver._data = open_data_dir(folder).data
        # Of so few partitions it is written in the loop: the executor stays idle, and has no thread.
        writer, driver = ThreadPoolExecutor(1), self.driver
        driver._checkpoints = Checkpoints(self.driver._data, writer, driver._on_durable, driver._fail)
        self.driver._done = runner.get_loop().create_future()

    def post_and_turn(self, event: Event) -> None:
        """Post an event on the running loop, then run the callbacks that are due."""

        async def turn() -> None:
            self.driver.post(event)
            for _ in range(10):
                await asyncio.sleep(0)

        self._runner.run(turn())

    @property
    def ended(self) -> str:
        """The reason with which `run` would return, "" while it continues."""
        done = self.driver._done
        return done.result() if done is not None and done.done() else ""


MakeRig = Callable[[Play], Rig]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[MakeRig]:
    """Yield a factory of rigs on an event loop that runs only when a test runs it."""
    made: list[Rig] = []
    with asyncio.Runner() as runner:

        def make(play: Play) -> Rig:
            made.append(Rig(tmp_path, play, runner))
            return made[-1]

        yield make
        for one in made:
            assert one.driver._data is not None
            one.driver._data.close()


def test_event_that_an_effect_brings_about_is_taken_after_all_effects_of_its_step(rig: MakeRig) -> None:
    flush = Flush(tp=TP, generation=3, upto=0)
    made = rig(lambda event: [flush, ZkAsk(tag=1, ops=())] if isinstance(event, Tick) else [ZkAsk(tag=2, ops=())])
    made.driver.create(TP, 0)
    made.driver.post(Tick())
    assert [Tick(), Flushed(tp=TP, generation=3, upto=0)] == made.core.events
    assert [1, 2] == [tag for tag, _ in made.zookeeper.asked]


def test_flush_of_a_log_that_was_deleted_is_forgotten(rig: MakeRig) -> None:
    made = rig(lambda event: [Flush(tp=TP, generation=3, upto=0)] if isinstance(event, Tick) else [])
    made.driver.create(TP, 0).delete()
    made.driver.post(Tick())
    assert [Tick()] == made.core.events


def test_exit_ends_the_broker_and_no_later_effect_or_event_is_taken(rig: MakeRig) -> None:
    made = rig(lambda _: [Exit(reason="id taken"), ZkAsk(tag=1, ops=())])
    made.driver.post(Tick())
    made.driver.post(Hungup(connection=1))
    assert "id taken" == made.ended
    assert ([Tick()], []) == (made.core.events, made.zookeeper.asked)


def test_disk_error_ends_the_broker_and_no_later_event_is_taken(rig: MakeRig, tmp_path: Path) -> None:
    """Source: Kafka Replication Design V3, discussion 4."""
    made = rig(lambda _: [WriteHighWatermarks(high_watermarks=((TP, 1),)), ZkAsk(tag=1, ops=())])
    made.driver._data.path = tmp_path / "gone"  # type: ignore[union-attr]
    made.driver.post(Tick())
    made.driver.post(Tick())
    assert made.ended.startswith("FileNotFoundError(2, ")
    assert ([Tick()], []) == (made.core.events, made.zookeeper.asked)


def test_stopped_broker_takes_no_event(rig: MakeRig) -> None:
    made = rig(lambda _: [])
    made.driver.stop("SIGTERM")
    made.driver.stop("again")
    made.driver.post(Tick())
    assert ("SIGTERM", []) == (made.ended, made.core.events)


def test_answer_to_a_connection_that_is_gone_is_dropped(rig: MakeRig) -> None:
    caller = Caller(connection=9, number=1)
    made = rig(lambda _: [Answer(to=caller, response=ANSWER), ZkAsk(tag=1, ops=())])
    made.driver.post(Received(caller=caller, request=MetadataRequest(topics=None)))
    assert ("", 1) == (made.ended, len(made.zookeeper.asked))


class Line:
    """A connection that records that it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


def test_request_whose_handler_raises_ends_its_connection_and_not_the_broker(
    rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    def play(event: Event) -> list[Effect]:
        if isinstance(event, Received):
            made.core.effects.append(ZkAsk(tag=1, ops=()))
            raise ValueError("a bug")
        return [ZkAsk(tag=2, ops=())]

    made = rig(play)
    bad, other = made.driver._inbound[9], made.driver._inbound[8] = Line(), Line()  # type: ignore[assignment]
    made.driver.post(
        Received(caller=Caller(connection=9, number=1), request=MetadataRequest(topics=("t" * 9_000,)))
    )
    made.driver.post(Tick())
    assert ("", True, False) == (made.ended, bad.closed, other.closed)
    assert [1, 2] == [tag for tag, _ in made.zookeeper.asked]  # what it did up to there stands
    (told,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "connection 9: request MetadataRequest(topics=('ttt" in told.getMessage()
    assert len(told.getMessage()) < 3_000
    assert told.exc_info is not None and "a bug" in str(told.exc_info[1])


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), LogInDoubtError("half a batch")])
def test_request_that_leaves_the_log_in_doubt_ends_the_broker(rig: MakeRig, error: Exception) -> None:
    """Source: Kafka Replication Design V3, discussion 4."""

    def play(_: Event) -> list[Effect]:
        raise error

    made = rig(play)
    made.driver.post(Received(caller=Caller(connection=9, number=1), request=MetadataRequest(topics=None)))
    assert repr(error) == made.ended


def test_any_other_event_whose_handler_raises_ends_the_broker(rig: MakeRig) -> None:
    def play(_: Event) -> list[Effect]:
        raise ValueError("a bug")

    made = rig(play)
    made.driver.post(Tick())
    assert "ValueError('a bug')" == made.ended


def test_arming_again_replaces_what_was_armed(rig: MakeRig) -> None:
    made = rig(lambda event: [Arm(at_ns=2**62), Arm(at_ns=0)] if isinstance(event, Hungup) else [])
    made.post_and_turn(Hungup(connection=1))
    assert [Hungup(connection=1), Tick()] == made.core.events


def test_addresses_of_brokers_are_read_under_tags_of_their_own(rig: MakeRig) -> None:
    made = rig(lambda _: [Send(to=7, tag=5, channel="fetcher", request=QUESTION)])
    made.driver.post(Tick())
    found: list[object] = []
    made.driver._resolve(8, found.append)
    (first, ops), (second, _) = made.zookeeper.asked
    assert (ZkGet(path=broker_path(7)),) == ops
    assert first < 0
    assert second < 0
    assert first != second
    node = ZkNode(data=encode_registration(REGISTRATION), version=0, owner=1, czxid=1)
    made.driver.post(ZkAnswered(tag=second, session=1, results=(node,)))
    assert [("127.0.0.1", 2)] == found
    assert [Tick()] == made.core.events  # the core does not receive the answers


@pytest.mark.parametrize("result", [ZkError.NO_NODE, ZkError.LOST])
def test_address_that_cannot_be_read_is_none(rig: MakeRig, result: ZkResult) -> None:
    made = rig(lambda _: [])
    found: list[object] = []
    made.driver._resolve(8, found.append)
    ((tag, _),) = made.zookeeper.asked
    made.driver.post(ZkAnswered(tag=tag, session=1, results=(result,)))
    assert [None] == found


def test_address_found_before_serves_while_zookeeper_cannot_be_asked(rig: MakeRig) -> None:
    """
    The fetcher of a zombie broker can reconnect to its leader.

    Source:  KAFKA-6880.
    """
    made = rig(lambda _: [])
    found: list[object] = []
    made.driver._resolve(8, found.append)
    node = ZkNode(data=encode_registration(REGISTRATION), version=0, owner=1, czxid=1)
    made.driver.post(ZkAnswered(tag=made.zookeeper.asked[0][0], session=1, results=(node,)))
    made.zookeeper.connected = False
    made.driver._resolve(8, found.append)
    assert ([("127.0.0.1", 2)] * 2, 1) == (found, len(made.zookeeper.asked))
    # ZooKeeper is asked for an unknown broker, and for a known one once the connection is back.
    made.driver._resolve(9, found.append)
    made.zookeeper.connected = True
    made.driver._resolve(8, found.append)
    assert (2, 3) == (len(found), len(made.zookeeper.asked))


# Measured in a separate process: the setting applies to a whole process.
MEGABYTES = 4
ROUNDS = 20


def faults_of_messages() -> int:
    """Return the number of page faults while messages of a megabyte are allocated and freed."""

    def come_and_go(rounds: int) -> None:
        for _ in range(rounds):
            del [bytearray(1 << 20) for _ in range(MEGABYTES)][:]

    come_and_go(2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    come_and_go(ROUNDS)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.slow
@needs("glibc")
def test_memory_of_messages_that_went_is_there_for_those_that_come() -> None:
    assert keep_freed_memory()
    program = f"from {__name__} import *; {{}}print(faults_of_messages())"
    kept, given_back = (
        int(subprocess.run([sys.executable, "-c", program.format(first)], capture_output=True, check=True).stdout)
        for first in ("keep_freed_memory(); ", "")
    )
    pages = ROUNDS * MEGABYTES * (1 << 20) // resource.getpagesize()
    assert kept < pages // 10
    if platform.libc_ver()[0] == "glibc":  # other C libraries may keep memory by default
        assert given_back > pages // 2
