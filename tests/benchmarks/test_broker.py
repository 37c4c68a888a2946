"""The benchmark's command: its loads, peers and output; a tiny run ends and counts correctly."""

from __future__ import annotations

import io
import json
import pstats
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console

from benchmarks import broker
from benchmarks.broker import as_json, line_of, loads_of, parser, peers_of, run, run_load, verdict, warm_up
from benchmarks.clusters import RunningCluster, our_peer, running
from benchmarks.figures import OURS, Load
from benchmarks.job import Job, Work
from harness import limits
from harness.launch import Launch
from harness.model import FencepostError, UsageError
from tests.benchmarks.samples import BIG, KAFKA, RESULTS, SMALL, a_repeat
from tests.benchmarks.test_job import JOB
from tests.kept import exhaustive
from tests.needs import needs

TINY = ("--alone", "--seconds=0.4", "--warm=0.1", "--repeats=1", "--acks=-1", "--bytes=1000")


def loads(*arguments: str) -> list[Load]:
    return loads_of(parser().parse_args(arguments))


def test_all_loads_are_measured_unless_some_are_named() -> None:
    assert broker.LOADS == tuple(loads()) and len(set(map(str, broker.LOADS))) == len(broker.LOADS)
    assert [Load(acks=0, record_bytes=1000), Load(acks=0, record_bytes=100)] == loads("--acks=0")
    assert [Load(acks=-1, record_bytes=7), Load(acks=1, record_bytes=7)] == loads("--bytes=7")
    (one,) = loads("--acks=-1", "--bytes=9", "--partitions=50", "--replicas=2", "--flushed")
    assert Load(acks=-1, record_bytes=9, partitions=50, replicas=2, flushed=True) == one


def test_brokers_that_flush_each_message_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "fetch", lambda *_: None)
    options = parser().parse_args([])
    ours, theirs = peers_of(options, lambda _: None, flushed=True)
    assert "log.flush.interval.messages=1" in theirs.changes
    launch = Launch(argv=("python",), files={"broker.json": '{"settings": {}, "collector": 0}'}, env={})
    for peer, flushes in ((ours, 1), (peers_of(options, lambda _: None)[0], None)):
        settings = json.loads(peer.tune(launch).files["broker.json"])["settings"]
        assert flushes == settings.get("flush_messages")


def test_ours_stands_alone_and_it_is_said_why_where_kafkas_jars_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object) -> None:
        raise UsageError("no way out of here")

    monkeypatch.setattr(broker, "fetch", refused)
    said: list[str] = []
    assert [OURS] == [peer.name for peer in peers_of(parser().parse_args([]), said.append)]
    assert ["Apache Kafka 3.9.1 cannot be fetched; only our broker is measured: no way out of here"] == said


def test_both_are_measured_where_kafkas_jars_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "fetch", lambda *_: None)
    options = parser().parse_args([])
    assert [OURS, "Apache Kafka 3.9.1"] == [peer.name for peer in peers_of(options, lambda _: None)]
    assert [OURS] == [peer.name for peer in peers_of(parser().parse_args(["--alone"]), lambda _: None)]


def test_verdict_says_by_how_much_the_goal_is_missed_lowest_first() -> None:
    first, *others = verdict(RESULTS)
    assert f"{BIG}, produce MB/s: 25% of {KAFKA}'s; 25% short of the goal of 50%" == first
    assert f"{SMALL}, consume MB/s: 125% of {KAFKA}'s; the goal is met" == others[-1]
    assert 4 == len(verdict(RESULTS))


def test_every_measurement_is_kept_by_load_peer_repeat_and_work() -> None:
    found = as_json(RESULTS)
    assert (3 + 3 + 1 + 1) * len(Work) == len(found)
    assert ("acks=all, 1 KB", OURS, 2, "consume", 2000) == tuple(
        found[3 * len(Work) - 1][key] for key in ("load", "peer", "repeat", "work", "records")
    )


def test_line_of_a_round_tells_speeds_and_what_failed() -> None:
    taken = {work: replace(one, failed=2) for work, one in a_repeat(1000).items()}
    line = line_of(BIG, 0, OURS, taken)
    assert line.startswith("acks=all, 1 KB, repeat 1: ours: produce 0.5 MB/s, consume 0.5 MB/s; 6 failed; load ")


