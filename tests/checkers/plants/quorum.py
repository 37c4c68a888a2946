"""
Groups of which a majority has what is committed, and whose metadata are polled: what nothing excuses, and twins.

made-group: of A, B and C, A leads term 1 and acknowledges m1.0 to m1.2 at 1 to 3; B leads term 3, and acknowledges
m2.0 and m2.1 at 4 and 5. All logs hold all of it. So it is of four and of five. Nodes report nothing.
"""

from __future__ import annotations

from typing import Any, Final

from harness.logs.record import sent_digest
from harness.model import Kind, Source
from harness.target.traits import Promise
from tests.checkers.plants.changes import Change, delete_before, each_of, last_read, nothing
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant
from tests.checkers.polling import poll

GROUP: Final = "made-group"
FOUR: Final = "made-group-of-four"
FIVE: Final = "made-group-of-five"
LAST: Final = "m2.1"


# --- parts of changes ----------------------------------------------------------------------------------------
def answer(edit: Edit, value: str) -> Line:
    """Return the acknowledgement of a value."""
    return edit.find(Source.CLIENT, "produce", type="ok", value=value)


def question(edit: Edit, value: str) -> Line:
    """Return the request that sent a value."""
    return edit.find(Source.CLIENT, "produce", type="invoke", value=value)


def replicas(edit: Edit) -> str:
    """Return the members of the group."""
    return "".join(edit.lines[0]["value"]["replicas"])


def gone(offset: int, nodes: str = "") -> Change:
    """Return a change in which these nodes, or all, lack what was at an offset, and so does the last read."""

    def change(edit: Edit) -> None:
        for node in nodes or replicas(edit):
            edit.drop_batch(node, offset)
        if not nodes or "B" in nodes:
            read = last_read(edit)["value"]
            read["records"] = [each for each in read["records"] if each[0] != offset]

    return change


def hit(name: str, nodes: str, effect: str, after: str = LAST, *, asked: bool = False, probe: str = "") -> Change:
    """Return a change in which a fault hits nodes after a value was acknowledged, or before it was asked for."""

    def change(edit: Edit) -> None:
        anchor = edit.lines[edit.at(question(edit, after)) - 1] if asked else answer(edit, after)
        band = "down" if effect in ("down", "power-lost", "pages-lost") else "mark"
        done = edit.fault(anchor, name, *nodes, effect=effect, band=band)
        if probe:
            edit.change(done, probe=probe)
        if band == "down":
            step = edit.lines[edit.at(done) + 1]
            edit.fault(step, "restart", *nodes, heals=["down", "power-lost", "pages-lost"])

    return change


def power(nodes: str, after: str = LAST, *, asked: bool = False) -> Change:
    """Return a change in which nodes lose their power and restart."""
    return hit("power-loss", nodes, "power-lost", after, asked=asked)


def loses_power(edit: Edit, after: Line, nodes: str) -> None:
    """Let nodes lose their power after a line, and restart."""
    lost = edit.fault(after, "power-loss", *nodes, effect="power-lost", band="down")
    edit.fault(edit.lines[edit.at(lost) + 1], "restart", *nodes, heals=["down", "power-lost"])


def on_disk(edit: Edit) -> None:
    """Let the promise be on disk."""
    edit.lines[0]["value"]["traits"]["promise"] = Promise.DISK.value


def look(after: str, leader: str | None, term: int, members: str = "") -> Change:
    """Return a change in which a look at the metadata follows an acknowledgement."""

    def change(edit: Edit) -> None:
        line = edit.find(Source.METADATA, "state", nth=0)
        who = list(members or line["value"]["isr"])
        edit.again(line, after=answer(edit, after), leader=leader, epoch=term, isr=who)
        for number, each in enumerate(edit.all(Source.METADATA, "state")):
            each["value"]["version"] = number

    return change


