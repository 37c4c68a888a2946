"""Lost and committed records: what permits a loss, and what does not."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.changes import acked, place, with_acks
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import Plant, plant

# local-kip101-2: A and B have m2 (offsets 1-2) and lose their power together; B comes back first, without it.
# local-kip101-1: A is killed and comes back with m2 (offset 3), B dies, A leads; nothing is lost.
# local-kip101-1-hw: the same, but A truncates m2 to its high watermark.
# local-kafka-7128: A joins the ISR without m2 (offsets 10-14), C is killed, A leads.
# local-kafka-7415a: A truncates m2 (offsets 4-5), as its leader has no epoch information.
# sim-last-standing: A, B and C have m1; A and B lose it with their power, A comes back as the last of the ISR.
# sim-returned-unseen: all lose power; A and C lose m1, C is elected by a new controller that did not see it go.


def _m2(edit: Edit) -> Line:
    """Return the last acknowledgement of m2."""
    return edit.find(Source.CLIENT, "produce", type="ok", nth=-1, name="m2")


def _m1(edit: Edit) -> Line:
    return edit.find(Source.CLIENT, "produce", type="ok", nth=-1, name="m1")


# --- runs as they were -----------------------------------------------------------------------------------------
def _as_it_was(name: str, run: str, *kinds: Kind) -> Plant:
    return Plant(name=f"{name}-lawful", run=run, edit=lambda _edit: None, kinds=frozenset(kinds))


both_disks = _as_it_was("loss-of-both-disks", "local-kip101-2", Kind.PERMITTED)
last_standing = _as_it_was("loss-of-the-last-standing", "sim-last-standing", Kind.LAST_STANDING)
returned_unseen = _as_it_was("loss-by-an-unseen-return", "sim-returned-unseen", Kind.RETURNED)
unpromised = _as_it_was("loss-of-acks-1", "sim-unpromised", Kind.UNPROMISED)
nothing_lost = _as_it_was("loss-of-nothing", "local-kip101-1")
nothing_lost_sim = _as_it_was("loss-of-nothing-sim", "sim-clean")


# --- flushed before the power was lost ---------------------------------------------------------------------------
@plant("flushed-by-the-harness", "local-kip101-2", Kind.LOST, Kind.NOT_REPLICATED)
def flushed_by_harness(edit: Edit) -> None:
    edit.fault(acked(edit, "m2"), "flush", "B")


@plant("flushed-by-the-harness-before-lawful", "local-kip101-2", Kind.PERMITTED)
def flushed_by_harness_before(edit: Edit) -> None:
    edit.fault(acked(edit, "m1"), "flush", "B")


@plant("flushed-by-the-broker", "local-kip101-2", Kind.LOST, Kind.NOT_REPLICATED)
def flushed_by_broker(edit: Edit) -> None:
    edit.event(acked(edit, "m2"), "B", "flushed", upto=3)


@plant("flushed-by-the-broker-below-lawful", "local-kip101-2", Kind.PERMITTED)
def flushed_below(edit: Edit) -> None:
    edit.event(acked(edit, "m2"), "B", "flushed", upto=1)


@plant("flushed-segment", "local-kip101-2", Kind.LOST, Kind.NOT_REPLICATED)
def flushed_segment(edit: Edit) -> None:
    path = f"{edit.lines[0]['value']['topic']}-0/00000000000000000000.log"
    edit.insert(acked(edit, "m2"), Source.BROKER, "flush", "B", path=path, length=999)


@plant("flushed-checkpoint-lawful", "local-kip101-2", Kind.PERMITTED)
def flushed_checkpoint(edit: Edit) -> None:
    edit.insert(acked(edit, "m2"), Source.BROKER, "flush", "B", path="log-0/leader-epoch-checkpoint", length=9)


@plant("flushed-on-the-last-standing", "sim-last-standing", Kind.LOST, Kind.NOT_REPLICATED)
def flushed_on_last_standing(edit: Edit) -> None:
    edit.fault(acked(edit, "m1"), "flush", "A")


@plant("flushed-on-another-lawful", "sim-last-standing", Kind.LAST_STANDING)
def flushed_on_another(edit: Edit) -> None:
    edit.fault(acked(edit, "m1"), "flush", "C")


@plant("flushed-on-the-unseen", "sim-returned-unseen", Kind.LOST, Kind.NOT_REPLICATED)
def flushed_on_unseen(edit: Edit) -> None:
    edit.event(acked(edit, "m1"), "C", "flushed", upto=2)


@plant("flushed-on-who-kept-it-lawful", "sim-returned-unseen", Kind.RETURNED)
def flushed_on_who_kept_it(edit: Edit) -> None:
    edit.event(acked(edit, "m1"), "B", "flushed", upto=2)


# --- spared by the power loss, and lost by a later recovery ------------------------------------------------------
@plant("spared-then-lost", "local-kip101-2", Kind.LOST, Kind.NOT_REPLICATED)
def spared_then_lost(edit: Edit) -> None:
    found = edit.find(Source.BROKER, "recovered", "B")
    edit.change(found, log_end_offset=3)
    edit.restart(edit.step("restart B"), "B", recovered=1, epochs=[(0, 0)])


@plant("spared-by-the-first-of-two-losses", "local-kip101-2", Kind.LOST, Kind.NOT_REPLICATED)
def spared_then_lost_power(edit: Edit) -> None:
    """What a recovery found after a power loss is on the disk: the next power loss cannot take it."""
    found = edit.find(Source.BROKER, "recovered", "B")
    edit.change(found, log_end_offset=3)
    edit.restart(edit.step("restart B"), "B", down="power-loss", recovered=1, epochs=[(0, 0)])


@plant("lost-then-restarted-lawful", "local-kip101-2", Kind.PERMITTED)
def lost_then_restarted(edit: Edit) -> None:
    edit.restart(edit.step("restart B"), "B", recovered=1, epochs=[(0, 0)])


@plant("lost-without-a-power-loss", "local-kip101-2", Kind.LOST, Kind.NOT_REPLICATED)
def lost_without_power_loss(edit: Edit) -> None:
    for line in edit.all(Source.NEMESIS, "power-loss"):
        line["f"], line["value"]["effect"] = "kill", "down"


# --- a power loss or a kill beside a bug -------------------------------------------------------------------------
@plant("bug-beside-a-power-loss", "local-kip101-1-hw", Kind.LOST, Kind.NOT_REPLICATED)
def bug_beside_power_loss(edit: Edit) -> None:
    """A's power loss spares m2, and A truncates it all the same."""
    edit.loses_power("A")


