"""What a server prints of a stream's Raft group is read, once it has printed whose group it is."""

from __future__ import annotations

import pytest

from harness.target.target import Printed
from targets.nats import printed
from targets.nats.printed import Lines
from targets.nats.target import TARGET, NatsTarget

AT = "[17311] 2026/11/30 09:30:35.280525 [DBG]"
GROUP = "S-R3F-LFXnyBvF"
MONITOR = f"{AT} Starting stream monitor for '$G > log-0' [{GROUP}]"
SKIP = f"{AT} RAFT [NUmM6cRx - {GROUP}] AppendEntry pindex 46 below commit 70, marking success"
TRUNCATE = f"{AT} RAFT [NUmM6cRx - {GROUP}] Truncating and repairing WAL to Term 2 Index 10"


def after(*lines: str) -> Lines:
    """Return what has read these lines, of which none says anything."""
    found = Lines()
    assert [None] * len(lines) == [found.read(line) for line in lines]
    return found


@pytest.mark.parametrize(("line", "what"), [(SKIP, "skip"), (TRUNCATE, "truncate")])
@pytest.mark.parametrize(
    ("stream", "topic", "partition"), [("log-0", "log", 0), ("orders-12", "orders", 12), ("KV_x", "KV_x", 0)]
)
def test_line_of_a_known_group_is_about_its_stream(
    line: str, what: str, stream: str, topic: str, partition: int
) -> None:
    lines = after(MONITOR.replace("log-0", stream))
    # The index is one of the Raft log: it is no offset.
    assert Printed(what=what, topic=topic, partition=partition) == lines.read(line)
    assert Printed(what=what, topic=topic, partition=partition) == lines.read(line)


@pytest.mark.parametrize("line", [SKIP, TRUNCATE])
def test_line_of_a_group_whose_stream_is_not_known_says_nothing(line: str) -> None:
    assert None is Lines().read(line)
    assert None is after(MONITOR.replace(GROUP, "S-R3F-another1")).read(line)
    assert None is after(MONITOR).read(line.replace(GROUP, f"{GROUP}x"))


def test_groups_are_told_apart_and_a_later_stream_of_a_group_counts() -> None:
    lines = after(MONITOR, MONITOR.replace("log-0", "log-1").replace(GROUP, "S-R1F-b"))
    other = lines.read(SKIP.replace(GROUP, "S-R1F-b"))
    assert (1, 0) == (other and other.partition, (found := lines.read(SKIP)) and found.partition)
    assert None is lines.read(MONITOR.replace("log-0", "log-7"))
    assert 7 == ((found := lines.read(SKIP)) and found.partition)


@pytest.mark.parametrize(
    "line",
    [
        "",
        MONITOR,
        SKIP.removesuffix(", marking success"),
        SKIP.replace("pindex 46", "pindex x"),
        SKIP.replace("below commit 70", "above commit 70"),
        SKIP.replace(GROUP, "_meta_"),
        SKIP.replace(GROUP, "C-R3F-LFXnyBvF"),
        SKIP.replace("RAFT [", "RAFT "),
        TRUNCATE.replace("Term 2", "Term -2"),
        TRUNCATE.replace("Index 10", "Index"),
        TRUNCATE.replace("Truncating and repairing", "Not repairing"),
        f"{AT} RAFT [NUmM6cRx - {GROUP}] Campaign delay of 6.4s",
        f"{AT} Starting stream monitor for '$G > log-0'",
        "x" * 100_000,
    ],
)
def test_any_other_line_says_nothing(line: str) -> None:
    assert None is after(MONITOR).read(line)


def test_of_many_groups_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed, "_GROUPS_MAX", 3)
    groups = [f"S-R3F-{number}" for number in range(5)]
    lines = after(*(MONITOR.replace(GROUP, group) for group in groups))
    known = [lines.read(SKIP.replace(GROUP, group)) is not None for group in groups]
    assert [False, False, True, True, True] == known


def test_group_that_is_printed_again_takes_no_other_s_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server prints it at each start."""
    monkeypatch.setattr(printed, "_GROUPS_MAX", 2)
    groups = [GROUP, "S-R3F-b"]
    lines = after(*(MONITOR.replace(GROUP, group) for group in groups), *[MONITOR] * 9)
    assert all(lines.read(TRUNCATE.replace(GROUP, group)) is not None for group in groups)


def test_target_reads_lines_and_each_target_remembers_its_own() -> None:
    one, other = NatsTarget(), NatsTarget()
    assert None is one.printed(MONITOR)
    assert Printed(what="skip", topic="log", partition=0) == one.printed(SKIP)
    assert None is other.printed(SKIP)
    assert None is TARGET.printed("any other line")


STORE = f"{AT} JetStream stream '$G > log-0' critical write error: write /d/1.blk: no space left on device"
RAFT = f"{AT} RAFT [NUmM6cRx - {GROUP}] Critical write error: write /d/1.blk: input/output error"
META = f"{AT} RAFT [NUmM6cRx - _meta_] Critical write error: write /d/5.blk: no space left on device"


@pytest.mark.parametrize("line", [STORE, RAFT, META])
def test_server_whose_disk_failed_replicates_a_stream_no_more(line: str) -> None:
    """The process goes on, and takes part in nothing until it is started again."""
    assert Printed(what="failed", topic="log", partition=0) == after(MONITOR).read(line)


def test_failed_metadata_of_a_server_without_streams_are_said_of_none() -> None:
    assert None is Lines().read(META)