def also_sent(edit: Edit, value: str, offset: int | None, after: Line) -> Line:
    """Let another client send a value, which is acknowledged at an offset or has no answer; return the end."""
    twin = edit.again(question(edit, LAST), after=after, name="m3", value=value, digest=sent_digest(value))
    twin["process"] = "client-9"
    end = edit.again(twin, **({"error": "no answer"} if offset is None else {"offset": offset}))
    end["type"] = "info" if offset is None else "ok"
    del end["value"]["digest"]
    return end


def failed(value: str) -> Change:
    """Return a change in which a value's produce surely failed, so that its offset may stay empty."""

    def change(edit: Edit) -> None:
        line = answer(edit, value)
        line["type"] = "fail"
        del line["value"]["offset"]
        line["value"]["error"] = "refused"

    return change


def twin(name: str, run: str, bad: Change, good: Change, *kinds: Kind, lawful: tuple[Kind, ...] = ()) -> list[Any]:
    """Return a plant and its lawful twin."""
    return [plant(name, run, *kinds)(bad), plant(f"{name}-lawful", run, *lawful)(good)]


# --- promised in memory --------------------------------------------------------------------------------------
LOST: Final = Kind.LOST
LAWFUL: Final = (Kind.PERMITTED,)
IN_MEMORY = [
    *twin("quorum-gone-by-no-fault", GROUP, gone(5), each_of(gone(5), power("C")), LOST, lawful=LAWFUL),
    *twin(
        "quorum-gone-by-kills",
        GROUP,
        each_of(gone(5), hit("kill", "ABC", "down")),
        each_of(gone(5), hit("flush-error", "A", "pages-lost")),
        LOST,
        lawful=LAWFUL,
    ),
    *twin(
        "quorum-gone-by-an-earlier-power-loss",
        GROUP,
        each_of(gone(5), power("ABC", asked=True)),
        each_of(gone(4), power("A", "m2.0")),
        LOST,
        lawful=LAWFUL,
    ),
    *twin(
        "quorum-gone-though-flushed",
        GROUP,
        each_of(gone(5), power("ABC"), hit("flush", "ABC", "none")),
        each_of(gone(5), power("ABC"), hit("flush", "ABC", "none", asked=True)),
        LOST,
        lawful=LAWFUL,
    ),
    *twin(
        "quorum-gone-though-two-of-three-flushed",
        GROUP,
        each_of(gone(5), power("BC"), hit("flush", "BC", "none")),
        each_of(gone(5), power("BC"), hit("flush", "B", "none")),
        LOST,
        lawful=LAWFUL,
    ),
    *twin(
        "quorum-gone-by-one-power-loss-of-four",
        FOUR,
        each_of(gone(5), power("D")),
        each_of(gone(5), power("CD")),
        LOST,
        lawful=LAWFUL,
    ),
    *twin("quorum-gone-by-no-fault-of-five", FIVE, gone(5), each_of(gone(5), power("E")), LOST, lawful=LAWFUL),
    *twin(
        "quorum-gone-as-a-member-was-moved",
        GROUP,
        each_of(gone(5), look(LAST, "B", 3, "ABD")),
        each_of(gone(5), look(LAST, "B", 3, "ABD"), hit("kill", "A", "down", "m1.0")),
        LOST,
        lawful=LAWFUL,
    ),
    *twin(
        "quorum-gone-as-the-group-grew",
        GROUP,
        each_of(gone(5), look(LAST, "B", 3, "ABCDE")),
        each_of(gone(5), look(LAST, "B", 3, "ABCDE"), hit("pause", "C", "paused", "m1.0")),
        LOST,
        lawful=LAWFUL,
    ),
]