@plant("bug-beside-two-power-losses", "local-kip101-1-hw", Kind.LOST, Kind.NOT_REPLICATED)
def bug_beside_power_losses(edit: Edit) -> None:
    edit.loses_power("A").loses_power("B")


@plant("bug-before-a-power-loss", "local-kafka-7415a", Kind.LOST, Kind.UNPROMISED, Kind.NOT_REPLICATED)
def bug_before_power_loss(edit: Edit) -> None:
    edit.loses_power("B").loses_power("A")


@plant("bug-beside-a-kill-of-all", "local-kafka-7128", Kind.LOST, Kind.NOT_REPLICATED)
def bug_beside_kill(edit: Edit) -> None:
    """B and C, the ISR that acknowledged m2, are down when A is elected; A joined the ISR without m2."""
    last = edit.find(Source.NEMESIS, "expire", type="ok", nth=-1)
    edit.restart(last, "B", recovered=15, epochs=[(2, 0), (3, 10)])


@plant("power-loss-after-the-loss", "local-kafka-7128", Kind.LOST, Kind.NOT_REPLICATED)
def power_loss_after(edit: Edit) -> None:
    edit.loses_power("C")


@plant("copied-again-then-cut", "local-kip101-1-hw", Kind.LOST, Kind.NOT_REPLICATED)
def copied_again_then_cut(edit: Edit) -> None:
    """A loses m2 with its power, copies it again, and then truncates it to its high watermark."""
    edit.loses_power("A")
    edit.change(edit.find(Source.BROKER, "recovered", "A"), log_end_offset=3)
    follower = edit.find(Source.BROKER, "follower", "A", nth=1)
    edit.change(follower, log_end_offset=3)
    copied = edit.append(follower, "A", 3, 4, -1)
    bug = edit.find(Source.BROKER, "truncate", "A", nth=1)
    first = edit.again(bug, after=follower, **{"from": 3})
    assert edit.at(first) < edit.at(copied) < edit.at(bug)
    edit.change(bug, reason="out-of-range")


