"""Logs of old message formats are opened, read, replicated, appended to, truncated and recovered unconverted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from targets.broker.core.log_port import LeoAfterCut
from targets.broker.core.messages import Batch, ErrorCode
from targets.broker.log import FileLog, LogOptions, open_data_dir, split_produced
from targets.broker.log.batch import Damage
from targets.broker.log.names import segment_name
from targets.broker.log.recovery import Known, open_log
from targets.broker.log.stored import crc_of, examine, is_old, max_timestamp_of, split_stored
from tests.broker.log.batches import TP, all_of, batch, new_log, offsets, raw_batch
from tests.kafka_release import DATA
from tests.targets.kafka_family.logs.scans import scan_partition

OLD = DATA / "kafka-0.10.2.2" / "b1"
TOPICS = sorted(path.name for path in OLD.iterdir() if path.is_dir())
# Every topic of the fixture holds this many messages.
END = 12


def bytes_of(batches: tuple[Batch, ...]) -> bytes:
    return b"".join(bytes(each.payload) for each in batches)


def on_disk(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def entry_of(data: bytes) -> bytes:
    """Return the first entry of a message set."""
    return data[: 12 + int.from_bytes(data[8:12])]


@pytest.fixture(params=TOPICS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy a log directory written by Apache Kafka 0.10.2.2; the copy has the name of the tests' partition."""
    return shutil.copytree(OLD / request.param, tmp_path / "old" / str(TP))


def opened(directory: Path, *, clean: bool = False) -> FileLog:
    log, found = open_log(TP, directory, Known(clean=clean), LogOptions())
    assert (clean, 0, "clean", ()) == (found.clean, found.cut_bytes, found.reason, found.file_epochs)
    assert {-1} == {epoch for epoch, _ in found.batch_epochs}
    return log


@pytest.mark.parametrize("clean", [True, False])
def test_old_log_is_opened_and_read_byte_for_byte(old: Path, clean: bool) -> None:
    """Source: KIP-101, compatibility."""
    before = on_disk(old)
    log = opened(old, clean=clean)
    found = all_of(log)
    assert (0, END) == (log.start_offset, log.end_offset)
    assert before == bytes_of(found) == on_disk(old)
    assert {-1} == {each.leader_epoch for each in found}
    ends = [each.next_offset for each in found]
    assert [0, *ends[:-1]] == [each.base_offset for each in found]


def test_old_log_gives_the_entry_that_holds_an_offset(old: Path) -> None:
    log = opened(old)
    for offset in range(END):
        first = log.read(offset, END, 1)[0]
        assert first.base_offset <= offset < first.next_offset


def test_follower_of_an_old_log_comes_to_the_same_bytes_and_offsets(old: Path, tmp_path: Path) -> None:
    """Source: KIP-101, compatibility."""
    log = opened(old)
    follower = new_log(tmp_path / "follower", segment_bytes=400)
    while follower.end_offset < log.end_offset:
        sent = bytes_of(log.read(follower.end_offset, log.end_offset, 300))
        batches, error, text = split_stored(sent)
        assert (ErrorCode.NONE, "") == (error, text)
        before = follower.end_offset
        assert (before, batches[-1].next_offset) == follower.append_as_follower(batches)
    assert on_disk(old) == on_disk(follower.directory)
    assert offsets(all_of(log)) == offsets(all_of(follower))
    names = [int(path.stem) for path in sorted(follower.directory.glob("*.log"))]
    assert set(names) <= {each.base_offset for each in all_of(follower)}


def test_new_batches_follow_old_entries_and_both_are_recovered(old: Path) -> None:
    """Source: KIP-101, compatibility."""
    log = opened(old, clean=True)
    assert (END, END + 3) == log.append_as_leader([batch(count=3, text=b"new")], 4)
    before = on_disk(old)
    log.close()
    log, found = open_log(TP, old, Known(clean=False), LogOptions())
    assert ((-1, 0), (4, END)) == found.batch_epochs
    assert (0, END + 3) == (found.cut_bytes, log.end_offset)
    assert before == bytes_of(all_of(log))


def test_recovery_cuts_an_old_log_where_an_entry_is_torn_or_damaged(old: Path) -> None:
    """Source: KIP-101, compatibility."""
    log = opened(old)
    last = all_of(log)[-1]
    end = last.base_offset
    log.close()
    path = max(old.glob("*.log"))
    data = path.read_bytes()
    flipped = bytearray(data)
    flipped[-1] ^= 1
    for tail, damage in (
        (bytes(flipped), Damage.CRC),
        (data[:-1], Damage.TORN),
        (data + bytes(300), Damage.ZEROS),
    ):
        path.write_bytes(tail)
        log, found = open_log(TP, old, Known(clean=False), LogOptions())
        assert damage == found.reason
        assert (END if damage is Damage.ZEROS else end) == log.end_offset
        log.close()
        path.write_bytes(data)


