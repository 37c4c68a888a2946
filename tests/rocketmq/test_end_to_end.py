"""
The commands `test` and `run` on Apache RocketMQ, from jars to a table and a report.

Source:  docs/rocketmq.md: a master that is replaced acknowledges what it alone has; a library beside the plain
         client sends again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.clients.children import FOLDER
from harness.events import Poll, Produce
from harness.history.file import read_history
from harness.model import EXIT_CODES, OpType
from harness.run.result import Status
from harness.run.suite import Suite
from tests.needs import needs

RELEASE = "5.5.0"
SENDS_AGAIN = f"""\
title    RocketMQ's own client sends again while its master is killed
source   docs/rocketmq.md
nodes    A B C replicas
records  m1 1, m2 1
settings unclean_election=no
producer p1 log-0 retries=20 within_ms=4000
consumer c1 log-0

produce m1 acks=all
pass 3000ms
kill leader
pass 8000ms
settle
produce m2 acks=all
pass 2000ms
expect {RELEASE}: none
"""
pytestmark = [pytest.mark.slow, pytest.mark.spark, needs(f"rocketmq-{RELEASE}", "java")]


def test_record_that_a_replaced_master_acknowledged_alone_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--scenario", "acknowledged-alone", "--seed", "7", "--results", str(tmp_path)]
    code = main(["test", f"rocketmq:{RELEASE}", *asked])
    printed = capsys.readouterr()
    (run,) = [path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]
    (cell,) = Suite.read(run / "suite.json").results
    assert (RELEASE, "lost x", Status.AS_EXPECTED) == (cell.protocol, cell.found, cell.status), printed.out
    assert (EXIT_CODES["valid"], True) == (code, "as expected" in printed.out)
    assert (run / "report.html").exists()


@pytest.mark.exhaustive
def test_own_client_of_rocketmq_sends_again_and_reads_on_while_its_master_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule, results = tmp_path / "again.txt", tmp_path / "results"
    schedule.write_text(SENDS_AGAIN)
    asked = ["--schedule", str(schedule), "--seed", "7", "--results", str(results)]
    code = main(["run", "--target", f"rocketmq:{RELEASE}", *asked])
    printed = capsys.readouterr()
    assert EXIT_CODES["valid"] == code, printed.out
    (history,) = (path for path in results.glob("*/*/history.jsonl") if not path.parents[1].is_symlink())
    events = [op.event for op in read_history(history) if op.type is OpType.OK]
    acknowledged = {each.offset: each.value for each in events if isinstance(each, Produce) and each.name == "p1"}
    polled = (record for each in events if isinstance(each, Poll) for record in each.records or ())
    read = [(offset, value) for offset, value in polled if offset in acknowledged]
    assert len(read) > 50
    assert read == [(offset, acknowledged[offset]) for offset, _ in read]
    # Each stood on a process of its own.
    assert {"p1-conf", "c1-conf"} <= {path.name for path in (history.parent / FOLDER).iterdir()}