# --- promised on disk ----------------------------------------------------------------------------------------
ON_DISK = [
    *twin(
        "quorum-on-disk-gone-by-power",
        GROUP,
        each_of(on_disk, gone(5), power("ABC")),
        each_of(on_disk, gone(5), hit("lose-disk", "C", "disk-lost")),
        LOST,
        lawful=LAWFUL,
    ),
    *twin(
        "quorum-on-disk-gone-by-a-failed-flush",
        GROUP,
        each_of(on_disk, gone(5), hit("flush-error", "AB", "pages-lost")),
        each_of(on_disk, gone(5), hit("delete-active-segment", "B", "log-cut")),
        LOST,
        lawful=LAWFUL,
    ),
    *twin(
        "quorum-on-disk-gone-by-a-flip-elsewhere",
        GROUP,
        each_of(
            on_disk,
            gone(5),
            hit("bit-rot", "ABC", "bit-rot", probe="t-0/1 at byte 9: 0x00 -> 0x01, batch of offsets 1 to 4"),
        ),
        each_of(on_disk, gone(5), hit("bit-rot", "A", "bit-rot", probe="1.blk at byte 9")),
        LOST,
        lawful=LAWFUL,
    ),
]


# --- what readers were shown ---------------------------------------------------------------------------------
def _shown(value: str = "m3.0", *, then: str = "") -> Change:
    """Return a change in which a consumer is shown a record without an answer, which no log holds later."""

    def change(edit: Edit) -> None:
        end = also_sent(edit, value, None, answer(edit, LAST))
        shown = poll(edit, end, "B", [[6, value]], 7)
        if then:
            loses_power(edit, shown, then)

    return change


def _shown_with_acks_1(*, then: str = "") -> Change:
    """Return a change in which the record that is shown was acknowledged by its leader alone."""

    def change(edit: Edit) -> None:
        _shown(then=then)(edit)
        for line in edit.produces("m3"):
            line["value"]["acks"] = 1
            if line["type"] == "info":
                line["type"], line["value"]["offset"] = "ok", 6
                del line["value"]["error"]

    return change


def _shown_and_replaced(*, then: str = "") -> Change:
    """Return a change in which another record, without an answer too, stands at the end where one was shown."""

    def change(edit: Edit) -> None:
        _shown(then=then)(edit)
        also_sent(edit, "m4.0", None, edit.lines[edit.at(edit.find(Source.RUNNER, "healed")) - 1])
        for node in replicas(edit):
            held = {"base": 6, "last": 6, "records": [[6, sent_digest("m4.0"), "m4.0"]]}
            edit.put_batch(node, edit.batch_at(node, 5), **held)
        read = last_read(edit)["value"]
        read["records"].append([6, "m4.0"])
        read["high_watermark"] = 7

    return change


READ_LOST: Final = Kind.READ_LOST
READ = [
    *twin("quorum-read-and-gone", GROUP, _shown(), _shown(then="A"), READ_LOST, lawful=LAWFUL),
    *twin(
        "quorum-read-and-gone-with-acks-1",
        GROUP,
        _shown_with_acks_1(),
        _shown_with_acks_1(then="C"),
        READ_LOST,
        Kind.UNPROMISED,
        lawful=(*LAWFUL, Kind.UNPROMISED),
    ),
    *twin(
        "quorum-read-and-replaced",
        GROUP,
        _shown_and_replaced(),
        _shown_and_replaced(then="B"),
        READ_LOST,
        Kind.INCONSISTENT_OFFSETS,
        lawful=LAWFUL,
    ),
]


# --- two at one offset ---------------------------------------------------------------------------------------
def _both(*, between: str = "", later: str = "", backwards: bool = False) -> Change:
    """Return a change in which m3.0 is acknowledged where m2.1 was; power is lost between them, or later."""

    def change(edit: Edit) -> None:
        end = answer(edit, LAST)
        while between and end["f"] != "healed":
            end = edit.lines[edit.at(end) + 1]
        end = edit.lines[edit.at(end) - 1] if between else end
        told = also_sent(edit, "m3.0", 5, end)
        if backwards:
            edit.move(answer(edit, LAST), after=told)
        if later:
            loses_power(edit, told, later)
        for node in replicas(edit):
            edit.rewrite(node, 5, "m3.0")
        last_read(edit)["value"]["records"][-1][1] = "m3.0"

    return change


