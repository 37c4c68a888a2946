"""A node sees its disk through FUSE: it fails as told, and what lies below is flushed, lost and read as ever."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from harness.ability import OF_DISKS, Ability
from harness.cleanup import mounts
from harness.cluster.disk_error import DiskError
from harness.hosts import faulty
from harness.model import PreconditionError
from tests.hosts.conftest import MakeHostFixture, node, start_ready
from tests.needs import needs

needs_fuse = [pytest.mark.slow, needs("fuse")]


def test_machine_without_fuse_says_what_to_install(
    make_host: MakeHostFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faulty, "_trials", [])
    monkeypatch.setitem(sys.modules, faulty.LIBRARY, None)
    monkeypatch.setattr(faulty.shutil, "which", lambda tool: f"/bin/{tool}")
    host = make_host()
    reasons = {host.lacks(ability) for ability in OF_DISKS}
    assert {
        "host local: no Python package mfusepy; expected it installed; `pip install 'fencepost[fuse]'`"
    } == reasons
    assert "" == host.lacks(Ability.LOST_DISKS)
    host.add_node("A", disk=True, fails=True)
    with pytest.raises(PreconditionError, match="has no FUSE over it; expected one"):
        host.break_disk("A", DiskError.FULL)


@pytest.mark.parametrize("tier", ["watermark", pytest.param("loop", marks=[pytest.mark.root, needs("loop")])])
class TestMounted:
    """Tests that mount FUSE."""

    pytestmark = needs_fuse

    def test_power_loss_takes_what_was_written_through_it(self, make_host: MakeHostFixture, tier: str) -> None:
        host = make_host(tier=tier)
        place = host.add_node("A", disk=True, fails=True)
        assert Path(place.data_dir) != host.disk("A")
        start_ready(host, "A", node(place.data_dir, "write:log:a:1000"))
        host.flush("A")
        host.kill("A")
        start_ready(host, "A", node(place.data_dir, "write:log:b:500", "write:new:c:10"))
        assert 1500 == (host.disk("A") / "log").stat().st_size
        assert "of 1510 bytes written 1000 were durable and 510 are gone" in host.power_loss("A")
        for folder in (Path(place.data_dir), host.disk("A")):
            assert [("log", 1000)] == [(path.name, path.stat().st_size) for path in folder.iterdir()]

    def test_node_meets_the_error_and_none_once_it_is_mended(self, make_host: MakeHostFixture, tier: str) -> None:
        host = make_host(tier=tier)
        data = Path(host.add_node("A", disk=True, fails=True).data_dir)
        (data / "log").write_bytes(b"1")
        wanted = {DiskError.FULL: errno.ENOSPC, DiskError.WRITE: errno.EIO, DiskError.READ_ONLY: errno.EROFS}
        for error, number in wanted.items():
            host.break_disk("A", error)
            assert error == host.disk_state("A")
            with pytest.raises(OSError, match=os.strerror(number)):
                (data / "new").write_bytes(bytes(8192))
            assert errno.errorcode[number] in host.mend_disk("A")
            assert "" == host.disk_state("A")
            (data / "new").write_bytes(bytes(8192))

    def test_slow_disk_stays_slow_over_a_power_loss(self, make_host: MakeHostFixture, tier: str) -> None:
        host = make_host(tier=tier)
        host.add_node("A", disk=True, fails=True)
        host.break_disk("A", DiskError.SLOW)
        host.start("A", node(str(host.disk("A"))))
        host.power_loss("A")
        assert DiskError.SLOW == host.disk_state("A")

    def test_closed_host_leaves_no_mount(self, make_host: MakeHostFixture, tier: str) -> None:
        host = make_host(tier=tier)
        data = Path(host.add_node("A", disk=True, fails=True).data_dir)
        assert mounts.source_of(data).startswith("fencepost-")
        host.break_disk("A", DiskError.FULL)
        host.close()
        assert ("", []) == (mounts.source_of(data), mounts.mounts_below(data.parents[1]))


@pytest.mark.slow
def test_mount_of_somebody_else_is_not_taken_away() -> None:
    assert "/proc: proc is mounted there; expected fencepost-x" == mounts.detach(Path("/proc"), "fencepost-x")
    assert mounts.is_mounted(Path("/proc"))
