"""Kafka's runs, whose brokers report nothing: what is seen of replicas' logs, and what it proves of a loss."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import Plant, plant

# kafka-kip101-1: B leads, A has m1 (0-3) and m2 (4); A leads, B leads, B loses its power, A leads; B joins.
# kafka-kip101-2: A leads, B has m1 (0) and m2 (1-2); both lose their power, B comes back first, without m2.

both_disks = Plant(
    name="seen-loss-of-both-disks-lawful",
    run="kafka-kip101-2",
    edit=lambda _edit: None,
    kinds=frozenset({Kind.PERMITTED}),
)


def _told(edit: Edit, name: str) -> Line:
    """Return the last acknowledgement of a group of records."""
    return edit.find(Source.CLIENT, "produce", type="ok", nth=-1, name=name)


def _seen(edit: Edit, after: Line, link: str, offset: int) -> Line:
    """Insert a fetch that the fabric sees after a line, and at a later time than it."""
    return edit.fetch(edit.lines[edit.at(after) + 1], link[0], link[1], offset)


# --- a member of the ISR is seen without what was promised -------------------------------------------------------
@plant("seen-cut-and-copied-again", "kafka-kip101-1", Kind.NOT_REPLICATED)
def cut_and_copied_again(edit: Edit) -> None:
    """A cuts m1 to offset 2, and its next fetch shows that it has copied it again."""
    _seen(edit, _told(edit, "m1"), "AB", 2)


@plant("seen-copied-in-two-steps-lawful", "kafka-kip101-1")
def copied_in_two_steps(edit: Edit) -> None:
    _seen(edit, edit.find(Source.FABRIC, "fetched", offset=0), "AB", 2)


@plant("seen-cut-on-a-link-that-was-held-lawful", "kafka-kip101-1")
def cut_on_a_held_link(edit: Edit) -> None:
    """The fetch was sent before m1 was acknowledged, and a hold let it pass later."""
    hold = {"link": ["A", "B"], "api": "fetch", "direction": "request", "from_offset": None}
    frame = {"link": ["A", "B"], "api": "fetch", "direction": "request", "offset": 2}
    told = _told(edit, "m1")
    first = edit.insert(edit.find(Source.FABRIC, "fetched", offset=0), Source.FABRIC, "hold", "fabric", **hold)
    edit.insert(first, Source.FABRIC, "held", "fabric", **frame)
    let = edit.insert(told, Source.FABRIC, "release", "fabric", **hold)
    _seen(edit, let, "AB", 2)


@plant("seen-cut-by-a-power-loss-lawful", "kafka-kip101-1")
def cut_by_a_power_loss(edit: Edit) -> None:
    """B, which lost its power, comes back with less than m1."""
    edit.change(edit.find(Source.FABRIC, "fetch", link=["B", "A"], offset=4), offset=1)
    edit.change(edit.find(Source.FABRIC, "fetched", link=["B", "A"], offset=4), offset=1)


@plant("seen-cut-at-the-edge-of-the-isr-lawful", "kafka-kip101-1")
def cut_at_the_edge_of_the_isr(edit: Edit) -> None:
    """B joined the ISR just now: ZooKeeper's watch does not show whether it was in it already, or still is."""
    _seen(edit, _told(edit, "m3"), "BA", 5)


@plant("seen-fetch-of-a-process-that-ended-lawful", "kafka-kip101-1")
def fetch_of_a_dead_process(edit: Edit) -> None:
    """A fetch of B's last process, from before m2 was written, arrives when B has just been started again."""
    edit.change(edit.lines[0], power_tier="none")
    for line in edit.all(Source.NEMESIS, "power-loss"):
        line["f"], line["value"]["effect"] = "kill", "down"
    _seen(edit, edit.find(Source.NEMESIS, "restart", type="invoke"), "BA", 4)
    edit.change(edit.find(Source.FABRIC, "fetch", link=["B", "A"], offset=4, nth=-1), offset=5)
    edit.drop(edit.find(Source.FABRIC, "fetched", link=["B", "A"], offset=4, nth=-1))


@plant("seen-joining-without-it", "kafka-kip101-1", Kind.NOT_REPLICATED)
def joining_without(edit: Edit) -> None:
    """B joins the ISR before its fetch from below m2 is answered."""
    joined = edit.find(Source.METADATA, "state", nth=-1)
    answer = edit.find(Source.FABRIC, "fetched", link=["B", "A"], offset=4, nth=-1)
    copied = edit.find(Source.FABRIC, "fetch", link=["B", "A"], offset=5, nth=-1)
    edit.move(answer, after=joined).move(copied, after=answer)


@plant("seen-joining-with-an-answer-lawful", "kafka-kip101-1")
def joining_with_an_answer(edit: Edit) -> None:
    """Its fetch was answered, so that B may have m2 when it joins."""
    joined = edit.find(Source.METADATA, "state", nth=-1)
    edit.move(edit.find(Source.FABRIC, "fetch", link=["B", "A"], offset=5, nth=-1), after=joined)


