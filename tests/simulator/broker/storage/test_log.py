"""The simulated log behaves as the log on files does, operation by operation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from harness.keys import headers_of, is_tombstone, key_bytes, key_of
from targets.broker.core.log_port import AppendOrderError, LeoAfterCut
from targets.broker.core.messages import Batch, TopicPartition
from targets.broker.core.tombstones import TombstoneDelay
from targets.broker.log import DataDir, FileLog, open_data_dir
from targets.broker.log.batch import batch_of, build, parse_header
from targets.broker.log.names import segment_offsets
from targets.simulator.broker.storage.disk import SimDisk
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.storage.records import make_batch, placed
from tests.broker.log.batches import batch as real_batch
from tests.broker.log.batches import raw_batch, raw_record
from tests.broker.log.keyed import keyed, numbered
from tests.kept import keep

TP = TopicPartition("topic", 0)
SEEDS = range(40)
STEPS = 60
ALL = 1 << 30
WEIGHTS = {"lead": 8, "follow": 4, "cut": 4, "empty": 0.5, "epochs": 2, "start": 2, "roll": 1, "restart": 1}


def filled(*spans: tuple[int, int], segment_bytes: int = ALL) -> SimLog:
    """Return a log of batches given as (leader epoch, number of records)."""
    log = SimLog(TP, segment_bytes)
    for number, (epoch, count) in enumerate(spans):
        log.append_as_leader([make_batch([f"{number}.{n}" for n in range(count)], timestamp_ms=number)], epoch)
    return log


def shape(batches: tuple[Batch, ...]) -> list[tuple[int, int, int, int]]:
    return [(b.base_offset, b.last_offset, b.leader_epoch, b.size) for b in batches]


def sent(values: list[str], timestamp: int) -> Batch:
    """
    Return a real batch of records with keys, as every client sends them.

    Its values are without the keys, which a simulated record has once.
    """
    records = b"".join(
        raw_record(
            delta,
            key=key_bytes(value),
            value=None if is_tombstone(value) else value.removeprefix(key_of(value) or "").encode(),
            headers=[(name.encode(), text) for name, text in headers_of(value)],
        )
        for delta, value in enumerate(values)
    )
    raw = raw_batch(count=len(values), text=records, timestamp=timestamp)
    raw = build(replace(parse_header(raw), max_timestamp=timestamp), records)
    return batch_of(parse_header(raw), raw)


class Twins:
    """A log on files and a simulated one, to which the same operations are applied."""

    def __init__(self, folder: Path, chance: Random, segment_bytes: int) -> None:
        self._folder, self._chance, self._segment_bytes = folder, chance, segment_bytes
        self.data = DataDir(folder, segment_bytes=segment_bytes, on_durable=lambda _path, _length: None)
        self.disk = SimDisk(segment_bytes)
        folder.mkdir()
        self.real: FileLog = self.data.create_log(TP)
        self.sim: SimLog = self.disk.create(TP)

    weights: ClassVar = WEIGHTS

    def step(self) -> None:
        """Apply one random operation to both, and compare them."""
        chance = self._chance
        what = chance.choices(tuple(self.weights), tuple(self.weights.values()))[0]
        getattr(self, what)(chance)
        self.compare(chance)

    def lead(self, chance: Random) -> None:
        fresh = [real_batch(count=chance.randint(1, 4), text=b"x" * chance.randint(0, 9)) for _ in range(2)]
        epoch = chance.randint(-1, 5)
        assert self.real.append_as_leader(fresh, epoch) == self.sim.append_as_leader(fresh, epoch)

    def follow(self, chance: Random) -> None:
        base = self.real.end_offset + chance.choice((-1, 0, 0, 0, 3))
        fresh = [real_batch(base=max(0, base), count=2, epoch=4), real_batch(base=max(0, base) + 2)]
        outcomes: list[object] = []
        for log in (self.real, self.sim):
            try:
                outcomes.append(log.append_as_follower(fresh))
            except AppendOrderError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]

    def cut(self, chance: Random) -> None:
        to = chance.randint(max(0, self.real.start_offset - 1), self.real.end_offset + 1)
        leo, before = chance.choice(tuple(LeoAfterCut)), self.real.end_offset
        end = self.real.truncate_to(to, leo)
        assert end == self.sim.truncate_to(to, leo)
        assert end <= to or to > before

    def empty(self, chance: Random) -> None:
        to = chance.randint(0, self.real.end_offset + 5)
        self.real.truncate_fully(to)
        self.sim.truncate_fully(to)

    def start(self, chance: Random) -> None:
        to = chance.randint(self.real.start_offset, self.real.end_offset)
        self.real.advance_start(to)
        self.sim.advance_start(to)
        assert to == self.real.start_offset

    def roll(self, _chance: Random) -> None:
        self.real.roll()
        self.sim.roll()

    def epochs(self, chance: Random) -> None:
        entries = [(epoch, 2 * epoch) for epoch in range(chance.randint(0, 3))]
        for log in (self.real, self.sim):
            log.write_epochs(entries, flush=bool(chance.getrandbits(1)))

    def restart(self, _chance: Random) -> None:
        """Restart both as after a kill: the page cache survives."""
        self.data.write_high_watermarks({TP: self.real.end_offset})
        self.disk.write_high_watermarks([(TP, self.sim.end_offset)])
        self.data.close()
        opened = open_data_dir(self._folder, segment_bytes=self._segment_bytes)
        self.data = opened.data
        self.real, recovery = opened.logs[TP]
        ((self.sim, ours),) = self.disk.open()
        assert recovery == ours
        assert recovery.sequences.known == ours.sequences.known

    def compare(self, chance: Random) -> None:
        """Compare the offsets, the epochs and a random read of both."""
        real, sim = self.real, self.sim
        assert (real.start_offset, real.end_offset) == (sim.start_offset, sim.end_offset)
        assert real.epoch_runs(0) == sim.epoch_runs()
        assert [s.base_offset for s in sim.segments] == segment_offsets(real.directory)
        offset, end = sorted(chance.randint(0, real.end_offset + 2) for _ in range(2))
        for room in (0, 100, ALL):
            assert shape(real.read(offset, end, room)) == shape(sim.read(offset, end, room))
            few = [shape(log.read(offset, end, room, at_least_one=False)) for log in (real, sim)]
            assert few[0] == few[1]
        assert real.position_of(offset) == sim.position_of(offset)


class TwinsInBothFormats(Twins):
    """Twins to which a leader writes in both message formats; without holes, over which a message has no base."""

    weights: ClassVar = {name: weight for name, weight in WEIGHTS.items() if name not in ("follow", "start")}

    def lead(self, chance: Random) -> None:
        values = ["/" + "x" * chance.randint(0, 9) for _ in range(chance.randint(1, 4))]
        real, sim = (
            keyed(*(("k", value) for value in values)),
            make_batch(["k" + value for value in values], timestamp_ms=0),
        )
        epoch, message_format = chance.choice(((0, 2), (3, 2), (-1, 1)))
        assert self.real.append_as_leader([real], epoch, message_format) == self.sim.append_as_leader(
            [sim], epoch, message_format
        )

    def cut(self, chance: Random) -> None:
        to = chance.randint(self.real.start_offset, self.real.end_offset + 1)
        leo = LeoAfterCut.PHYSICAL
        assert self.real.truncate_to(to, leo) == self.sim.truncate_to(to, leo)


class KeyedTwins(Twins):
    """Twins of records with keys, some of idempotent producers, each with its own form of them; compacted."""

    weights: ClassVar = {**WEIGHTS, "clean": 4}
    now_ms = 10**12

    def lead(self, chance: Random) -> None:
        self.now_ms += chance.choice((0, 1, 1, 10**5))
        values = [
            f"k{chance.choice('123')}/{chance.choice(('', '', '~'))}" + "x" * chance.randint(0, 9)
            for _ in range(chance.randint(1, 4))
        ]
        producer = chance.choice((-1, 5, 6, 7))
        real = numbered(sent(values, self.now_ms), producer)
        sim = make_batch(values, timestamp_ms=self.now_ms)
        if producer != -1:
            sim = replace(sim, producer_id=producer, producer_epoch=0, base_sequence=0)
        epoch = chance.randint(0, 5)
        assert self.real.append_as_leader([real], epoch) == self.sim.append_as_leader([sim], epoch)

    def follow(self, chance: Random) -> None:
        """Append with a gap, as a follower does that copies from a compacted log."""
        base = self.real.end_offset + chance.randint(0, 3)
        real, sim = sent(["k1/y"], self.now_ms), make_batch(["k1/y"], timestamp_ms=self.now_ms)
        raw = build(replace(parse_header(real.payload), base_offset=base), bytes(real.payload[61:]))
        copies = [batch_of(parse_header(raw), raw)], [placed(sim, base, -1)]
        assert self.real.append_as_follower(copies[0]) == self.sim.append_as_follower(copies[1])

    def clean(self, chance: Random) -> None:
        upto = chance.randint(0, self.real.end_offset)
        delay = TombstoneDelay(chance.choice((0, 2, 10**9)), self.now_ms, by_horizon=chance.random() < 0.5)
        real, sim = self.real.clean(upto, delay, ALL), self.sim.clean(upto, delay, ALL)
        assert real[1:] == sim[1:]


@pytest.mark.parametrize("seeds", keep([SEEDS[:6], SEEDS[6:]], SEEDS[:6]), ids=["some seeds", "more seeds"])
def test_simulated_log_is_compacted_as_the_log_on_files_is(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        twins = KeyedTwins(tmp_path / str(seed), Random(seed), segment_bytes=200)
        for _ in range(STEPS):
            twins.step()
        twins.data.close()


def test_compacted_log_that_is_cut_below_its_start_starts_and_ends_there(tmp_path: Path) -> None:
    """Source: Kafka, LocalLog.truncateTo: the end is the offset. Seed 40938, with an upgrade."""
    twins = KeyedTwins(tmp_path / "data", Random(1), segment_bytes=200)
    while twins.real.end_offset < 12:
        twins.lead(Random(twins.real.end_offset))
    for log in (twins.real, twins.sim):
        log.advance_start(1)
        log.clean(log.end_offset - 2, TombstoneDelay(0), ALL)
        assert (0, 0, 0) == (log.truncate_to(0, LeoAfterCut.TARGET), log.start_offset, log.end_offset)
    twins.data.close()


@pytest.mark.parametrize("segment_bytes", [ALL, 200], ids=["one segment", "small segments"])
def test_simulated_log_agrees_with_the_log_on_files_whatever_is_done(tmp_path: Path, segment_bytes: int) -> None:
    for seed in SEEDS:
        twins = Twins(tmp_path / str(seed), Random(seed), segment_bytes)
        for _ in range(STEPS):
            twins.step()
        twins.data.close()


@pytest.mark.slow
@pytest.mark.parametrize("segment_bytes", [ALL, 200], ids=["one segment", "small segments"])
def test_simulated_log_holds_both_message_formats_as_the_log_on_files_does(
    tmp_path: Path, segment_bytes: int
) -> None:
    for seed in SEEDS:
        twins = TwinsInBothFormats(tmp_path / str(seed), Random(seed), segment_bytes)
        for _ in range(STEPS):
            twins.step()
        twins.data.close()


def test_twins_would_notice_a_log_that_ends_elsewhere(tmp_path: Path) -> None:
    twins = Twins(tmp_path / "data", Random(1), ALL)
    twins.sim.append_as_leader([make_batch(["a"], timestamp_ms=0)], 0)
    with pytest.raises(AssertionError):
        twins.compare(Random(1))
    twins.data.close()


def test_cut_inside_a_batch_ends_where_the_rule_says() -> None:
    assert 3 == filled((0, 2), (0, 4)).truncate_to(3, LeoAfterCut.TARGET)
    assert 2 == filled((0, 2), (0, 4)).truncate_to(3, LeoAfterCut.PHYSICAL)


def test_first_offset_by_time_is_that_of_the_first_batch_not_before_it() -> None:
    log = filled((0, 2), (0, 1), (1, 1))
    assert [0, 2, 3, -1] == [log.first_offset_at(time).offset for time in (-1, 1, 2, 3)]


def test_log_says_what_it_is_without_saying_where_it_lies_in_memory() -> None:
    assert "SimLog(topic-0, 0..2)" == repr(filled((0, 2)))


def test_follower_batch_that_goes_back_is_refused_before_anything_is_written() -> None:
    log = filled((0, 2))
    good, back = placed(make_batch(["a"], timestamp_ms=0), 2, 0), placed(make_batch(["b"], timestamp_ms=0), 1, 0)
    with pytest.raises(AppendOrderError, match=r"batch 1\.\.1; expected its first offset at or past 3"):
        log.append_as_follower([good, back])
    assert 2 == log.end_offset
