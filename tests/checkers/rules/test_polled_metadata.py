"""Where metadata are polled, a state that was not seen may have stood between two looks."""

from __future__ import annotations

import pytest

from checkers.checker import partitions
from checkers.facts.elections import elections
from checkers.facts.isr import isr_states
from checkers.facts.moments import follows, never_stood, state_of_version, states_of_epoch, whole
from checkers.facts.reigns import by_reign
from checkers.live.watch import LiveCheck
from checkers.rules.isr import isr
from checkers.rules.reads import reads
from checkers.rules.states import states_seen
from harness.model import Op, Source
from harness.target.traits import Seen, Traits
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.polls import all_at_end

WATCHED = {"emits_events": "yes"}
POLLED = Traits(emits_events=True, seen=Seen.POLLED).as_text()


def run(traits: object) -> Edit:
    """Return a run in which the first state of the partition was not seen."""
    edit = Edit("local-kip101-1")
    edit.lines[0]["value"]["traits"] = dict(traits)  # type: ignore[call-overload]
    return edit.drop(edit.find(Source.METADATA, "state"))


def part_of(edit: Edit) -> list[Op]:
    (part,) = (ops for key, ops in partitions(edit.ops).items() if key[1] >= 0)
    return list(part)


@pytest.mark.parametrize(("traits", "found"), [(WATCHED, True), (POLLED, False)], ids=["watched", "polled"])
def test_state_that_a_poll_may_have_missed_is_no_contradiction(traits: dict[str, str], *, found: bool) -> None:
    missed = states_seen(part_of(run(traits)))
    assert found is bool(missed)


@pytest.mark.parametrize(("traits", "found"), [(WATCHED, True), (POLLED, False)], ids=["watched", "polled"])
def test_epoch_after_the_last_look_may_have_stood(traits: dict[str, str], *, found: bool) -> None:
    ops = part_of(run(traits))
    said = next(op for op in ops if op.f == "leader")
    proof = never_stood(ops, 99, said)
    assert found is bool(proof)


@pytest.mark.parametrize(("traits", "sure"), [(WATCHED, True), (POLLED, False)], ids=["watched", "polled"])
def test_versions_of_looks_prove_nothing(traits: dict[str, str], *, sure: bool) -> None:
    edit = Edit("local-kip101-1")
    edit.lines[0]["value"]["traits"] = dict(traits)
    ops = part_of(edit)
    assert sure is bool(state_of_version(ops))
    assert sure is follows(ops, 3, 4)
    assert sure is any(whole(ops, epoch) for epoch in states_of_epoch(ops))
    assert sure is any(state.follows for state in isr_states(ops))


@pytest.mark.parametrize(("traits", "found"), [(WATCHED, True), (POLLED, False)], ids=["watched", "polled"])
def test_member_that_joined_between_two_looks_was_let_in_by_nobody_known(
    traits: dict[str, str], *, found: bool
) -> None:
    edit = Edit("local-kip101-1")
    edit.lines[0]["value"]["traits"] = dict(traits)
    *_, before, last = edit.all(Source.METADATA, "state")
    edit.change(before, isr=[last["value"]["leader"]], epoch=last["value"]["epoch"] - 1)
    edit.change(last, version=before["value"]["version"] + 1, isr=["A", "B"])
    assert found is any("joined the ISR with epoch" in each.sentence for each in isr(part_of(edit)))


@pytest.mark.parametrize(("unclean", "outside"), [(True, True), (False, False)])
def test_leader_that_was_not_seen_in_the_isr_is_outside_it_only_where_that_excuses(
    *, unclean: bool, outside: bool
) -> None:
    edit = Edit("kafka-kip101-1")
    edit.lines[0]["value"] |= {"traits": dict(Traits(seen=Seen.POLLED).as_text()), "unclean": unclean}
    for line in edit.all(Source.METADATA, "state"):
        edit.change(line, isr=["C"])
    assert outside is any(each.outside for each in elections(part_of(edit)))


def test_poll_proves_no_leadership_between_two_looks() -> None:
    edit = Edit("kafka-kip101-1")
    all_at_end(edit)
    assert by_reign(part_of(edit))
    edit.lines[0]["value"]["traits"] = dict(Traits(seen=Seen.POLLED).as_text())
    assert not by_reign(part_of(edit))


@pytest.mark.parametrize(("seen", "stopped"), [(Seen.WATCHED, True), (Seen.POLLED, False)])
def test_live_check_takes_no_leader_for_the_same_between_two_looks(seen: Seen, *, stopped: bool) -> None:
    edit = Edit("made-group")
    edit.lines[0]["value"]["traits"]["seen"] = seen.value
    edit.change(edit.find(Source.CLIENT, "read", type="ok"), high_watermark=5)
    records = edit.find(Source.CLIENT, "read", type="ok")["value"]["records"]
    del records[-1]
    live = LiveCheck()
    assert stopped is any(live.step(op) is not None for op in edit.ops)
    assert stopped is any("below what was acknowledged" in each.sentence for each in reads(part_of(edit)))
