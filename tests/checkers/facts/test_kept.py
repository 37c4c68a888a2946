"""What the final leader must hold: it had the record, and no fault has touched it since."""

from __future__ import annotations

import pytest

from checkers.facts.acked import acked_records, written_by
from checkers.facts.kept import must_hold
from checkers.facts.view import final_leader, final_logs
from tests.checkers.plants.edit import Edit


def _last_is_kept(edit: Edit) -> bool:
    ops = edit.ops
    last, leader = acked_records(ops)[-1], final_leader(ops)
    assert leader is not None
    log = final_logs(ops)[leader.node or ""]
    return must_hold(ops, log, (last.offset, last.value), written_by(ops, last))


@pytest.mark.parametrize("run", ["local-kip101-1", "sim-clean-8", "kafka-kip101-1"])
def test_leader_that_led_on_must_hold_what_it_had(run: str) -> None:
    assert _last_is_kept(Edit(run))


@pytest.mark.parametrize("run", ["local-kip101-1", "sim-clean-8", "kafka-kip101-1"])
def test_fault_of_the_leader_excuses_it(run: str) -> None:
    edit = Edit(run)
    leader = edit.find("metadata", "state", nth=-1)["value"]["leader"]
    healed = edit.find("runner", "healed")
    edit.fault(edit.lines[edit.at(healed) - 1], "power-loss", leader, effect="power-lost", band="down")
    assert not _last_is_kept(edit)


@pytest.mark.parametrize("run", ["local-kip101-1", "sim-clean-8", "kafka-kip101-1"])
def test_fault_of_another_node_does_not(run: str) -> None:
    edit = Edit(run)
    healed = edit.find("runner", "healed")
    edit.fault(edit.lines[edit.at(healed) - 1], "pause", "Z", effect="paused", band="down")
    assert _last_is_kept(edit)


def test_log_that_could_not_be_read_proves_nothing() -> None:
    edit = Edit("local-kip101-1")
    edit.change(edit.snapshot("A"), problems=["torn"])
    assert not _last_is_kept(edit)


def test_leader_that_no_follower_fetched_from_may_never_have_had_it() -> None:
    edit = Edit("kafka-kip101-1")
    edit.drop(*edit.all("fabric", "fetch", offset=6))
    assert not _last_is_kept(edit)