@plant("kept-in-the-isr-without-it", "local-kip101-1-hw", Kind.LOST)
def kept_in_the_isr(edit: Edit) -> None:
    """A loses m2 with its power, returns unseen, and leads without it; B had it and was up until then."""
    edit.loses_power("A")
    edit.change(edit.find(Source.BROKER, "recovered", "A"), log_end_offset=3)
    edit.change(edit.find(Source.BROKER, "follower", "A", nth=1), log_end_offset=3)
    edit.change(edit.find(Source.BROKER, "truncate", "A", nth=1), **{"from": 3})


# --- elections ---------------------------------------------------------------------------------------------------
@plant("unclean-though-off", "local-appendix-a", Kind.LOST, Kind.WRONG_LEADER)
def unclean_though_off(edit: Edit) -> None:
    edit.change(edit.lines[0], unclean=False)


@plant("unclean-and-allowed-lawful", "local-appendix-a", Kind.UNCLEAN)
def unclean_allowed(edit: Edit) -> None:
    """Change nothing: unclean election is on."""


# --- committed, whatever its acks --------------------------------------------------------------------------------
@plant("committed-lost-acks-1", "local-kip101-1-hw", Kind.COMMITTED_LOST, Kind.NOT_REPLICATED)
def committed_acks_1(edit: Edit) -> None:
    with_acks(edit, "m2", 1)


@plant("committed-lost-acks-0", "local-kip101-1-hw", Kind.COMMITTED_LOST, Kind.NOT_REPLICATED, Kind.UNPROMISED)
def committed_acks_0(edit: Edit) -> None:
    with_acks(edit, "m2", 0)
    for line in edit.produces("m2"):
        line["value"].pop("offset", None)


@plant("committed-lost-unanswered", "local-kip101-1-hw", Kind.COMMITTED_LOST, Kind.NOT_REPLICATED)
def committed_unanswered(edit: Edit) -> None:
    """The client is never told that m2 was written."""
    for line in edit.produces("m2"):
        if line["type"] == "ok":
            line["type"] = "info"
            line["value"].pop("offset")
            line["value"]["error"] = "REQUEST_TIMED_OUT"


@plant("committed-lost-acks-1-by-joining", "local-kafka-7128", Kind.COMMITTED_LOST, Kind.NOT_REPLICATED)
def committed_acks_1_by_joining(edit: Edit) -> None:
    with_acks(edit, "m2", 1)


@plant("committed-and-permitted-lawful", "local-kip101-2", Kind.PERMITTED)
def committed_permitted(edit: Edit) -> None:
    with_acks(edit, "m2", 1)


# --- committed, and not on a member of the ISR, though nothing is lost -------------------------------------------
@plant("cut-and-copied-again", "local-kip101-1", Kind.NOT_REPLICATED)
def cut_and_copied_again(edit: Edit) -> None:
    cut = edit.find(Source.BROKER, "truncate", "A", nth=1)
    edit.change(cut, to=3, end=3)
    edit.append(cut, "A", 3, 4, 0)


@plant("came-back-short", "local-kip101-1", Kind.NOT_REPLICATED)
def came_back_short(edit: Edit) -> None:
    """A kill loses nothing, and yet A's log is shorter after it."""
    edit.change(edit.find(Source.BROKER, "recovered", "A"), log_end_offset=3)
    follower = edit.find(Source.BROKER, "follower", "A", nth=1)
    edit.change(follower, log_end_offset=3)
    cut = edit.find(Source.BROKER, "truncate", "A", nth=1)
    edit.change(cut, **{"from": 3}, to=3, end=3)
    edit.append(cut, "A", 3, 4, 0)


