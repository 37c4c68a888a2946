"""
Groups of which a majority has what is committed, and whose metadata are polled: what nothing excuses, and twins.

made-group: of A, B and C, A leads term 1 and acknowledges m1.0 to m1.2 at 1 to 3; B leads term 3, and acknowledges
m2.0 and m2.1 at 4 and 5. All logs hold all of it. So it is of four and of five. Nodes report nothing.
"""

from __future__ import annotations

from typing import Any, Final

from harness.logs.record import sent_digest
from harness.model import Kind, Source
from harness.target.traits import Commit, Promise
from tests.checkers.plants.changes import Change, each_of, last_read
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


def held_by(commit: Commit) -> Change:
    """Return a change in which these replicas have what is committed."""

    def change(edit: Edit) -> None:
        edit.lines[0]["value"]["traits"]["commit"] = commit.value

    return change


# --- promised by the leader alone ----------------------------------------------------------------------------
def by_leader(name: str, *changes: Change) -> list[Any]:
    """Return a plant in which all in sync promised what is gone, and its twin, in which the leader alone did."""
    bad, good = (each_of(held_by(commit), *changes) for commit in (Commit.IN_SYNC, Commit.LEADER))
    return twin(name, GROUP, bad, good, Kind.LOST, lawful=(Kind.UNPROMISED,))


BY_LEADER = [
    *by_leader("in-sync-gone-by-no-fault", gone(5)),
    *by_leader("in-sync-gone-by-kills", gone(5), hit("kill", "ABC", "down")),
    *by_leader("in-sync-gone-by-a-pause", gone(4), hit("pause", "B", "paused")),
]


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
