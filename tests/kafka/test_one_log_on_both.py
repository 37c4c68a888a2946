"""Our broker opens and serves unchanged a log that Apache Kafka wrote, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.launch import Address
from harness.logs.lineage import differences
from harness.logs.replica import ReplicaLog
from targets.kafka.releases import entries
from tests.kafka.lodging import Lodging, lodging
from tests.kept import exhaustive
from tests.needs import needs, of_release
from tests.targets.kafka_family.logs.scans import scan_partition

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

# The oldest and the newest release run with the other tests; those in between only by hand (make test-releases).
RELEASES = tuple(
    of_release(name, *(() if name in ("0.10.2.2", "3.9.1") else (pytest.mark.releases,)))
    for name, entry in entries().items()
    if name == entry.release.name
)
# It writes message format v1, which has no record batches and no leader epochs.
OLD = "0.10.2.2"
# zstd came with 2.1 (KIP-110).
CODECS = dict.fromkeys(("hw", "kip101", "kip279"), ("none", "gzip", "snappy", "lz4"))
ALL_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# The versions of OffsetForLeaderEpoch that both systems answer.
VERSIONS: dict[str, tuple[int, ...]] = {"hw": ()}
VERSIONS |= {"kip101": (0,), "kip279": (0, 1), "kip279-2.0.1": (0, 1), "kip320": (0, 1, 2), "kip380": (0, 1, 2, 3)}
# The requests also ask for an epoch that has not begun.
EPOCHS_BEYOND = 2


def fill(written: Lodging, models: str) -> None:
    """Write a batch of every codec, in several leader epochs; the last one stays empty."""
    codecs = CODECS.get(models.partition("-")[0], ALL_CODECS)
    for number, codec in enumerate(codecs):
        written.write(f"m{number}", codec)
        if number in (1, 2):
            written.bounce()
    written.bounce()


def bring_to(epoch: int, lodger: Lodging) -> None:
    """Bounce A until its next start leads to the given leader epoch, and leave it down."""
    while lodger.epoch < epoch - 2:
        lodger.bounce()
    lodger.take_down()


def segments(folder: Path) -> bytes:
    """Return the bytes of a log's segments on disk."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def lineage(log: ReplicaLog) -> tuple[object, ...]:
    """Return a log's lineage, without epochs that start at its end: a leader may append its own epoch there."""
    epochs = [entry for entry in log.epochs or () if entry[1] < log.log_end_offset]
    return log.log_start_offset, log.log_end_offset, epochs, log.batches, log.problems


def hold(writer: tuple[str, str], taker: tuple[str, str], models: str, tmp_path: Path, zookeeper: Address) -> None:
    """Write a log on one system, and check that the other opens it, serves it and answers epoch requests alike."""
    with lodging(*writer, zookeeper, tmp_path) as wrote:
        fill(wrote, models)
        epoch, epochs = wrote.epoch, range(-1, wrote.epoch + EPOCHS_BEYOND)
        answers = {version: wrote.epoch_ends(version, epochs) for version in VERSIONS[models]}
        read = wrote.read()
        wrote.take_down()
        with lodging(*taker, zookeeper, tmp_path) as took:
            bring_to(epoch, took)
            took.move_in(wrote.folder)
            assert epoch == took.epoch
            assert segments(wrote.folder) == took.serve()
            assert read == took.read()
            assert lineage(scan_partition(wrote.folder)) == lineage(scan_partition(took.folder))
            assert answers == {version: took.epoch_ends(version, epochs) for version in VERSIONS[models]}


@pytest.mark.parametrize("name", RELEASES)
def test_log_that_a_release_wrote_is_opened_served_and_answered_for_alike(
    name: str, tmp_path: Path, zookeeper: Address
) -> None:
    models = entries()[name].models
    hold(("kafka", name), ("broker", models), models, tmp_path, zookeeper)


@needs(f"kafka-{OLD}")
@pytest.mark.parametrize(
    "protocol", ["kip380", *(pytest.param(name, marks=pytest.mark.releases) for name in ("hw", "kip101"))]
)
@exhaustive
def test_log_of_an_old_format_is_gone_on_with_recovered_and_replicated(
    protocol: str, tmp_path: Path, zookeeper: Address
) -> None:
    """Source: KIP-101, compatibility: old messages have no epoch, and batches that have one may follow them."""
    with lodging("kafka", OLD, zookeeper, tmp_path) as theirs:
        fill(theirs, "hw")
        read = theirs.read()
        theirs.take_down()
    with lodging("broker", protocol, zookeeper, tmp_path, replicas=("A", "B")) as ours:
        ours.take_down("B")
        ours.take_down()
        ours.move_in(theirs.folder)
        ours.write("new", "lz4")
        ours.bounce()
        ours.catch_up()
        ours.write("newer", "none")
        served = ours.serve()
        assert served.startswith(segments(theirs.folder))
        assert served == segments(ours.folder) == segments(ours.folder_of("B"))
        assert read == ours.read()[: len(read)]
        assert len(read) + 10 == len(ours.read())
        logs = {name: scan_partition(ours.folder_of(name)) for name in "AB"}
        assert (logs["A"].batches, ()) == (logs["B"].batches, logs["A"].problems)
        assert {1, 2} == {batch.magic for batch in logs["A"].batches}
        assert (protocol == "hw") == ({-1} == {batch.epoch for batch in logs["A"].batches})
        assert () == differences(logs)


@pytest.mark.parametrize("name", [of_release("2.1.1", pytest.mark.releases), of_release("3.9.1")])
def test_log_that_our_broker_wrote_is_opened_served_and_answered_for_alike(
    name: str, tmp_path: Path, zookeeper: Address
) -> None:
    models = entries()[name].models
    hold(("broker", models), ("kafka", name), models, tmp_path, zookeeper)
