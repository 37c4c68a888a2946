"""checkers/facts/suspects.py: no record is passed over that a replica may have lost by no fault."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.facts.assured import Assured, assured_records
from checkers.facts.keepers import Keepers
from checkers.facts.suspects import is_suspicious
from harness.effect import Band, Effect
from harness.events import Fetch, MetadataState
from harness.model import PartOps
from tests.checkers.seen import Seen

NODES = st.sampled_from("ABC")
LINKS = st.sampled_from(["BA", "CA", "AB", "CB", "AC", "BC"])
FAULTS = st.sampled_from(["power-loss", "kill", "restart", "flush", "lose-disk"])
LOST = {"effect": Effect.DISK_LOST.value, "band": Band.MARK.value}
OFFSETS = st.integers(0, 4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("acked"), OFFSETS),
        st.tuples(st.just("fetches"), LINKS, OFFSETS),
        st.tuples(st.just("fetched"), LINKS, OFFSETS),
        st.tuples(st.just("leads"), NODES, st.sampled_from(["ABC", "AB", "AC", "BC", "A", "B", "C"])),
        st.tuples(
            st.just("fault"), st.sampled_from(["power-loss", "kill", "restart", "flush", "lose-disk"]), NODES
        ),
        st.tuples(st.just("learned"), NODES, NODES),
    ),
    min_size=3,
    max_size=25,
)


def told(steps: list[tuple[str, ...]]) -> Seen:
    """Return the history of the steps, 200 ms apart, so that no frame of an ended process is on its way."""
    story, epoch = Seen(), 0
    for place, (what, *rest) in enumerate(steps, start=1):
        ms = 200 * place
        match what, rest:
            case "acked", [offset]:
                story.acked(f"v{place}", int(offset), ms=ms)
            case "fetches", [link, offset]:
                story.fetches(link, int(offset), ms=ms)
            case "fetched", [link, offset]:
                story.fetched(link, int(offset), ms=ms)
            case "leads", [node, isr]:
                epoch += 1
                story.leads(node, epoch, ms=ms, isr=isr if node in isr else node + isr)
            case "fault", [name, node]:
                story.fault(name, node, ms=ms, **(LOST if name == "lose-disk" else {}))
            case _, [node, leader]:
                story.commanded(node, leader, ms=ms)
    return story


def seen_without(story: Seen) -> list[Assured]:
    """Return the promised records without which a fetch, or the ISR in ZooKeeper, shows a replica."""
    ops = PartOps(story.ops)
    return [
        each
        for each in assured_records(ops)
        if any(
            keeping.op is not None and isinstance(keeping.op.event, Fetch | MetadataState)
            for _, keeping in Keepers(ops, each).gone()
        )
    ]


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(STEPS)
def test_every_record_that_a_replica_is_seen_without_is_suspicious(steps: list[tuple[str, ...]]) -> None:
    story = told(steps)
    assert all(is_suspicious(PartOps(story.ops), each) for each in seen_without(story))


def suspicious(story: Seen) -> list[str]:
    ops = PartOps(story.ops)
    return [each.acked.value for each in assured_records(ops) if is_suspicious(ops, each)]


def promised() -> Seen:
    """B has both records, and then a new disk."""
    return Seen().acked("m1", 0, ms=11).fetches("BA", 1, ms=20).acked("m2", 1, ms=30).fetches("BA", 2, ms=40)


def joined_before_its_answer() -> Seen:
    """B, outside the ISR, asks for m2, and joins before it is answered."""
    story = promised().leads("A", 1, ms=50, isr="AC").acked("m3", 2, ms=400).fetched("BA", 1, ms=500)
    return story.fetches("BA", 2, ms=900).leads("A", 1, ms=1000)


def came_in_from_outside() -> Seen:
    """C was down until m1 was promised, is let into the ISR, and asks for m1."""
    story = Seen().fault("kill", "C", ms=0).leads("A", 1, ms=5, isr="AB").acked("m1", 0, ms=1000)
    story.fault("restart", "C", ms=1500)
    return story.leads("A", 1, ms=2000).leads("A", 1, ms=4000).fetches("CA", 0, ms=5000)


def copied_again() -> Seen:
    """B loses its power, copies m1 again, and asks for it once more."""
    story = Seen().acked("m1", 0, ms=11).fault("power-loss", "B", ms=60).fault("restart", "B", ms=70)
    return story.fetches("BA", 0, ms=400).fetches("BA", 1, ms=500).fetches("BA", 0, ms=600)


@pytest.mark.parametrize("story", [joined_before_its_answer(), came_in_from_outside(), copied_again()])
def test_replica_that_owes_a_record_by_the_isr_or_its_fetches_is_suspicious(story: Seen) -> None:
    found = [each.acked.value for each in seen_without(story)]
    assert found
    assert {*found} <= {*suspicious(story)}


def test_replica_that_cut_its_log_is_suspicious_of_what_it_cut_alone() -> None:
    story = promised().fetches("BA", 1, ms=300)
    assert ["m2"] == suspicious(story) == [each.acked.value for each in seen_without(story)]


def test_replica_that_lost_its_disk_is_no_reason_to_suspect_anything() -> None:
    story = promised().fault("flush", "B", ms=50).fault("kill", "B", ms=60).fault("lose-disk", "B", ms=70, **LOST)
    assert [] == suspicious(story.fault("restart", "B", ms=80).fetches("BA", 0, ms=400))


def test_what_was_flushed_no_loss_of_power_explains() -> None:
    story = promised().fault("flush", "B", ms=50).acked("m3", 2, ms=55).fault("power-loss", "B", ms=60)
    assert ["m1", "m2"] == suspicious(story.fault("restart", "B", ms=70).fetches("BA", 0, ms=400))
