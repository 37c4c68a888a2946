"""What brokers, fabric and ZooKeeper's watch recorded contradicts itself; and what only looks so."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from harness.model import Kind, Source
from tests.checkers.plants.changes import BROKER, METADATA, STATE, Change, set_line, without_state
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant

UNKNOWN: Final = Kind.UNCHECKED
FABRIC: Final = Source.FABRIC


def _drop(source: Source, f: str, process: str | None = None, *, nth: int = 0, **value: Any) -> Change:
    return lambda edit: edit.drop(edit.find(source, f, process, nth=nth, **value))


def _of(line: dict[str, Any], source: Source, f: str, process: str | None = None, **value: Any) -> Change:
    """Return a change that sets keys of the first line whose value has these keys."""
    return lambda edit: edit.change(edit.find(source, f, process, **line), **value)


def _answered_late(edit: Edit) -> None:
    """A asked twice, and a hold kept B's answer to one of them; it comes when A has asked about a later epoch."""
    edit.again(edit.find(FABRIC, "epoch-question", link=["A", "B"], leader_epoch=7))
    question = edit.find(FABRIC, "epoch-question", link=["A", "B"], leader_epoch=9)
    answer = edit.find(FABRIC, "epoch-answer", link=["A", "B"], leader_epoch=4)
    edit.again(answer, after=question, leader_epoch=7)


def _answered_when_it_goes_on(paused: str, *, late_ms: int = 20) -> Change:
    """Return a change in which B asks C twice, a node is paused, and C answers the first question later."""

    def change(edit: Edit) -> None:
        first = edit.find(FABRIC, "epoch-question", link=["B", "C"], leader_epoch=3)
        second = edit.again(first, leader_epoch=1)
        away = edit.fault(first, "pause", paused, effect="paused", band="paused")
        gone_on = edit.fault(edit.lines[edit.at(away) + 1], "resume", paused, heals=["paused"])
        answer = edit.again(edit.find(FABRIC, "epoch-answer", link=["B", "C"]), after=gone_on, leader_epoch=3)
        for line in edit.lines[edit.at(answer) :]:
            line["time_ns"] += late_ms * 1_000_000
        edit.move(second, after=first)

    return change


def _sent_once_looked_up(edit: Edit, *, of: str, offset: int = 0) -> None:
    """C follows A, what a node asks ZooKeeper is held, and C's fetch comes when it has followed B for long."""
    for line in (edit.find(FABRIC, "held", offset=0), edit.find(FABRIC, "fetch", link=["C", "A"], nth=1)):
        edit.drop(line)
    hold, held, release = (edit.find(FABRIC, f, link=["C", "A"]) for f in ("hold", "held", "release"))
    for line in (hold, held, release):
        edit.change(line, link=[of, "metadata"], api="metadata-request")
    edit.move(hold, after=edit.find(BROKER, "follower", "C", epoch=1))
    edit.change(held, offset=None).move(held, after=hold)
    edit.move(release, after=edit.find(BROKER, "follower", "C", epoch=3))
    fetch = edit.find(FABRIC, "fetch", link=["C", "A"])
    edit.change(fetch, offset=offset).move(fetch, after=release)