@plant("came-back-short-by-power-lawful", "local-kip101-1")
def came_back_short_by_power(edit: Edit) -> None:
    came_back_short.edit(edit)
    edit.loses_power("A")


@plant("joined-without-it", "local-kip101-1", Kind.NOT_REPLICATED, Kind.UNCHECKED)
def joined_without(edit: Edit) -> None:
    """B loses m2 with its power, and is let into the ISR before it has copied it again."""
    edit.loses_power("B")
    edit.change(edit.find(Source.BROKER, "recovered", "B"), log_end_offset=3, high_watermark=3)
    edit.change(edit.find(Source.BROKER, "follower", "B"), log_end_offset=3, high_watermark=3)
    edit.change(edit.find(Source.BROKER, "truncate", "B"), **{"from": 3}, to=3, end=3)
    links = [line for line in edit.all(Source.FABRIC, "fetch", offset=4) if line["value"]["link"] == ["B", "A"]]
    edit.change(links[0], offset=3)
    edit.change(edit.find(Source.BROKER, "append", "B", base=4), base=3)


@plant("joined-with-it-lawful", "local-kip101-1")
def joined_with(edit: Edit) -> None:
    """B loses m2 with its power, and copies it before it joins the ISR."""
    joined_without.edit(edit)
    edit.change(edit.find(Source.BROKER, "append", "B", base=3, end=5), base=4)
    fetch = edit.find(Source.FABRIC, "fetch", offset=3, nth=-1)
    append = edit.append(fetch, "B", 3, 4, 0)
    edit.fetch(append, "B", "A", 4)


# --- conditions of the proof, each alone -------------------------------------------------------------------------
@plant("copy-out-of-the-isr-cut-by-a-bug", "sim-last-standing", Kind.LOST, Kind.NOT_REPLICATED)
def cut_by_a_bug(edit: Edit) -> None:
    """The last of the ISR loses m1 with its power; the copy of C, outside the ISR, was cut before by a bug."""
    cut = edit.event(
        acked(edit, "m1"), "C", "truncate", **{"from": 2}, to=0, end=0, reason="out-of-range", epoch=0
    )
    edit.insert(cut, Source.BROKER, "checkpoint", "C", **place(edit), what="epochs", content=[])
    edit.change(edit.find(Source.BROKER, "recovered", "C"), log_end_offset=0, epochs=[])
    edit.change(edit.find(Source.BROKER, "follower", "C", nth=1), log_end_offset=0)
    edit.change(edit.find(Source.BROKER, "truncate", "C", nth=2), **{"from": 0}, reason="high-watermark")


@plant(
    "let-in-without-it-before-an-unclean-election",
    "local-appendix-a",
    Kind.LOST,
    Kind.NOT_REPLICATED,
    Kind.WRONG_ISR,
)
def let_in_without(edit: Edit) -> None:
    """B, which is down and lacks m3, is in the ISR for a moment; later it is elected uncleanly."""
    acked = edit.find(Source.CLIENT, "produce", type="ok", name="m3")
    first = edit.find(Source.METADATA, "state", epoch=6)
    edit.renumber(first, 2)
    state = edit.find(Source.METADATA, "state", epoch=5)
    joined = edit.again(state, after=acked, isr=["A", "B"], version=6)
    told = edit.event(joined, "A", "isr", isr=[edit.node_id("A"), edit.node_id("B")], version=6, epoch=5)
    left = edit.again(state, after=told, isr=["A"], version=7)
    edit.event(left, "A", "isr", isr=[edit.node_id("A")], version=7, epoch=5)


@plant("copy-of-an-unknown-record", "local-kip101-2", Kind.UNCHECKED, Kind.WRONG_HIGH_WATERMARK)
def unknown_copy(edit: Edit) -> None:
    """Nobody can tell what B copied: it never said whom it followed."""
    edit.drop(edit.find(Source.BROKER, "follower", "B"))
