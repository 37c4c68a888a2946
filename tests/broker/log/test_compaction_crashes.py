"""
A log that is compacted and crashes at any moment: epoch cache, files, cleaner and recovery against a simple model.

Source:  KIP-101, Maintaining the LeaderEpochSequenceFile and Unclean Shutdown; KAFKA-6264; Kafka, LogLoader.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from targets.broker.core.epochs import EpochCache, recovered_cache
from targets.broker.core.log_port import LeoAfterCut
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.tombstones import TombstoneDelay
from targets.broker.log import FileLog, LogOptions, checkpoint
from targets.broker.log.batch import parse_header
from targets.broker.log.beneath import Folder
from targets.broker.log.data_dir import OpenedData, open_data_dir
from targets.broker.log.recovery import Known, open_log
from tests.broker.log.batches import TP, new_log
from tests.broker.log.keyed import AT_ONCE, Pair, append, clean_all, held
from tests.kept import exhaustive

RULES = PROTOCOLS["kip380"]
SEGMENT_BYTES = 260
ALL = 1 << 30


def opened(directory: Path, start: int = 0) -> FileLog:
    """Return a copy of a log as the next process opens it after a crash."""
    options = LogOptions(segment_bytes=SEGMENT_BYTES)
    return open_log(TP, directory, Known(clean=False, log_start=start), options)[0]


# --- at each change of files, and at each byte -------------------------------------------------------------------
def watched(monkeypatch: pytest.MonkeyPatch, before: Callable[[], None]) -> None:
    """Call back before each rename, each removal and each flush of a directory."""
    for owner, name in ((Folder, "rename"), (Folder, "unlink"), (Folder, "sync")):
        original = getattr(owner, name)

        def call(*args: Any, _original: Any = original, **named: Any) -> Any:
            before()
            return _original(*args, **named)

        monkeypatch.setattr(owner, name, call)


def test_crash_between_any_two_changes_of_files_leaves_each_file_as_it_was_or_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six files become two, one of them empty: each is as it was or cleaned, and a record that went stays away."""
    small = new_log(tmp_path / "d", segment_bytes=80)
    append(small, *([(f"k{number % 2}", f"{number:02}")] for number in range(7)), epoch=1)
    small.close()
    log = opened(small.directory)
    before, copies = held(log), list[Path]()
    monkeypatch.setattr("targets.broker.log.compactor._CHUNK_BYTES", 1)

    def copy() -> None:
        copies.append(shutil.copytree(log.directory, tmp_path / f"{len(copies)}" / log.directory.name))

    with monkeypatch.context() as patched:
        watched(patched, copy)
        clean_all(log)
    copy()
    after = held(log)
    found = [held(opened(each)) for each in copies]
    assert before == found[0]
    assert after == found[-1]
    sizes = [len(each) for each in found]
    assert sizes == sorted(sizes, reverse=True)
    assert len(copies) > len(set(sizes)) > 2
    assert all(after.items() <= each.items() <= before.items() for each in found)
    assert {7} == {opened(each).end_offset for each in copies}


def test_crash_at_any_byte_of_a_cleaned_file_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    log = new_log(tmp_path / "d", segment_bytes=SEGMENT_BYTES)
    append(log, *([(f"k{number % 2}", f"{number:02}")] for number in range(5)), epoch=1)
    before = held(log)
    names = sorted(path.name for path in log.directory.iterdir())
    whole = (log.directory / f"{0:020d}.log").read_bytes()
    for size in range(len(whole) + 1):
        (log.directory / f"{0:020d}.log.cleaned").write_bytes(whole[:size])
        again = opened(log.directory)
        assert before == held(again)
        again.close()
    assert names == sorted(path.name for path in log.directory.iterdir())


# --- whatever is done --------------------------------------------------------------------------------------------
KEYS = st.sampled_from(["a", "b", "c", None])
VALUES = st.sampled_from(["1", "2", "3", "4", None])