# --- the fabric against brokers ----------------------------------------------------------------------------------
SIGHTS = [
    plant("sights-append-without-a-fetch", "local-kip101-1", UNKNOWN)(_drop(FABRIC, "fetch", offset=3)),
    plant("sights-fetch-of-no-leader", "sim-clean", UNKNOWN)(set_line(FABRIC, "fetch", nth=-1, link=["A", "B"])),
    plant("sights-fetch-beyond-the-end", "sim-clean", UNKNOWN)(set_line(FABRIC, "fetch", nth=-1, offset=5)),
    plant("sights-mark-without-a-fetch", "sim-clean", UNKNOWN)(set_line(FABRIC, "fetch", nth=-1, offset=3)),
    plant("sights-answer-without-a-fetch", "kafka-kip101-1", UNKNOWN)(_drop(FABRIC, "fetch", offset=4)),
    plant("sights-answer-that-no-log-gives", "sim-clean", UNKNOWN)(
        set_line(FABRIC, "epoch-answer", nth=-1, end_offset=4)
    ),
    plant("sights-answer-of-an-error", "local-kip101-1", UNKNOWN)(
        set_line(FABRIC, "epoch-answer", nth=-1, error=74)
    ),
    plant("sights-question-of-another-epoch", "local-kip101-1", UNKNOWN)(
        set_line(FABRIC, "epoch-question", nth=-1, leader_epoch=1)
    ),
    plant("sights-fetch-once-its-leader-is-looked-up-lawful", "sim-clean")(partial(_sent_once_looked_up, of="C")),
    plant("sights-fetch-that-waits-for-another-s-look-up", "sim-clean", UNKNOWN)(
        partial(_sent_once_looked_up, of="B")
    ),
    plant("sights-fetch-that-no-look-up-held-up", "sim-clean", UNKNOWN)(
        partial(_sent_once_looked_up, of="C", offset=3)
    ),
    plant("sights-fetch-seen-twice-lawful", "local-kip101-1")(
        lambda edit: edit.again(edit.find(FABRIC, "fetch", offset=3))
    ),
    plant("sights-another-refusal-lawful", "sim-clean")(_of({"error": 74}, FABRIC, "epoch-answer", error=75)),
    plant("sights-answer-to-an-earlier-question-lawful", "sim-clean-8")(_answered_late),
    plant("sights-answer-to-an-earlier-question", "sim-clean", UNKNOWN)(_answered_when_it_goes_on("A")),
    plant("sights-answer-under-way-as-it-asked-again-lawful", "sim-clean")(
        _answered_when_it_goes_on("A", late_ms=1)
    ),
    plant("sights-answer-of-one-that-was-paused-lawful", "sim-clean")(_answered_when_it_goes_on("C")),
    plant("sights-question-never-answered-lawful", "sim-clean")(_drop(FABRIC, "epoch-answer", error=74)),
]


# --- states in ZooKeeper -----------------------------------------------------------------------------------------
def _told_isr(edit: Edit, isr: list[str]) -> Line:
    line = edit.find(FABRIC, "learned")
    edit.change(line, isr=isr)
    return line


STATES = [
    plant("states-one-missing-in-a-simulated-run", "sim-clean", UNKNOWN)(without_state(4)),
    plant("states-one-unseen-for-long", "kafka-kip101-1", UNKNOWN)(without_state(5)),
    plant("states-one-unseen-for-a-moment-lawful", "kafka-kip101-1")(without_state(3)),
    plant("states-command-of-another-isr", "kafka-kip101-1", UNKNOWN)(lambda edit: _told_isr(edit, ["B"])),
    plant("states-command-in-another-order-lawful", "kafka-kip101-1")(lambda edit: _told_isr(edit, ["A", "B"])),
    plant("states-write-of-nothing", "kafka-kip101-1", UNKNOWN)(set_line(METADATA, STATE, nth=-1, isr=["A"])),
]


# --- registrations -----------------------------------------------------------------------------------------------
def _killed_as_it_registers(edit: Edit) -> None:
    """A registers again when it returns, and is killed before it reports that."""
    registered = edit.find(BROKER, "member", "A", nth=-1)
    shown = edit.find(METADATA, "members", nth=-1)
    again = edit.again(registered, after=edit.find(BROKER, "high-watermark", nth=-1), incarnation=99)
    assert edit.at(shown) < edit.at(again)


def _power_lost_before_it_hears(edit: Edit) -> None:
    """C loses its power before it hears that it registered, and takes that registration over when it returns."""
    registered = edit.find(BROKER, "member", "C")
    edit.change(registered, taken_over=True)
    edit.restart(edit.lines[edit.at(registered) - 1], "C", down="power-loss", recovered=0)


def _killed_before_it_hears(edit: Edit) -> None:
    """C's session ends, C asks for a new one, and is killed; ZooKeeper is late and names it all the same."""
    killed = edit.find(Source.NEMESIS, "kill", nodes=["C"])
    edit.insert(killed, METADATA, "members", "metadata", before=True, nodes=["A", "B", "D"])
    restarted = edit.find(Source.NEMESIS, "restart", nodes=["C"])
    edit.insert(restarted, METADATA, "members", "metadata", before=True, nodes=["A", "B", "C", "D"])


