"""What tablet servers of release 0.9.1 wrote is read whole, by each replica alike."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from harness.beneath import Folder
from harness.logs.compare import Comparison, compare
from harness.model import Verdict
from harness.target.logs import NodeFiles
from targets.fluss.logs.reader import LOGS
from tests.targets.fluss.logs.scans import GOLDEN, replicas, scan, values

SERVERS = [GOLDEN / "0", GOLDEN / "1"]
WORDS = "same words same words same words "


def compared(topic: str, bucket: int, servers: list[Path]) -> Comparison:
    with ExitStack() as stack:
        nodes = {each.name: NodeFiles(folder=stack.enter_context(Folder.at(each))) for each in servers}
        opened = {name: partial(LOGS.reading, node, topic, bucket) for name, node in nodes.items()}
        return compare(f"{topic}-{bucket}", opened)


def test_replicas_are_those_of_tables_without_partitions() -> None:
    names = ["indexed", "keyed", "keys", "lz4", "other.events"]
    assert [*((name, 0) for name in names), ("records", 0), ("records", 1)] == replicas(SERVERS[0])


@pytest.mark.parametrize(("topic", "bucket"), replicas(SERVERS[0]))
def test_every_log_is_sound_and_equal_on_both_servers(topic: str, bucket: int) -> None:
    for server in SERVERS:
        log = scan(server, topic, bucket)
        assert ((), (), 0, None) == (log.problems, log.unread, log.log_start_offset, log.epochs)
        assert log.log_end_offset == log.high_watermark
    found = compared(topic, bucket, SERVERS)
    assert Verdict.VALID is found.verdict
    assert {None} >= {note.kind for replica in found.replicas.values() for note in replica.notes}


def test_records_of_two_buckets_are_those_that_were_sent() -> None:
    first, second = (scan(SERVERS[0], "records", bucket) for bucket in (0, 1))
    batches = [f"b{batch}-{number} {WORDS}" for batch in range(3) for number in range(300)]
    sent = [*batches, *(f"s{number}" for number in range(12)), None, "", "ü"]
    assert sorted(map(str, sent)) == sorted(map(str, values(first) + values(second)))
    assert (309, 606) == (first.log_end_offset, second.log_end_offset)
    assert [*batches[300:600], "s0"] == values(first)[:301]
    assert [None, "", "ü"] == values(first)[-3:]
    assert [f"{base:020d}.log" for base in (0, 306)] == sorted({batch.segment for batch in first.batches})


@pytest.mark.parametrize(("topic", "codec"), [("records", "zstd"), ("lz4", "lz4"), ("keys", "zstd")])
def test_compressed_batch_is_read_whatever_its_codec(topic: str, codec: str) -> None:
    (batch, *_) = scan(SERVERS[0], topic).batches
    assert codec == batch.codec
    assert {f"{base}{WORDS}" for base in ("l7 ", "b1-7 ", f"k7 {WORDS}{WORDS}")} & {v for _, _, v in batch.records}


def test_batches_of_release_0_9_1_have_no_epoch() -> None:
    assert {(1, -1)} == {(batch.magic, batch.epoch) for batch in scan(SERVERS[0], "records", 1).batches}


def test_batch_without_records_takes_an_offset() -> None:
    """The delete of a key that was never there."""
    *_, last = scan(SERVERS[0], "keys").batches
    assert (61, 61, "empty batch", True) == (last.base, last.last, last.records[0][2], last.control)


def test_change_types_are_a_part_of_what_a_record_is() -> None:
    """Each key was sent twice: an insert, then its update as the value before and after, and of one a delete."""
    log = scan(SERVERS[0], "keys")
    digests: dict[str | None, list[str]] = {}
    for batch in log.batches[:2]:
        for _, digest, value in batch.records:
            digests.setdefault(value, []).append(digest)
    assert [3] * 19 + [4] == sorted(len(set(each)) for each in digests.values())


def test_other_schemas_are_read_as_digests_of_their_batches() -> None:
    for topic, batches in (("other.events", 3), ("keyed", 1)):
        log = scan(SERVERS[0], topic)
        found = values(log)
        assert f"batch {found[0].split()[1]} #0" == found[0] if found[0] else False
        assert (15, batches) == (len(set(found)), len({str(value).split()[1] for value in found}))
        assert 1 == len(log.remarks)
        assert "not one column of text" in log.remarks[0]


def test_table_in_the_format_of_rows_has_arrow_from_the_client_for_python() -> None:
    """The client writes Arrow whatever `table.log.format` says."""
    assert [f"i{number}" for number in range(5)] == values(scan(SERVERS[0], "indexed"))
