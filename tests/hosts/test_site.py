"""A closed site or ledger creates nothing more, even if the site is closed while it is being opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.ability import Ability
from harness.cleanup.ledger import Ledger, runs_dir
from harness.hosts import site as module
from harness.hosts.node import NodeProcess, read_log
from harness.hosts.site import Site, write_files
from harness.launch import Launch
from harness.model import PreconditionError, UsageError


def test_close_during_open_leaves_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path / "run", power_tier="watermark", drain=None)
    monkeypatch.setattr(module, "require_free_space", lambda _folder: site.close())
    with pytest.raises(UsageError, match="closed while it was being opened"):
        site.open()
    assert [] == [path for path in runs_dir().iterdir() if path.is_dir()]


def test_nothing_is_made_in_a_ledger_that_was_closed(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    ledger.close()
    with pytest.raises(UsageError, match="closed; expected no call after close"):
        ledger.run("touch", str(tmp_path / "made"))
    assert False is (tmp_path / "made").exists()


def test_launch_files_are_written_through_no_link_that_a_node_has_made(tmp_path: Path) -> None:
    (tmp_path / "ours").write_text("ours")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "broker.json").symlink_to(tmp_path / "ours")
    launch = Launch(argv=("true",), files={"broker.json": "theirs"})
    with pytest.raises(PreconditionError, match=r"broker\.json: a link; expected a regular file"):
        write_files(tmp_path / "conf", launch)
    (tmp_path / "conf" / "broker.json").unlink()
    (tmp_path / "conf").rename(tmp_path / "was")
    (tmp_path / "conf").symlink_to(tmp_path)
    with pytest.raises(PreconditionError, match="a link; expected a folder"):
        write_files(tmp_path / "conf", launch)
    assert ("ours", False) == ((tmp_path / "ours").read_text(), (tmp_path / "broker.json").exists())


def test_node_s_output_goes_through_no_link_and_is_read_through_none(tmp_path: Path) -> None:
    (tmp_path / "ours").write_text("ours")
    (tmp_path / "log.txt").symlink_to("ours")
    ledger = Ledger.open(tmp_path / "run")
    node = NodeProcess(name="A", ledger=ledger, log=tmp_path / "log.txt")
    with pytest.raises(PreconditionError, match=r"log of A: .*log\.txt: a link; expected a regular file"):
        node.start(("echo", "theirs"), env={}, cwd=tmp_path)
    with pytest.raises(PreconditionError, match="log of A"):
        node.log_text()
    assert "ours" == (tmp_path / "ours").read_text()
    ledger.close()


def test_node_s_output_is_read_from_no_folder_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "log.txt").write_text("ours")
    (tmp_path / "A").symlink_to("ours")
    with pytest.raises(PreconditionError, match=r"log of A: .*: a link; expected a folder"):
        read_log("A", tmp_path / "A" / "log.txt")
    assert "ours" == read_log("A", tmp_path / "ours" / "log.txt")
    assert "" == read_log("A", tmp_path / "ours" / "none")


@pytest.mark.parametrize(
    ("tier", "why"),
    [
        ("loop", ""),
        ("watermark", "power tier watermark (requested) takes what a service has flushed; expected tier loop"),
    ],
)
def test_service_loses_power_only_where_its_filesystem_knows_what_was_flushed(
    tmp_path: Path, tier: str, why: str
) -> None:
    site = Site(tmp_path / "run", power_tier=tier, drain=None)
    assert why == site.lacks(Ability.SERVICE_POWER_LOSS)
    assert "" == site.lacks(Ability.TORN_POWER_LOSS)