class CompactedLog(RuleBasedStateMachine):
    """
    A log with its epochs, of which the model knows the records, and where each epoch began.

    Its data directory says how far it is clean: below that no key has two records. Time passes, and a tombstone
    stays until so long after the first cleaning that kept it, if batches say it (KIP-534).
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.data = self.opened("0").data
        self.log = self.data.create_log(TP)
        self.log.write_epochs((), flush=True)
        self.cache = EpochCache(RULES)
        self.epoch, self.lives = 1, 0
        self.records: dict[int, Pair] = {}
        self.epochs: dict[int, int] = {}
        self.now_ms = 10**12
        self.under_way, self.delay = False, AT_ONCE  # of the last cleaning
        # Of each tombstone, by its key and offset, when it may go at the earliest, since a cleaning has kept it.
        self.horizons: dict[tuple[str, int], int] = {}

    def opened(self, name: str) -> OpenedData:
        """Open a copy of the data directory."""
        return open_data_dir(self.folder / name, segment_bytes=SEGMENT_BYTES)

    @property
    def clean_to(self) -> int:
        """How far the log is clean, by the file."""
        return checkpoint.read_offsets(self.data.path / checkpoint.CLEANED_FILE).get(TP, 0)

    def held(self) -> dict[int, Pair]:
        """Return what the log holds, without what is below its start and in the same batch or file."""
        return {at: pair for at, pair in held(self.log).items() if at >= self.log.start_offset}

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.folder)

    @rule(pairs=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4), rises=st.booleans())
    def append(self, pairs: list[Pair], rises: bool) -> None:
        self.epoch += rises
        base = self.log.end_offset
        if self.cache.note(self.epoch, base):
            self.log.write_epochs(self.cache.entries, flush=True)
        append(self.log, pairs, epoch=self.epoch, timestamp=self.now_ms)
        self.horizons = {at: ms for at, ms in self.horizons.items() if at[1] < base}  # others were there before
        self.records |= dict(enumerate(pairs, start=base))
        self.epochs.setdefault(self.epoch, base)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(ms=st.sampled_from([1, 100, 10_000]))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule(
        share=st.floats(0, 1),
        step=st.sampled_from([1, 100, ALL]),
        retention_ms=st.sampled_from([0, 100, 10**9]),
        by_horizon=st.booleans(),
    )
    def clean(self, share: float, step: int, retention_ms: int, by_horizon: bool) -> None:
        """A tombstone may go when its delay is over; a cleaning of many steps has the delay that it began with."""
        before, under_way = self.clean_to, self.under_way
        delay = TombstoneDelay(retention_ms, self.now_ms, by_horizon=by_horizon)
        done = self.log.clean(round(share * self.log.end_offset), delay, step)
        self.delay = self.delay if under_way else delay
        self.under_way = done.more
        newest = {key: offset for offset, (key, _) in self.records.items()}
        last = {
            offset: (key, value)
            for offset, (key, value) in self.records.items()
            if key is None
            or (newest[key] == offset and (value is not None or not self.may_go(key, offset, before)))
        }
        found = self.held()
        assert last.items() <= found.items() <= self.records.items()
        assert done.upto in (-1, self.clean_to)
        assert done.upto >= 0 or before == self.clean_to
        self.records = found
        self.note_horizons()

    def may_go(self, key: str, offset: int, clean_to: int) -> bool:
        """Return True if the newest record of a key is a tombstone that may go in the cleaning under way."""
        if not self.delay.by_horizon:
            return offset < clean_to
        horizon = self.horizons.get((key, offset))
        return horizon is not None and horizon <= self.delay.now_ms

    def note_horizons(self) -> None:
        """Read from the batches when tombstones may go: no cleaning changes what stands there."""
        start, end = self.log.start_offset, self.log.end_offset
        for batch in self.log.read(start, end, ALL):
            horizon = parse_header(batch.payload).horizon_ms
            for offset in range(batch.base_offset, batch.next_offset):
                key, value = self.records.get(offset, (None, "none"))
                if key is None or value is not None:
                    continue
                known = self.horizons.get((key, offset))
                assert known in (None, horizon)
                if horizon is not None and known is None:
                    assert horizon == self.delay.now_ms + self.delay.retention_ms
                    assert self.delay.by_horizon
                    self.horizons[key, offset] = horizon

    @precondition(lambda self: self.log.end_offset > self.log.start_offset)
    @rule(share=st.floats(0, 1))
    def cut(self, share: float) -> None:
        """Truncate anywhere, also in a gap, and inside a batch, which goes whole."""
        start, end = self.log.start_offset, self.log.end_offset
        to = start + round(share * (end - start))
        inside = [b for b in self.log.read(start, end, ALL) if b.base_offset < to <= b.last_offset]
        gone = inside[0].base_offset if inside else to
        end = self.log.truncate_to(to, LeoAfterCut.TARGET)
        assert end == to or (end < to and not self.log.read(end, to, ALL))
        if self.cache.truncate_from_end(end):
            self.log.write_epochs(self.cache.entries, flush=True)
        self.records = {offset: pair for offset, pair in self.records.items() if offset < gone}
        self.under_way = False
        self.epochs = {epoch: first for epoch, first in self.epochs.items() if first < end}
        self.epoch += 1  # a log that was cut goes on in another epoch

    @rule(share=st.floats(0, 1))
    def move_start(self, share: float) -> None:
        start, end = self.log.start_offset, self.log.end_offset
        to = start + round(share * (end - start))
        self.log.advance_start(to)
        if self.cache.truncate_from_start(to):
            self.log.write_epochs(self.cache.entries, flush=True)
        self.records = {offset: pair for offset, pair in self.records.items() if offset >= to}
        self.under_way = self.under_way and to <= start

    @rule(share=st.floats(0, 1))
    def crash(self, share: float) -> None:
        """Kill the process; of a file that was being written only a part is there."""
        self.lives += 1
        self.under_way = False
        old, end, start = self.data, self.log.end_offset, self.log.start_offset
        copy = shutil.copytree(old.path, self.folder / str(self.lives))
        old.close()
        for path in copy.glob("*/*.cleaned"):
            data = path.read_bytes()
            path.write_bytes(data[: round(share * len(data))])
        torn = f"0\n1\n{TP.topic} 0 {10**6}\n"
        (copy / f"{checkpoint.CLEANED_FILE}.tmp").write_text(torn[: round(share * len(torn))])
        again = self.opened(str(self.lives))
        self.data, (self.log, found) = again.data, again.logs[TP]
        assert found.reason in ("clean", "below-log-start")  # an end in a gap, and a start there, are forgotten
        bounds = self.log.start_offset, self.log.end_offset
        self.cache = recovered_cache(
            RULES, found.file_epochs, found.batch_epochs, *bounds, batch_ends=found.batch_ends
        )
        assert start == bounds[0]
        assert bounds[1] <= end  # a cut inside a batch, or in a gap, leaves an end that no file tells
        self.epochs = {epoch: first for epoch, first in self.epochs.items() if first < bounds[1]}
        self.epoch += 1

    @invariant()
    def records_are_there(self) -> None:
        assert self.held() == self.records

    @invariant()
    def what_is_said_to_be_clean_has_one_record_of_each_key(self) -> None:
        assert self.clean_to <= self.log.end_offset
        keys = [key for offset, (key, _) in self.records.items() if offset < self.clean_to and key is not None]
        assert len(keys) == len(set(keys))

    @invariant()
    def epochs_end_where_they_did(self) -> None:
        """An epoch ends where the next one that was ever appended began, whether or not a record of it is left."""
        known = sorted(self.epochs.items())
        ends = [*(first for _, first in known[1:]), self.log.end_offset]
        for (epoch, _), end in zip(known, ends, strict=False):
            if end > self.log.start_offset:
                assert (epoch, end) == self.cache.end_offset_for(epoch, self.log.end_offset)


def machine(examples: int) -> None:
    run_state_machine_as_test(
        CompactedLog,
        settings=settings(
            max_examples=examples, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


def test_compacted_log_is_as_its_model_whatever_is_done_and_wherever_it_crashes() -> None:
    machine(10)


@exhaustive
@pytest.mark.slow
def test_compacted_log_is_as_its_model_in_many_more_ways() -> None:
    machine(600)