FALSE: Final = Kind.FALSE_ACK
TWICE = [
    *twin(
        "quorum-acknowledged-two",
        GROUP,
        _both(),
        each_of(power("C"), _both(between="C")),
        FALSE,
        LOST,
        lawful=LAWFUL,
    ),
    *twin(
        "quorum-acknowledged-two-before-a-power-loss",
        GROUP,
        _both(later="C"),
        each_of(power("A"), _both(between="A")),
        FALSE,
        Kind.PERMITTED,
        lawful=LAWFUL,
    ),
    *twin(
        "quorum-acknowledged-two-in-another-order",
        GROUP,
        _both(backwards=True),
        each_of(power("BC"), _both(between="BC")),
        FALSE,
        LOST,
        lawful=LAWFUL,
    ),
]


# --- divergence ----------------------------------------------------------------------------------------------
FLIP: Final = "t-0/1 at byte 9: 0x00 -> 0x01, batch of offsets 4 to 4"


def _other(node: str, offset: int) -> Change:
    """Return a change in which a node holds a record without an answer in place of another."""

    def change(edit: Edit) -> None:
        also_sent(edit, "m3.0", None, answer(edit, LAST))
        edit.rewrite(node, offset, "m3.0")

    return change


DIVERGED = [
    *twin(
        "quorum-diverged-by-power",
        GROUP,
        each_of(_other("C", 4), power("ABC", "m2.0")),
        power("ABC", "m2.0"),
        Kind.DIVERGED,
    ),
    *twin("quorum-diverged-by-no-fault", GROUP, _other("A", 4), nothing, Kind.DIVERGED),
    *twin(
        "quorum-diverged-beside-a-flip",
        GROUP,
        each_of(_other("C", 5), hit("bit-rot", "C", "bit-rot", probe=FLIP)),
        each_of(_other("C", 4), hit("bit-rot", "C", "bit-rot", probe=FLIP)),
        Kind.DIVERGED,
    ),
]


# --- polled metadata -----------------------------------------------------------------------------------------
TWO: Final = Kind.TWO_LEADERS
POLLED = [
    *twin("polled-two-leaders-of-a-term", GROUP, look(LAST, "C", 3), look(LAST, "C", 9), TWO),
    *twin("polled-two-leaders-of-the-first-term", GROUP, look("m1.0", "B", 1), look("m1.0", None, 1), TWO),
    *twin(
        "polled-two-leaders-with-none-between",
        GROUP,
        each_of(look(LAST, "A", 3), look("m2.0", None, 3)),
        each_of(look(LAST, "B", 3), look("m2.0", None, 3)),
        TWO,
    ),
    *twin(
        "polled-term-that-falls",
        GROUP,
        look(LAST, "B", 2),
        each_of(look(LAST, "C", 7, "ABD"), look("m1.2", "D", 2, "ABCD")),
        Kind.WRONG_LEADER,
    ),
]


# --- offsets that need not follow each other -----------------------------------------------------------------
HOLE: Final = Kind.HOLE
HOLES = [
    *twin("gap-of-one-replica", GROUP, gone(2, "C"), each_of(gone(2), failed("m1.1")), HOLE),
    *twin("gap-of-the-leader", GROUP, gone(2, "B"), each_of(gone(4), failed("m2.0")), HOLE, LOST),
    *twin(
        "gap-of-an-acknowledged-record",
        GROUP,
        gone(2),
        each_of(gone(2), gone(3), failed("m1.1"), failed("m1.2")),
        LOST,
    ),
    *twin(
        "gap-beside-a-flip",
        GROUP,
        each_of(gone(3, "C"), hit("bit-rot", "C", "bit-rot", probe=FLIP)),
        each_of(gone(4, "C"), hit("bit-rot", "C", "bit-rot", probe=FLIP)),
        HOLE,
    ),
]


