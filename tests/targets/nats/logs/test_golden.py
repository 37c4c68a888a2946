"""What servers of release 2.15.3 wrote is read whole, by each replica alike."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from itertools import pairwise

import pytest

from harness.beneath import Folder
from harness.logs.compare import compare
from harness.logs.lineage import holes
from harness.logs.record import Record
from harness.target.logs import NodeFiles
from targets.nats.logs.raft_log import logged
from targets.nats.logs.reader import LOGS, NatsLogs
from tests.targets.nats.logs.scans import N1, N2, OLDER, beside, offsets, replicas, scan, values

STREAMS = [("gone", 0), ("holes", 1), ("orders", 0), ("parts", 0), ("squeezed", 0)]
LONG = "same words, and so on; " * 380


def test_replicas_are_the_streams_and_no_group_is_one() -> None:
    assert STREAMS == replicas(N1)
    assert [("orders", 0)] == replicas(N2)


@pytest.mark.parametrize(("topic", "partition"), STREAMS)
def test_every_log_is_sound_and_its_quick_end_is_that_of_a_reading(topic: str, partition: int) -> None:
    log = scan(N1, topic, partition)
    assert ((), (), (), ()) == (log.problems, log.unread, log.remarks, holes(log))
    with Folder.at(N1) as folder:
        assert log.log_end_offset == LOGS.end(NodeFiles(folder=folder), topic, partition)


def test_records_are_those_that_were_sent() -> None:
    log = scan(N1, "orders")
    assert [*(f"m{at}" for at in range(6)), "with headers", "", LONG, "later0", "later1", "later2"] == values(log)
    assert (1, 13, list(range(1, 13))) == (log.log_start_offset, log.log_end_offset, offsets(log))


def test_terms_are_those_of_the_raft_log() -> None:
    log = scan(N1, "orders")
    assert [1] * 9 + [2] * 3 == [batch.epoch for batch in log.batches]
    assert ((1, 1), (2, 10)) == log.epochs


def test_records_before_a_snapshot_have_no_term() -> None:
    log = scan(N2, "orders")
    assert [-1] * 9 + [2] * 3 == [batch.epoch for batch in log.batches]
    assert ((2, 10),) == log.epochs


@pytest.mark.parametrize("has_terms", [True, False])
def test_replicas_hold_the_same_although_they_know_other_terms(has_terms: bool) -> None:
    logs = NatsLogs(has_terms=has_terms)
    with ExitStack() as stack:
        nodes = {each.name: NodeFiles(folder=stack.enter_context(Folder.at(each))) for each in (N1, N2)}
        opened = {name: partial(logs.reading, node, "orders", 0) for name, node in nodes.items()}
        found = compare("orders-0", opened)
    assert () == tuple(found.differences)


@pytest.mark.parametrize(("topic", "partition"), [("orders", 0), ("parts", 0)])
def test_second_store_has_the_same_records_with_equal_digests(topic: str, partition: int) -> None:
    log = scan(N1, topic, partition)
    found = beside(N1, topic, partition)
    stored = {(batch.base, batch.epoch, digest) for batch in log.batches for _, digest, _ in batch.records}
    assert stored == {(each.offset, each.epoch, each.digest) for each in found if isinstance(each, Record)}
    assert len(found) == len(log.batches)


def test_headers_are_decoded_alike_in_both_stores() -> None:
    records = [each for each in beside(N1, "orders") if isinstance(each, Record) and each.headers]
    assert [((b"Nats-Msg-Id", b"id-1"), (b"A", b"b: c"), (b"A", b""))] == [each.headers for each in records]
    assert b"with headers" == records[0].value


def test_purged_stream_begins_behind_its_last_record_and_its_raft_log_has_them_still() -> None:
    log = scan(N1, "gone")
    assert (6, 6, []) == (log.log_start_offset, log.log_end_offset, values(log))
    assert [b"g0", b"g1", b"g2", b"g3", b"g4"] == [
        each.value for each in beside(N1, "gone") if isinstance(each, Record)
    ]


def test_deleted_records_are_left_out() -> None:
    log = scan(N1, "holes", 1)
    assert ([2, 3, 5, 7, 8, 9, 10], 2, 11, 7) == (
        offsets(log),
        log.log_start_offset,
        log.log_end_offset,
        log.cleaned_to,
    )


def test_parts_of_a_batch_are_records() -> None:
    log = scan(N1, "parts")
    assert ["part 1", "part 2", "part 3"] == values(log)
    assert {1} == {batch.epoch for batch in log.batches}


def test_compressed_blocks_are_read_with_those_that_are_not() -> None:
    log = scan(N1, "squeezed")
    assert (40, ["msgs/1.blk", "msgs/2.blk", "msgs/3.blk"]) == (
        len(log.batches),
        sorted({each.segment for each in log.batches}),
    )
    for at, value in enumerate(values(log)):
        begin, _, words = str(value).partition(" ")
        assert (f"s{at}", words[: len(words) // 20] * 20) == (begin, words)
    assert (None, {-1}) == (log.epochs, {batch.epoch for batch in log.batches})


def test_release_2_12_1_writes_the_same() -> None:
    """But for the length in a compressed block's head, which nobody reads."""
    log = scan(OLDER, "squeezed")
    assert (list(range(1, 17)), ()) == (offsets(log), log.problems)
    log = scan(OLDER, "orders")
    assert (values(scan(N1, "orders")), ((1, 1), (2, 10)), ()) == (values(log), log.epochs, log.problems)
    assert 12 == len(beside(OLDER, "orders"))


def test_raft_log_is_in_order_of_its_index_and_terms() -> None:
    with Folder.at(N1) as folder:
        found = list(logged(folder, ["jetstream/$SYS/_js_/S-R3F-wctvCWaF"]))
    assert 12 == len(found)
    places = [(each.index, each.term) for each in found if not isinstance(each, str)]
    assert all(one[0] < other[0] and one[1] <= other[1] for one, other in pairwise(places))