def test_old_log_is_cut_at_whole_entries(old: Path) -> None:
    log = opened(old)
    kept = [each for each in all_of(log) if each.next_offset <= 7]
    assert kept[-1].next_offset == log.truncate_to(7, LeoAfterCut.PHYSICAL)
    assert bytes_of(tuple(kept)) == on_disk(old)


def test_data_directory_of_an_old_release_is_opened_whole(tmp_path: Path) -> None:
    """Source: KIP-101, compatibility."""
    data = shutil.copytree(OLD, tmp_path / "data")
    found = open_data_dir(data)
    assert found.clean and not found.notes
    assert TOPICS == [str(tp) for tp in sorted(found.logs)]
    assert {END} == {log.end_offset for log, _ in found.logs.values()}
    found.data.close()


@pytest.mark.parametrize("topic", ["compacted-0", "compacted-gzip-0"])
def test_cleaned_old_log_is_opened_and_replicated_with_its_gaps(topic: str, tmp_path: Path) -> None:
    directory = shutil.copytree(DATA / "kafka-0.10.2.2-cleaned" / "b1" / topic, tmp_path / "cleaned" / str(TP))
    log = opened(directory)
    assert (0, 18) == (log.start_offset, log.end_offset)
    sent = bytes_of(all_of(log))
    follower = new_log(tmp_path / "follower")
    assert (0, 18) == follower.append_as_follower(split_stored(sent)[0])
    assert on_disk(directory) == sent == on_disk(follower.directory)


@pytest.mark.parametrize("clean", [True, False])
def test_data_directory_of_older_and_mixed_formats_is_opened_whole(clean: bool, tmp_path: Path) -> None:
    source = DATA / "kafka-1.1.1-formats" / "b1"
    data = shutil.copytree(source, tmp_path / "data")
    if not clean:
        (data / ".kafka_cleanshutdown").unlink()
    found = open_data_dir(data)
    assert clean == found.clean
    for tp, (log, recovery) in found.logs.items():
        before = on_disk(source / str(tp))
        assert before == bytes_of(all_of(log)) == bytes_of(split_stored(before)[0])
        assert (0, "clean") == (recovery.cut_bytes, recovery.reason)
        assert log.end_offset == scan_partition(source / str(tp)).log_end_offset
    found.data.close()


def test_times_are_looked_up_in_old_logs(old: Path) -> None:
    log = opened(old)
    assert 0 == log.first_offset_at(1_500_000_000_000).offset
    assert -1 == log.first_offset_at(1 << 60).offset


def test_old_entry_is_never_a_producer_s() -> None:
    entry = entry_of(on_disk(OLD / "plain-0"))
    _, error, text = split_produced(entry + bytes(80))
    assert ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT == error
    assert "magic 1" in text


def test_header_of_an_old_entry_is_refused_when_it_cannot_be_one() -> None:
    entry = bytearray(entry_of(on_disk(OLD / "plain-0")))
    assert is_old(entry) and not is_old(raw_batch()) and not is_old(bytes(61))
    assert Damage.TORN is examine(entry, len(entry) - 1)
    assert Damage.LENGTH is examine(entry[:8] + (21).to_bytes(4) + entry[12:], len(entry))
    assert Damage.DISORDER is examine(b"\xff" * 8 + entry[8:], len(entry))
    assert Damage.ZEROS is examine(bytes(61), 100)


def test_old_entry_of_magic_0_has_no_time() -> None:
    entry = bytearray(entry_of(on_disk(OLD / "plain-0")))
    assert 1_500_000_000_000 == max_timestamp_of(entry)
    zero = entry[:16] + b"\x00" + entry[17:18] + entry[26:]
    zero[8:12] = (len(zero) - 12).to_bytes(4)
    zero[12:16] = crc_of(zero).to_bytes(4)
    (found,), error, _ = split_stored(zero)
    assert (ErrorCode.NONE, -1, 0) == (error, max_timestamp_of(zero), found.last_offset)


@pytest.mark.parametrize("at", range(12, 40, 3))
def test_follower_refuses_a_message_set_when_a_byte_of_it_is_damaged(at: int) -> None:
    data = bytearray(on_disk(OLD / "plain-0"))
    data[at] ^= 4
    assert ErrorCode.NONE != split_stored(data)[1]


def test_follower_refuses_a_message_set_when_its_offsets_fall() -> None:
    entry = entry_of(on_disk(OLD / "plain-0"))
    found, error, text = split_stored(entry + entry)
    assert ((), ErrorCode.INVALID_RECORD) == (found, error)
    assert "base offset 0; expected at least 1" in text


def test_segment_of_an_old_log_may_begin_with_new_batches_only(tmp_path: Path) -> None:
    directory = shutil.copytree(OLD / "rolled-0", tmp_path / str(TP))
    (directory / segment_name(END)).write_bytes(raw_batch(base=END, epoch=3))
    log, found = open_log(TP, directory, Known(clean=False), LogOptions())
    assert (((-1, 0), (3, END)), END + 1) == (found.batch_epochs, log.end_offset)
