"""Disks of real brokers fail in every way, and a broker that meets an error ends and says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.cluster.cluster import Cluster
from harness.cluster.disk_error import DiskError
from harness.environment.machines import RealMachines
from harness.launch import Address
from harness.model import FencepostError, PreconditionError
from harness.scenario.file import PARTITION, TOPIC
from tests.clusters import running
from tests.needs import needs
from tests.nemesis.conftest import IDS, REPLICAS, client_of, ends, heal, inject, make_whole, produce, roles

FAULTS = ("disk-full", "write-error", "flush-error", "read-error", "disk-read-only", "disk-slow")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    needs("loop", "fuse"),
]

# What the disk counts, and what the broker says when it ends.
SEEN = {
    "disk-full": ("ENOSPC at ", "OSError(28, 'No space left on device') in "),
    "write-error": ("EIO at ", "OSError(5, 'Input/output error') in a"),
    "flush-error": ("EIO at ", "OSError(5, 'Input/output error') in a"),
    "read-error": (", read of ", "OSError(5, "),
    "disk-read-only": ("EROFS at ", "OSError(30, 'Read-only file system') in "),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, zookeeper: Address) -> Iterator[Cluster]:
    """A cluster on loop filesystems, seen through FUSE: C starts as controller, A and B replicate."""
    folder = tmp_path_factory.mktemp("disks") / "loop"
    with running(
        folder, zookeeper, "kip380", IDS, replicas=REPLICAS, power_tier="loop", nemeses=FAULTS
    ) as cluster:
        client_of(cluster).create_topic(TOPIC, [IDS[name] for name in REPLICAS])
        yield cluster


@pytest.fixture
def failing(made: Cluster) -> Cluster:
    """The cluster, healthy."""
    return make_whole(made)


def busily(cluster: Cluster, act: Callable[[], str]) -> str:
    """Do it while a client produces, and go on producing until it is done."""
    with ThreadPoolExecutor() as pool:
        done = pool.submit(act)
        while not done.done():
            try:
                produce(cluster, 1, acks=1)
            except FencepostError:
                continue
            except AssertionError:
                continue
        return done.result()


@pytest.mark.parametrize("fault", SEEN)
def test_broker_that_meets_an_error_ends_says_why_and_comes_back_whole(failing: Cluster, fault: str) -> None:
    leader, _ = roles(failing)
    counted, said = SEEN[fault]
    seen = busily(failing, lambda: inject(fault, failing, leader))
    assert counted in seen
    assert said in seen
    assert (False, {leader}, "") == (failing.host.alive(leader), failing.down, failing.host.disk_state(leader))
    make_whole(failing)
    assert 1 == len(set(ends(failing).values()))


def test_slow_disk_holds_nothing_back_but_time(failing: Cluster) -> None:
    leader, _ = roles(failing)
    assert "every call takes 20 ms longer" in inject("disk-slow", failing, leader)
    end = produce(failing, 2)
    assert "calls took longer" in heal("disk-slow", failing, leader)
    assert end == failing.log_end(leader)


def test_disk_that_works_is_no_fault(failing: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    leader, _ = roles(failing)
    monkeypatch.setattr(failing.host, "disk_error_s", 0.2)
    monkeypatch.setattr(failing.host, "break_disk", lambda *_: "")
    with pytest.raises(PreconditionError, match=r"goes on after 0.2 s; it met no error"):
        busily(failing, lambda: inject("write-error", failing, leader))


def test_broker_does_not_come_back_on_a_disk_that_is_still_full(
    failing: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, _ = roles(failing)
    with monkeypatch.context() as patch:
        patch.setattr(failing.host, "mend_disk", lambda _: "nothing done")
        busily(failing, lambda: inject("disk-read-only", failing, leader))
        with pytest.raises(FencepostError, match=r"start .*: .*Read-only file system"):
            heal("disk-read-only", failing, leader)
    failing.host.mend_disk(leader)


def test_power_lost_under_fuse_takes_what_was_not_flushed(failing: Cluster) -> None:
    _, follower = roles(failing)
    inject("flush", failing, follower)
    flushed = failing.log_end(follower)
    produce(failing, 3)
    seen = inject("power-loss", failing, follower)
    assert "journal replayed; of " in seen
    assert flushed == failing.log_end(follower)


def test_lost_disk_is_kept_aside_and_copied_again(failing: Cluster) -> None:
    leader, follower = roles(failing)
    produce(failing, 2)
    inject("kill", failing, follower)
    seen = inject("lose-disk", failing, follower)
    assert "the disk is empty" in seen
    assert -1 == failing.log_end(follower)
    assert isinstance(failing.host, RealMachines)
    aside = failing.host.disk(follower).parents[2] / "lost-1"
    assert any(path.stat().st_size for path in aside.glob(f"{TOPIC}-{PARTITION}/*.log"))
    make_whole(failing)
    assert failing.log_end(leader) == failing.log_end(follower) > 0


def test_node_without_a_replica_has_no_disk_that_fails(failing: Cluster) -> None:
    with pytest.raises(PreconditionError, match="is a plain folder; expected a node added with a disk"):
        failing.host.break_disk("C", DiskError.FULL)
