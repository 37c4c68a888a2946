"""Damage of a block is reported, and neither raised nor overlooked; what is sound around it is read."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from harness import limits
from harness.logs.lineage import holes
from harness.logs.replica import ReplicaLog
from harness.logs.source import BytesSource
from targets.nats.logs import blocks
from targets.nats.logs.blocks import Damage, records
from targets.nats.logs.highway import block_key
from tests.little_memory import printed_with_little_memory
from tests.targets.nats.logs.build import ERASED, TOMBSTONE, record, stream
from tests.targets.nats.logs.scans import offsets, scan, values

KEY = block_key("t-0", 1)
HEADER = b"NATS/1.0\r\nA: b\r\n\r\n"
WHOLE = [record("t-0-1", at, b"m%d" % at, subject=b"t-0", header=HEADER if at == 2 else b"") for at in range(1, 5)]


def written(data: Path, *block: bytes) -> ReplicaLog:
    path = data / "jetstream" / "$G" / "streams" / "t-0" / "msgs" / "1.blk"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(block))
    return scan(data)


def test_sound_block_is_read_whole(tmp_path: Path) -> None:
    log = written(tmp_path, *WHOLE)
    assert ((), (), 1, 5) == (log.problems, log.unread, log.log_start_offset, log.log_end_offset)
    assert ["m1", "m2", "m3", "m4"] == values(log)


def test_every_flipped_bit_of_a_byte_is_noticed(tmp_path: Path) -> None:
    """Lengths are not covered by the checksum: that of a subject or header moves the value, as at the server."""
    data = b"".join(WHOLE)
    sound = written(tmp_path, *WHOLE)
    last = len(data) - len(WHOLE[-1])
    for at in range(len(data)):
        for bit in (0x01, 0x80):
            log = written(tmp_path, data[:at] + bytes((data[at] ^ bit,)) + data[at + 1 :])
            wrong = log.problems or log.unread or holes(log) or log.log_end_offset != 5
            assert wrong or values(log) != values(sound), (at, bit)
            if at < last:
                assert 5 == log.log_end_offset


def test_block_that_is_cut_at_any_byte_has_its_whole_records_and_no_problem(tmp_path: Path) -> None:
    data, ends = b"".join(WHOLE), [sum(map(len, WHOLE[:count])) for count in range(5)]
    for at in range(len(data)):
        log = written(tmp_path, data[:at])
        whole = sum(end <= at for end in ends) - 1
        assert ((), (), whole) == (log.problems, log.unread, len(log.batches))


def test_torn_tail_of_a_block_that_is_not_the_newest_is_a_problem(tmp_path: Path) -> None:
    stream(tmp_path, "t-0", [*WHOLE[:2], WHOLE[2][:20]], [record("t-0-2", 4, b"m4")])
    log = scan(tmp_path)
    assert (["m1", "m2", "m4"], ((3, 4),)) == (values(log), log.unread)
    assert "jetstream/$G/streams/t-0/msgs/1.blk, position " in log.problems[0]
    assert "20 bytes are left; expected a record of at least 30 or none" in log.problems[0]


@pytest.mark.parametrize("garbled", [0, 1, 2, 3])
def test_reading_goes_on_behind_a_record_with_a_wrong_checksum(tmp_path: Path, garbled: int) -> None:
    block = [bytearray(each) for each in WHOLE]
    block[garbled][-9] ^= 1
    log = written(tmp_path, *map(bytes, block))
    assert [at for at in range(1, 5) if at != garbled + 1] == offsets(log)
    assert (((garbled + 1, garbled + 2),), 5) == (log.unread, log.log_end_offset)
    assert f"checksum of sequence {garbled + 1} is 0x" in log.problems[0]


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "record length is 0; expected at least 33"),
        (32, "record length is 32; expected at least 33"),
        (2**31 - 1, "record length is 2147483647; expected at most 9437184"),
        (9437184, "torn, record length is 9437184 and "),
    ],
)
def test_length_that_lies_is_a_problem_and_the_next_record_is_found(
    tmp_path: Path, length: int, text: str
) -> None:
    lying = struct.pack("<I", length) + WHOLE[0][4:]
    log = written(
        tmp_path, WHOLE[0], struct.pack("<I", length) + record("t-0-1", 2, b"m2", subject=b"t-0")[4:], *WHOLE[2:]
    )
    assert ([1, 3, 4], ((2, 3),)) == (offsets(log), log.unread)
    assert text in log.problems[0]
    # A lie in the first record leaves the start of the log unknown.
    log = written(tmp_path, lying, *WHOLE[1:])
    assert ([2, 3, 4], ((1, 2),), 1) == (offsets(log), log.unread, len(log.problems))


def test_length_that_leads_to_another_sound_record_does_not_hide_those_between(tmp_path: Path) -> None:
    both = struct.pack("<I", len(WHOLE[0]) + len(WHOLE[1])) + WHOLE[0][4:]
    log = written(tmp_path, both, *WHOLE[1:])
    assert ([3, 4], ((1, 3),)) == (offsets(log), log.unread)


def test_length_of_a_header_that_lies_is_a_problem(tmp_path: Path) -> None:
    lying = WHOLE[1][:25] + struct.pack("<I", 2**32 - 1) + WHOLE[1][29:]
    log = written(tmp_path, WHOLE[0], lying, *WHOLE[2:])
    assert ([1, 3, 4], ((2, 3),)) == (offsets(log), log.unread)
    assert "header length is 4294967295; expected at most" in log.problems[0]


def test_zeros_at_the_end_are_a_problem(tmp_path: Path) -> None:
    log = written(tmp_path, *WHOLE, bytes(100))
    assert ([1, 2, 3, 4], ((5, None),)) == (offsets(log), log.unread)
    assert "100 bytes, all zero, to the end" in log.problems[0]


def test_key_is_that_of_the_stream_and_the_block(tmp_path: Path) -> None:
    stream(tmp_path, "t-0", [record("t-1-1", 1, b"a")], [record("t-0-1", 2, b"b")], [record("t-0-3", 3, b"c")])
    log = scan(tmp_path)
    assert (["c"], ((1, 3),), 2) == (values(log), log.unread, len(log.problems))


def test_sequence_that_goes_back_is_out_of_order(tmp_path: Path) -> None:
    log = written(tmp_path, *WHOLE, WHOLE[1])
    assert "sequence is 2; expected 5 or later" in log.batches[-1].problem


@pytest.mark.parametrize("claimed", [30, 1 << 10, 1 << 18])
def test_hostile_block_is_given_up_in_time(claimed: int) -> None:
    """Everywhere could begin a record of the sequence that is due, of any length."""
    data = struct.pack("<IQQH", claimed, 1, 1, 0) * 50_000
    began = time.monotonic()
    found = list(records(BytesSource(data), KEY))
    assert [Damage] == [type(each) for each in found]
    assert time.monotonic() - began < 10


def test_sparse_block_of_gigabytes_is_read_by_a_process_that_has_none(tmp_path: Path) -> None:
    log = written(tmp_path, *WHOLE)
    assert 4 == len(log.batches)
    path = tmp_path / "jetstream" / "$G" / "streams" / "t-0" / "msgs" / "1.blk"
    with path.open("r+b") as file:
        file.truncate(8 << 30)
    code = "from pathlib import Path\nfrom tests.targets.nats.logs.scans import scan, values\n"
    code += f"log = scan(Path({str(tmp_path)!r}))\nprint(values(log), log.problems)"
    printed = printed_with_little_memory(code)
    assert printed.startswith("['m1', 'm2', 'm3', 'm4']")
    assert "all zero, to the end" in printed


def test_findings_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_FINDINGS_MAX", 4)
    block = [record("t-0-1", at, b"m") if at % 2 else record("x", at, b"m") for at in range(1, 30)]
    log = written(tmp_path, *block)
    assert log.unread[-1][1] is None
    assert len(log.problems) == 5


def test_records_are_verified_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_TOGETHER_RECORDS", 2)
    assert [1, 2, 3, 4] == [each.sequence for each in records(BytesSource(b"".join(WHOLE)), KEY)]  # type: ignore[union-attr]


def test_tombstone_deletes_the_record_wherever_it_is(tmp_path: Path) -> None:
    stream(tmp_path, "t-0", WHOLE, [record("t-0-2", 2 | TOMBSTONE), record("t-0-2", 5, b"m5")])
    log = scan(tmp_path)
    assert ([1, 3, 4, 5], 3, 6) == (offsets(log), log.cleaned_to, log.log_end_offset)
    assert ((), ()) == (log.problems, holes(log))


def test_first_records_that_are_deleted_move_the_start(tmp_path: Path) -> None:
    log = written(tmp_path, *WHOLE, record("t-0-1", 1 | TOMBSTONE), record("t-0-1", 2 | TOMBSTONE))
    assert ([3, 4], 3, 5) == (offsets(log), log.log_start_offset, log.log_end_offset)


def test_erased_record_is_a_hole_and_with_a_tombstone_a_deleted_one(tmp_path: Path) -> None:
    erased = record("t-0-1", 2 | ERASED, b"noise", time_ns=0)
    log = written(tmp_path, WHOLE[0], erased, *WHOLE[2:])
    assert ([1, 3, 4], ((2, 3),), ()) == (offsets(log), holes(log), log.problems)
    log = written(tmp_path, WHOLE[0], erased, *WHOLE[2:], record("t-0-1", 2 | TOMBSTONE))
    assert ([1, 3, 4], ()) == (offsets(log), holes(log))


def test_placeholder_of_skipped_sequences_moves_the_end(tmp_path: Path) -> None:
    log = written(tmp_path, *WHOLE, record("t-0-1", 9 | ERASED))
    assert (10, ((5, 10),)) == (log.log_end_offset, holes(log))


def test_tombstone_that_keeps_the_last_sequence_hides_no_hole(tmp_path: Path) -> None:
    """A server that finds its index beyond its blocks, as after a loss of power, writes one."""
    log = written(tmp_path, *WHOLE, record("t-0-1", 9 | TOMBSTONE))
    assert (10, ((5, 10),), 0) == (log.log_end_offset, holes(log), log.cleaned_to)