# --- a loss beside a power loss ----------------------------------------------------------------------------------
@plant("seen-cut-before-a-power-loss", "kafka-kip101-2", Kind.LOST, Kind.NOT_REPLICATED)
def cut_before_a_power_loss(edit: Edit) -> None:
    """B cuts m2, and the power loss of both takes the only other copy."""
    _seen(edit, _told(edit, "m2"), "BA", 1)


@plant("seen-cut-and-copied-before-a-power-loss", "kafka-kip101-2", Kind.PERMITTED, Kind.NOT_REPLICATED)
def copied_again_before_a_power_loss(edit: Edit) -> None:
    """B cuts m2 and copies it again: it is the power loss, a second later, that takes it."""
    for line in edit.lines[edit.at(edit.find(Source.NEMESIS, "power-loss")) :]:
        line["time_ns"] += 1_000_000_000
    cut = _seen(edit, _told(edit, "m2"), "BA", 1)
    _seen(edit, cut, "BA", 3)


@plant("seen-copied-before-a-power-loss-lawful", "kafka-kip101-2", Kind.PERMITTED)
def copied_before_a_power_loss(edit: Edit) -> None:
    asked = edit.find(Source.CLIENT, "produce", type="invoke", nth=-1, name="m2")
    _seen(edit, asked, "BA", 2)


@plant("seen-flushed-before-a-power-loss", "kafka-kip101-2", Kind.LOST)
def flushed_before_a_power_loss(edit: Edit) -> None:
    """m2 is durable on B, which comes back without it."""
    edit.fault(_told(edit, "m2"), "flush", "B")


@plant("seen-flushed-and-written-over", "kafka-kip101-2", Kind.LOST)
def flushed_and_written_over(edit: Edit) -> None:
    """Only the final logs show that B came back without what was durable: m3 is acknowledged with acks=1."""
    edit.fault(_told(edit, "m2"), "flush", "B")
    for line in edit.produces("m3"):
        line["value"]["acks"] = 1


@plant("seen-flushed-too-early-lawful", "kafka-kip101-2", Kind.PERMITTED)
def flushed_too_early(edit: Edit) -> None:
    edit.fault(_told(edit, "m1"), "flush", "B")


@plant("seen-loss-beside-a-kill", "kafka-kip101-2", Kind.LOST)
def loss_beside_a_kill(edit: Edit) -> None:
    """Only A loses its power; B is killed, which loses nothing, and leads without m2."""
    for line in edit.all(Source.NEMESIS, "power-loss"):
        edit.change(line, nodes=["A"])
        twin = edit.again(line, nodes=["B"], effect="down")
        twin["f"] = "kill"


@plant("seen-leading-with-it-before-a-power-loss-lawful", "kafka-kip101-2", Kind.PERMITTED)
def led_with_it(edit: Edit) -> None:
    """B is elected before both lose their power: it had m2 then, though its final log lacks it."""
    _elected_before(edit)


@plant("seen-two-records-at-one-offset", "kafka-kip101-2", Kind.LOST, Kind.PERMITTED)
def two_at_one_offset(edit: Edit) -> None:
    """B is elected, and m4 is acknowledged where m2 was, before both lose their power."""
    elected = _elected_before(edit)
    sent = edit.find(Source.CLIENT, "produce", type="invoke", name="m2")
    told = edit.find(Source.CLIENT, "produce", type="ok", name="m2")
    asked = edit.again(sent, after=edit.lines[edit.at(elected) + 1], name="m4", value="m4.0")
    answer = edit.again(told, after=asked, name="m4", value="m4.0", offset=1)
    for line in (asked, answer):
        line["process"] = "client-9"


def _elected_before(edit: Edit) -> Line:
    """Let B be elected once more, between the acknowledgement of m2 and the power loss."""
    for line in edit.lines:
        value = line["value"]
        if line["f"] in ("state", "learned") and value["epoch"] > 0:
            value["epoch"] += 1
            if "version" in value:
                value["version"] += 1
        elif line["f"] == "state" and value["version"] > 0:
            value["version"] += 1
        elif line["f"] == "batch" and value["epoch"] > 0:
            value["epoch"] += 1
        elif line["f"] == "snapshot":
            value["epochs"] = [[epoch + (epoch > 0), start] for epoch, start in value["epochs"]]
    state = edit.find(Source.METADATA, "state")
    return edit.again(state, after=_told(edit, "m2"), leader="B", epoch=1, version=1)


@plant("seen-loss-that-cannot-be-followed", "kafka-kip101-2", Kind.UNCHECKED)
def cannot_be_followed(edit: Edit) -> None:
    """Only B loses its power, and leads without m2 though A was up: no broker reported why."""
    for line in edit.all(Source.NEMESIS, "power-loss"):
        edit.change(line, nodes=["B"])
    edit.drop(*[line for line in edit.all(Source.NEMESIS, "restart") if line["value"]["nodes"] == ["A"]])
