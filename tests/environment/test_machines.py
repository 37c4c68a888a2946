"""RealMachines on a folder, without nodes: it reads, deletes from and keeps a replica's files."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.environment.machines import RealMachines
from harness.model import PreconditionError
from targets.broker_target.target import TARGET
from tests.specs import cluster_spec
from tests.targets.kafka_family.logs.build import batch


class Closing:
    """A part that counts its calls of close, which may fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self.closed = 0
        self._fails = fails

    def close(self) -> None:
        """Count the call; raise OSError if this part fails."""
        self.closed += 1
        if self._fails:
            raise OSError("no")


@pytest.fixture
def machines(tmp_path: Path) -> RealMachines:
    """Return machines with one node, A, whose disk is the folder `data`."""
    host = SimpleNamespace(name="local", power_tier="watermark", disk=lambda _: tmp_path / "data")
    host.unlink = lambda _, path: (tmp_path / "data" / path).unlink()
    (tmp_path / "data").mkdir()
    spec = cluster_spec(TARGET, "hw", {"A": 1}, ["A"])
    return RealMachines(
        host=cast(Any, host),
        collector=cast(Any, Closing()),
        printed_lines=None,
        target=TARGET,
        spec=spec,
        give_up=lambda _: None,
    )


def write(machines: RealMachines, *bases: int) -> Path:
    """Write a replica's log with one segment of one record at each of these offsets, and return its folder."""
    folder = machines.disk("A") / "log-0"
    folder.mkdir()
    for base in bases:
        (folder / f"{base:020}.log").write_bytes(batch(base, "v"))
        (folder / f"{base:020}.index").touch()
    return folder


def test_replica_without_a_folder_has_no_log(machines: RealMachines) -> None:
    assert machines.replica_log("A", "log", 0) is None
    write(machines, 0)
    found = machines.replica_log("A", "log", 0)
    assert (1, None) == (found and found.log_end_offset, machines.replica_log("A", "log", 1))
    assert (1, -1) == (machines.log_end("A", "log", 0), machines.log_end("A", "log", 1))


def test_newest_segment_is_deleted_with_its_index_and_no_other(machines: RealMachines) -> None:
    folder = write(machines, 0, 1)
    seen = machines.delete_active_segment("A", "log", 0)
    assert "00000000000000000001.index, 00000000000000000001.log deleted" == seen
    assert ["00000000000000000000.index", "00000000000000000000.log"] == sorted(p.name for p in folder.iterdir())
    machines.delete_active_segment("A", "log", 0)
    with pytest.raises(PreconditionError, match="A: no segment of log-0 to delete; expected one"):
        machines.delete_active_segment("A", "log", 0)


def test_disk_is_kept_as_it_is(machines: RealMachines, tmp_path: Path) -> None:
    write(machines, 0)
    (machines.disk("A") / "lost+found").mkdir()
    machines.keep("A", tmp_path / "kept")
    machines.keep("A", tmp_path / "kept")
    assert ["log-0"] == [path.name for path in (tmp_path / "kept").iterdir()]


def test_replica_whose_folder_is_a_link_is_not_read_and_loses_nothing(
    machines: RealMachines, tmp_path: Path
) -> None:
    """The node moves its log away, and puts a link to another node's log in its place."""
    folder = write(machines, 0)
    folder.rename(tmp_path / "log-0")
    folder.symlink_to(tmp_path / "log-0")
    (machines.disk("A") / "meta.properties").touch()
    found = machines.replica_log("A", "log", 0)
    assert found is not None
    assert ((), ("log-0: a link; expected a folder, and no link is followed",)) == (found.batches, found.problems)
    with pytest.raises(PreconditionError, match="A: no segment of log-0 to delete; expected one"):
        machines.delete_active_segment("A", "log", 0)
    assert 2 == len(list((tmp_path / "log-0").iterdir()))


def test_replica_is_not_read_when_its_node_s_disk_became_a_link(machines: RealMachines, tmp_path: Path) -> None:
    """The node puts a link to another node's data in the place of its own."""
    write(machines, 0)
    machines.disk("A").rename(tmp_path / "other")
    with pytest.raises(PreconditionError, match="No such file or directory; expected a data directory"):
        machines.replica_log("A", "log", 0)
    machines.disk("A").symlink_to(tmp_path / "other")
    with pytest.raises(PreconditionError, match="a link; expected a folder, and no link is followed"):
        machines.replica_log("A", "log", 0)


def test_disk_is_kept_without_what_its_links_lead_to(machines: RealMachines, tmp_path: Path) -> None:
    write(machines, 0)
    (tmp_path / "secret").write_bytes(b"secret")
    (machines.disk("A") / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(machines.disk("A") / "fifo")
    machines.keep("A", tmp_path / "kept")
    assert {"log-0", "link"} == {path.name for path in (tmp_path / "kept").iterdir()}
    assert (tmp_path / "kept" / "link").is_symlink()


def test_collector_is_closed_also_when_the_host_cannot_be() -> None:
    host, collector = Closing(fails=True), Closing()
    spec = cluster_spec(TARGET, "hw", {}, [])
    parts = {"host": host, "collector": collector, "printed_lines": None, "target": TARGET, "spec": spec}
    parts["give_up"] = print
    cast(Any, host).name = cast(Any, host).power_tier = "none"
    with pytest.raises(OSError, match="no"):
        RealMachines(**cast(Any, parts)).close()
    assert (1, 1) == (host.closed, collector.closed)


def test_lines_of_a_service_are_not_read_when_its_process_ends() -> None:
    looked: list[str] = []
    spec = cluster_spec(TARGET, "hw", {"A": 1}, ["A"])
    made = RealMachines(
        host=cast(Any, SimpleNamespace(name="local", power_tier="loop")),
        collector=cast(Any, SimpleNamespace(drain=lambda _: None)),
        printed_lines=cast(Any, SimpleNamespace(look=looked.append)),
        target=TARGET,
        spec=spec,
        give_up=lambda _: None,
    )
    made.specs["A"] = cast(Any, SimpleNamespace())
    made.drain("A")
    made.drain("coordinator-1")
    assert ["A"] == looked