# --- logs that begin with 1 ----------------------------------------------------------------------------------
def _starts(nodes: str, read: int) -> Change:
    """Return a change in which the logs of nodes and the last read begin later."""

    def change(edit: Edit) -> None:
        for node in nodes:
            for offset in range(1, 3):
                edit.drop_batch(node, offset)
            edit.change(edit.snapshot(node), log_start_offset=3)
        shown = last_read(edit)["value"]
        shown["start"] = read
        shown["records"] = [each for each in shown["records"] if each[0] >= read]

    return change


def _without_the_first(edit: Edit) -> None:
    """The last read does not show the first record."""
    del last_read(edit)["value"]["records"][0]


EARLY: Final = Kind.DELETED_EARLY
BEGINS = [
    *twin("first-log-that-starts-later", GROUP, _starts("C", 1), nothing, EARLY),
    *twin("first-logs-that-all-start-later", GROUP, _starts("ABC", 3), nothing, EARLY, LOST),
    *twin("first-record-that-a-read-skips", GROUP, _without_the_first, nothing, Kind.WRONG_READ, LOST),
]


# --- two stores of a replica ---------------------------------------------------------------------------------
def _stored(**other: str) -> Change:
    """Return a change in which each node has a Raft log of its records, of these nodes with another value at 4."""

    def change(edit: Edit) -> None:
        also_sent(edit, "m3.0", None, answer(edit, LAST))
        for node in replicas(edit):
            values = [other[node]] if node in other else ["m2.0"]
            for batch in edit.batches(node):
                for value in values if batch["value"]["base"] == 4 else ("",):
                    copy = edit.put_batch(node, batch, store="raft")
                    if value:
                        copy["value"]["records"] = [[4, sent_digest(value), value]]

    return change


def _raft_of_others(node: str) -> Change:
    """Return a change in which one node alone has a Raft log, with another record of offset 4."""

    def change(edit: Edit) -> None:
        also_sent(edit, "m3.0", None, answer(edit, LAST))
        copy = edit.put_batch(node, edit.batch_at(node, 4), store="raft")
        copy["value"]["records"] = [[4, sent_digest("m3.0"), "m3.0"]]

    return change


def _twice_stored(node: str) -> Change:
    """Return a change in which a node's Raft log also has an older record of offset 4."""

    def change(edit: Edit) -> None:
        _stored()(edit)
        copy = edit.put_batch(node, edit.batch_at(node, 4), store="raft")
        copy["value"]["records"] = [[4, sent_digest("m3.0"), "m3.0"]]

    return change


def _without_served(offset: int) -> Change:
    """Return a change in which the served logs and the read begin after an offset that was deleted on purpose."""

    def change(edit: Edit) -> None:
        delete_before(edit, offset + 1)
        for node in replicas(edit):
            edit.change(edit.snapshot(node), log_start_offset=offset + 1)
        shown = last_read(edit)["value"]
        shown["start"] = offset + 1
        shown["records"] = [each for each in shown["records"] if each[0] > offset]

    return change


STORES: Final = Kind.STORES_DIFFER
TWO_STORES = [
    *twin("stores-of-one-replica-differ", GROUP, _stored(A="m3.0"), _stored(), STORES),
    *twin(
        "stores-of-two-replicas-differ",
        GROUP,
        each_of(_stored(C="m3.0"), _without_served(4)),
        each_of(_stored(), _without_served(4)),
        STORES,
    ),
    *twin("stores-of-one-replica-differ-in-its-log-alone", GROUP, _raft_of_others("C"), _stored(), STORES),
    *twin("stores-of-the-leader-differ", GROUP, _stored(B="m3.0"), _twice_stored("B"), STORES),
    *twin(
        "stores-differ-beside-a-flip",
        GROUP,
        each_of(_stored(C="m3.0"), hit("bit-rot", "B", "bit-rot", probe=FLIP)),
        each_of(_stored(C="m3.0"), hit("bit-rot", "C", "bit-rot", probe=FLIP)),
        STORES,
    ),
]