REGISTRATIONS = [
    plant("registrations-one-not-reported", "local-kip101-1", UNKNOWN)(_drop(BROKER, "member", "C")),
    plant("registrations-one-taken-over-from-nobody", "local-kip101-1", UNKNOWN)(
        set_line(BROKER, "member", "C", taken_over=True)
    ),
    plant("registrations-one-taken-over-that-it-never-heard-of-lawful", "local-kip101-1")(
        _power_lost_before_it_hears
    ),
    plant("registrations-seen-as-another", "local-kip101-1", UNKNOWN)(
        set_line(BROKER, "member", "C", incarnation=294)
    ),
    plant("registrations-seen-twice", "sim-clean", UNKNOWN)(
        lambda edit: (line := edit.find(BROKER, "elected"))["value"]["saw"].append(line["value"]["saw"][0])
    ),
    plant("registrations-lack-the-leader", "sim-clean", UNKNOWN)(
        lambda edit: edit.find(BROKER, "elected")["value"]["saw"].remove([edit.node_id("A"), 13])
    ),
    plant("registrations-never-left", "sim-clean", UNKNOWN)(
        set_line(METADATA, "members", nth=1, nodes=["A", "B", "C"])
    ),
    plant("registrations-lack-a-node-in-the-end", "sim-clean", UNKNOWN)(
        set_line(METADATA, "members", nth=-1, nodes=["A", "B", "C"])
    ),
    plant("registrations-never-named-a-controller", "local-kip101-1", UNKNOWN)(_drop(METADATA, "controller")),
    plant("registrations-office-before-the-first", "local-kip101-1", UNKNOWN)(
        set_line(BROKER, "controller", epoch=0)
    ),
    plant("registrations-seen-late-lawful", "sim-clean")(
        lambda edit: edit.find(BROKER, "elected")["value"]["saw"].remove([edit.node_id("D"), 6])
    ),
    plant("registrations-anew-of-one-that-was-killed-lawful", "sim-clean")(_killed_before_it_hears),
    plant("registrations-anew-in-one-process-lawful", "sim-clean")(_killed_as_it_registers),
]


# --- one broker's story ------------------------------------------------------------------------------------------
STORIES = [
    plant("chain-started-missing", "local-kip101-1", UNKNOWN)(_drop(BROKER, "started", "A", nth=1)),
    plant("chain-recovered-missing", "sim-clean", UNKNOWN)(_drop(BROKER, "recovered", "C")),
    plant("chain-cut-missing", "local-kip101-1", UNKNOWN)(_drop(BROKER, "truncate", "B")),
    plant("chain-cut-twice", "local-kip101-1", UNKNOWN)(
        lambda edit: edit.again(edit.find(BROKER, "truncate", "B"))
    ),
    plant("chain-kept-of-nobody", "sim-clean", UNKNOWN)(set_line(BROKER, "follower", "C", kept=True)),
    plant("chain-resumed-after-it-was-ready", "sim-clean", UNKNOWN)(set_line(BROKER, "leader", "B", resumed=True)),
    plant("chain-checkpoint-missing", "sim-clean", UNKNOWN)(_drop(BROKER, "checkpoint", "C", nth=-2)),
    plant("chain-checkpoint-of-no-append", "sim-clean", UNKNOWN)(
        set_line(BROKER, "checkpoint", "B", nth=-1, content=[[0, 0], [1, 2], [4, 2]])
    ),
    plant("chain-checkpoint-not-flushed", "local-kip101-1", UNKNOWN)(
        _drop(BROKER, "flush", "B", path="log-0/leader-epoch-checkpoint")
    ),
    plant("chain-fenced-by-another", "sim-clean", UNKNOWN)(set_line(BROKER, "fenced", epoch=1)),
    plant("chain-mark-that-stands", "local-kip101-1", UNKNOWN)(
        _of({"to": 4}, BROKER, "high-watermark", "A", to=3)
    ),
    plant("chain-mark-never-had", "sim-clean", UNKNOWN)(
        lambda edit: edit.change(edit.snapshot("B"), high_watermark=1)
    ),
    plant("chain-decisions-in-another-order", "local-kip101-1", UNKNOWN)(
        lambda edit: edit.move(edit.find(BROKER, "elected"), after=edit.find(BROKER, "elected", nth=1))
    ),
    plant("chain-end-that-no-log-has", "local-kip101-1", UNKNOWN)(set_line(BROKER, "append", "A", nth=-1, end=6)),
    plant("chain-cut-of-nothing-missing-lawful", "sim-clean")(_drop(BROKER, "truncate", "C", nth=1)),
    plant("chain-mark-that-lags-lawful", "sim-clean")(
        lambda edit: edit.change(edit.snapshot("B"), high_watermark=3)
    ),
]