def test_each_load_warms_its_cluster_up_for_the_time_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is shared by the three works, and nothing of it is counted."""
    loads: list[tuple[Load, str, float, float]] = []
    monkeypatch.setattr(
        broker, "measure", lambda _one, load, topic, o: loads.append((load, topic, o.warm, o.seconds)) or {}
    )
    warm_up(None, BIG, "t", parser().parse_args(["--warm-up=30"]))  # type: ignore[arg-type]
    assert [(BIG, "t", 0.0, 10.0)] == loads
    warm_up(None, BIG, "t", parser().parse_args(["--warm-up=0"]))  # type: ignore[arg-type]
    assert 1 == len(loads)


def test_load_process_that_fails_is_an_error_with_its_last_words() -> None:
    with pytest.raises(FencepostError, match=r"produce on t: exit code 1; it printed:[^$]*FileNotFoundError"):
        run_load(replace(JOB, work=Work.PRODUCE, warm_s=0.0, pids=(2**22 + 1,)))


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """Run a cluster of our brokers as the benchmark configures them."""
    with running(our_peer(OURS), tmp_path_factory.mktemp("standing") / "ours") as made:
        yield made


@pytest.mark.slow
@needs("java")
@exhaustive
@pytest.mark.parametrize("acks", [-1, 1])
def test_tiny_load_counts_what_is_in_the_log(standing: RunningCluster, acks: int) -> None:
    topic, partitions = f"t{acks}", 2
    standing.create(topic, partitions)
    job = Job(
        work=Work.PRODUCE,
        bootstrap=standing.bootstrap,
        topic=topic,
        partitions=partitions,
        acks=acks,
        record_bytes=1000,
        warm_s=0.2,
        window_s=0.4,
        pids=standing.pids,
    )
    produced = run_load(job)
    stored = records_in(standing, topic, partitions)
    assert 0 < produced.records < stored
    assert produced.failed == 0
    assert None is not produced.p50_ms <= (produced.p99_ms or 0)
    alone = run_load(replace(job, work=Work.ALONE, warm_s=0.0))
    assert alone.failed == 0
    # One record at a time: the window counts all but the first, which opens it; the log grows also by the records
    # of the second call of records_in.
    assert alone.records + 1 + partitions == records_in(standing, topic, partitions) - stored
    consumed = run_load(replace(job, work=Work.CONSUME))
    assert 0 < consumed.records
    standing.delete(topic)


@exhaustive
@pytest.mark.slow
@needs("java")
def test_tiny_run_of_ours_ends_with_every_figure_and_its_profiles(tmp_path: Path) -> None:
    options = parser().parse_args([*TINY, "--warm-up=0", f"--profile={tmp_path / 'profiles'}"])
    told = io.StringIO()
    results = run(options, tmp_path / "clusters", Console(file=told))
    assert {Load(acks=-1, record_bytes=1000): [OURS]} == {load: list(found) for load, found in results.items()}
    ((only,),) = (found[OURS] for found in results.values())
    assert set(Work) == only.keys()
    assert all(one.records > 0 and one.failed == 0 and one.broker_cpu_s >= 0 for one in only.values())
    assert "repeat 1: ours: produce" in told.getvalue()
    for name in "ABC":
        calls = pstats.Stats(str(tmp_path / "profiles" / f"{name}.pstats")).stats  # type: ignore[attr-defined]
        assert any(function == "step" for _, _, function in calls)


def records_in(standing: RunningCluster, topic: str, partitions: int) -> int:
    """
    Write one more record to each partition and return the number of records, the sum of the high watermarks.

    All in-sync replicas acknowledge the additional record, so every record before it is below the high watermark.
    """
    producer = Producer({"bootstrap.servers": standing.bootstrap, "acks": "all"})
    for number in range(partitions):
        producer.produce(topic, b"last", partition=number)
    assert 0 == producer.flush(limits.CLIENT_OPERATION_S_MAX)
    consumer = Consumer({"bootstrap.servers": standing.bootstrap, "group.id": "x"})
    places = [TopicPartition(topic, number) for number in range(partitions)]
    try:
        ends = [
            consumer.get_watermark_offsets(place, timeout=limits.CLIENT_OPERATION_S_MAX)[1] for place in places
        ]
    finally:
        consumer.close()
    return sum(ends)
