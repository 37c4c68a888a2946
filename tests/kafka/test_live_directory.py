"""A running broker's directory is read while it writes: each reading is a state of the log and changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer

from harness import limits
from harness.cleanup.process import until
from harness.launch import Address
from harness.logs.lineage import differences, holes
from harness.logs.replica import ReplicaLog
from harness.logs.soundness import notes
from harness.model import EXIT_CODES, PreconditionError
from harness.scenario.file import PARTITION, TOPIC
from targets.broker.log.lock import DataDirTakenError, held
from tests.cli.watched import lineage_watched
from tests.kafka.lodging import Lodging, lodging
from tests.kept import exhaustive, keep
from tests.needs import of_release
from tests.targets.kafka_family.logs.scans import scan_partition

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SEGMENT_BYTES = 40_000
SMALL = (f"log.segment.bytes={SEGMENT_BYTES}",)
# The log is read until there are this many readings and this many segments.
READINGS_MIN, SEGMENTS_MIN = 30, 12
VALID, UNKNOWN = EXIT_CODES["valid"], EXIT_CODES["unknown"]


@contextmanager
def load(lodger: Lodging) -> Iterator[list[int]]:
    """Write without a pause; yield the list of acknowledged offsets, which grows as they arrive."""
    acknowledged: list[int] = []
    errors: list[object] = []
    enough = threading.Event()
    # A batch must fit into a segment, and no record may be written twice.
    sparing = {"batch.num.messages": 20, "retries": 0, "max.in.flight.requests.per.connection": 1}
    producer = Producer(
        {"bootstrap.servers": lodger.address, "acks": "all", "linger.ms": 1, "log_level": 0, **sparing}
    )

    def note(error: object, message: Message) -> None:
        if error is None:
            acknowledged.append(message.offset() or 0)
        else:
            errors.append(error)

    def write() -> None:
        while not enough.is_set():
            value = b"%d " % len(acknowledged) + b"and again " * 40
            producer.produce(TOPIC, value=value, partition=PARTITION, on_delivery=note)
            producer.poll(0.001)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield acknowledged
    finally:
        enough.set()
        thread.join()
        left = producer.flush(limits.CLIENT_OPERATION_S_MAX)
    assert ([], 0) == (errors, left)


def judge(log: ReplicaLog, before: ReplicaLog | None) -> None:
    """Check that a reading is sound, and that it extends the one before it."""
    assert ((), ()) == (log.problems, holes(log))
    assert [] == [note for note in notes(log) if note.kind is not None]
    assert any("a running broker holds it" in remark for remark in log.remarks)
    if before is not None:
        assert before.batches == log.batches[: len(before.batches)]
        assert () == differences({"before": before, "now": log})


@pytest.mark.parametrize("name", keep([of_release("0.10.2.2"), of_release("3.9.1")], "3.9.1"))
@exhaustive
def test_directory_is_read_while_its_broker_appends_and_rolls(
    name: str, tmp_path: Path, zookeeper: Address
) -> None:
    with lodging("kafka", name, zookeeper, tmp_path, changes=SMALL) as lodger:
        readings: list[ReplicaLog] = []
        with load(lodger) as acknowledged:

            def read() -> bool:
                sure = len(acknowledged)
                log = scan_partition(lodger.folder)
                judge(log, readings[-1] if readings else None)
                assert log.log_end_offset >= sure, "what was acknowledged before is in the log"
                readings.append(log)
                segments = len({batch.segment for batch in log.batches})
                return len(readings) >= READINGS_MIN and segments >= SEGMENTS_MIN

            assert until(read, limits.CONDITION_WAIT_S_MAX)
            data = lodger.folder.parent
            code, text, touched = lineage_watched(data, data)
            assert (VALID, []) == (code, touched), text
            assert "a running broker holds it" in text
        assert len({log.log_end_offset for log in readings}) > READINGS_MIN // 2, "the log has grown meanwhile"
        assert sorted(acknowledged) == [offset for offset, _ in lodger.read()]


@exhaustive
@pytest.mark.parametrize("name", [of_release("0.10.2.2"), of_release("3.9.1")])
def test_room_taken_beforehand_is_told_as_such_until_its_broker_is_dead(
    name: str, tmp_path: Path, zookeeper: Address
) -> None:
    with lodging("kafka", name, zookeeper, tmp_path, changes=(*SMALL, "log.preallocate=true")) as lodger:
        lodger.write("m0", "none")
        log = scan_partition(lodger.folder)
        judge(log, None)
        assert any("zero bytes behind the log's end" in remark for remark in log.remarks)
        assert SEGMENT_BYTES == (lodger.folder / f"{0:020d}.log").stat().st_size
        lodger.take_down()
        dead = scan_partition(lodger.folder)
        assert log.batches == dead.batches
        assert "all zero, to the end of the file" in dead.problems[0]
        assert UNKNOWN == lineage_watched(lodger.folder, lodger.folder)[0]
        lodger.come_back()
        again = scan_partition(lodger.folder)
        judge(again, log)


@pytest.mark.parametrize("name", keep([of_release("0.10.2.2"), of_release("3.9.1")], "3.9.1"))
def test_neither_system_starts_on_a_directory_that_the_other_has(
    name: str, tmp_path: Path, zookeeper: Address
) -> None:
    with lodging("kafka", name, zookeeper, tmp_path) as lodger:
        data = lodger.folder.parent
        with pytest.raises(DataDirTakenError), held(data):
            pytest.fail("ours was let in")
        lodger.take_down()
        with held(data), pytest.raises(PreconditionError, match=r"Failed to acquire lock on file \.lock"):
            lodger.come_back()
        lodger.come_back()
