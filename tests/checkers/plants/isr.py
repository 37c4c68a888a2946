"""The ISR: who may be in it, join it and stay, and who may write it."""

from __future__ import annotations

from typing import Any

from harness.model import Kind, Source
from tests.checkers.plants.changes import BROKER, Change, each_of, set_line, set_state, without_state
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant

CONTROLLER, LEADER = Kind.WRONG_CONTROLLER, Kind.WRONG_LEADER
ISR, HIGH_WATERMARK = Kind.WRONG_ISR, Kind.WRONG_HIGH_WATERMARK

STRANGE_1 = plant("isr-no-replica-1", "kafka-kip101-1", ISR)(set_state(0, isr=["B", "A", "C"]))
STRANGE_2 = plant("isr-no-replica-2", "kafka-kip101-2", ISR, Kind.PERMITTED)(set_state(4, isr=["B", "A", "C"]))
STRANGE_3 = plant("isr-no-replica-3", "sim-clean-8", ISR, Kind.FALSE_ACK, Kind.UNCHECKED)(
    lambda edit: edit.change(line := edit.find(BROKER, "leader", "A"), isr=[*line["value"]["isr"], 7])
)
TWICE_1 = plant("isr-member-twice", "kafka-kip101-2", ISR, Kind.PERMITTED)(set_state(4, isr=["B", "A", "A"]))
EMPTY_1 = plant("isr-empty-1", "kafka-kip101-2", ISR, LEADER, Kind.PERMITTED)(set_state(2, isr=[]))
EMPTY_2 = plant("isr-empty-2", "sim-clean-8", ISR, Kind.FALSE_ACK)(set_line(BROKER, "leader", "A", nth=0, isr=[]))
EMPTY_3 = plant("isr-empty-3", "sim-clean-8", ISR, CONTROLLER, LEADER)(set_line(BROKER, "elected", nth=3, isr=[]))
EMPTY_OK = plant("isr-empty-unclean-lawful", "kafka-kip101-2", Kind.PERMITTED)(
    each_of(lambda edit: edit.lines[0]["value"].update(unclean=True), set_state(2, isr=[]))
)


def _isr(edit: Edit, **value: Any) -> Line:
    line = edit.find(BROKER, "isr")
    edit.change(line, **value)
    return line


NEVER_STOOD_1 = plant("isr-never-stood-1", "sim-clean-8", ISR)(
    lambda edit: _isr(edit, isr=[edit.node_id("B"), edit.node_id("C")])
)
NEVER_STOOD_2 = plant("isr-never-stood-2", "local-kip101-1", ISR)(lambda edit: _isr(edit, version=7))
NEVER_STOOD_3 = plant("isr-never-stood-3", "sim-clean", ISR)(
    lambda edit: edit.again(edit.find(BROKER, "isr"), version=40)
)
NOT_LEADING = plant("isr-by-follower", "sim-clean-8", ISR)(
    lambda edit: edit.find(BROKER, "isr").update(process="C")
)
NEVER_STOOD_OK = plant("isr-missed-by-watch-lawful", "local-kip101-2", Kind.PERMITTED)(without_state(1))


MIND_1 = plant("isr-in-the-leaders-mind-1", "local-kip101-1", ISR, Kind.FALSE_ACK)(
    lambda edit: edit.change(edit.find(BROKER, "leader", "B"), isr=[edit.node_id("B")])
)
MIND_2 = plant("isr-in-the-leaders-mind-2", "sim-clean-8", ISR)(
    lambda edit: edit.change(edit.find(BROKER, "leader", "C"), isr=[edit.node_id("C")])
)
MIND_3 = plant("isr-in-the-leaders-mind-3", "sim-clean", ISR)(
    lambda edit: edit.again(edit.find(BROKER, "isr"), isr=[edit.node_id("B")], version=4)
)
MIND_OK = plant("isr-in-another-order-lawful", "local-kip101-1")(
    lambda edit: edit.change(edit.find(BROKER, "leader", "B"), isr=[edit.node_id("A"), edit.node_id("B")])
)
UNWRITTEN_ISR_1 = plant("isr-that-no-leader-wrote-1", "local-kip101-1", ISR)(
    lambda edit: edit.drop(edit.find(BROKER, "isr"))
)
UNWRITTEN_ISR_2 = plant("isr-that-no-leader-wrote-2", "local-kip101-2", ISR, Kind.PERMITTED)(
    lambda edit: edit.drop(edit.find(BROKER, "isr", nth=-1))
)


def _joins_without(edit: Edit) -> None:
    """Drop the copies of who joins the ISR before it joins: its log never reached the high watermark."""
    joined = edit.find(BROKER, "isr")
    before = edit.lines[: edit.at(joined)]
    first = next(
        line for line in reversed(before) if line["f"] == "append" and line["value"]["role"] == "follower"
    )
    later = {"high-watermark", "append"}
    edit.drop(
        first,
        *(each for each in before[edit.at(first) :] if each["process"] == first["process"] and each["f"] in later),
    )


def _lagging(edit: Edit) -> None:
    """Let B lag without a copy, and stay: 10 ms are allowed, and nothing else happens for over 100 ms."""
    edit.lines[0]["value"]["replica_lag_ms"] = 10
    first = edit.find(BROKER, "append", role="leader")
    start = edit.at(first)
    for line in edit.lines[start + 1 :]:
        line["time_ns"] += 400_000_000


def _lag_allowed(edit: Edit) -> None:
    _lagging(edit)
    edit.lines[0]["value"]["replica_lag_ms"] = 1000


JOINS_1 = plant("isr-joins-without-1", "sim-clean", ISR, HIGH_WATERMARK, Kind.NOT_REPLICATED, Kind.UNCHECKED)(
    _joins_without
)
JOINS_2 = plant("isr-joins-without-2", "sim-clean-8", ISR, HIGH_WATERMARK, Kind.NOT_REPLICATED, Kind.UNCHECKED)(
    _joins_without
)
JOINS_3 = plant(
    "isr-joins-without-3",
    "sim-unpromised",
    ISR,
    HIGH_WATERMARK,
    Kind.UNPROMISED,
    Kind.NOT_REPLICATED,
    Kind.UNCHECKED,
)(_joins_without)
LAG_1 = plant("isr-lagging-1", "sim-clean-8", ISR)(_lagging)
LAG_2 = plant("isr-lagging-2", "sim-last-standing", ISR, Kind.LAST_STANDING)(_lagging)
LAG_3 = plant("isr-lagging-3", "sim-returned-unseen", ISR, Kind.RETURNED)(_lagging)
LAG_OK = plant("isr-lagging-lawful", "sim-clean-8")(_lag_allowed)
LAG_OK_2 = plant("isr-lagging-2-lawful", "sim-last-standing", Kind.LAST_STANDING)(_lag_allowed)


@plant("joined-before-it-tells-of-its-copy-lawful", "local-kip101-2", Kind.PERMITTED)
def told_late(edit: Edit) -> None:
    """A copies what B committed and joins the ISR; its word of the copy comes after ZooKeeper's state."""
    state = edit.find(Source.METADATA, "state", isr=["B", "A"])
    copied = edit.find(BROKER, "append", "A", role="follower")
    edit.move(edit.find(BROKER, "high-watermark", "A", nth=-1), after=state)
    edit.move(copied, after=state)


# --- more of the ISR, and lawful twins ---------------------------------------------------------------------------
def _ids(edit: Edit, names: str) -> list[int]:
    return [edit.node_id(name) for name in names]


def _begins(node: str, names: str) -> Change:
    """Return a change of the ISR with which the node begins to lead for the last time."""
    return lambda edit: edit.change(edit.find(BROKER, "leader", node, nth=-1), isr=_ids(edit, names))


def _says(names: str) -> Change:
    """Return a change of the ISR in the last event with which a leader says that it wrote one."""
    return lambda edit: edit.change(edit.find(BROKER, "isr", nth=-1), isr=_ids(edit, names))


def _unsaid_isr(edit: Edit) -> None:
    edit.drop(edit.find(BROKER, "isr", nth=-1))


def _said_late(edit: Edit) -> None:
    """Let the leader say what it wrote as late as it may: before its next append, or a while after its write."""
    line = edit.find(BROKER, "isr", nth=-1)
    later = [each for each in edit.lines[edit.at(line) + 1 :] if each["process"] == line["process"]]
    until = edit.at(later[0]) - 1 if later and later[0]["source"] == "broker" else edit.at(line) + 1
    if until > edit.at(line):
        edit.move(line, after=edit.lines[until])


def _unsaid_until(ms: int) -> Change:
    """Return a change in which a leader does not say what it wrote before a fault that comes so much later."""

    def change(edit: Edit) -> None:
        written = edit.at(edit.all(Source.METADATA, "state")[-1])
        leader = edit.lines[written]["value"]["leader"]
        _unsaid_isr(edit)
        for line in edit.lines[written + 1 :]:
            line["time_ns"] += ms * 1_000_000
        edit.fault(edit.lines[written + 1], "flush", leader)

    return change


def _unsaid_behind(*, healed_late: bool) -> Change:
    """Return a change in which a leader's words to ZooKeeper were held, and the answers delayed for long."""

    def change(edit: Edit) -> None:
        _unsaid_isr(edit)
        leader = edit.all(Source.METADATA, "state")[-1]["value"]["leader"]
        first, healed = edit.find(BROKER, "append"), edit.find(Source.RUNNER, "healed")

        def rule(f: str, direction: str, at: Line = first, **more: Any) -> None:
            about = {"link": [leader, "metadata"], "api": "metadata-request", "direction": direction}
            edit.insert(at, Source.FABRIC, f, "fabric", before=True, **about, from_offset=None, **more)

        rule("delay", "answer", seconds=0.06)
        rule("hold", "request")
        rule("release", "request")
        rule("heal", "answer", healed if healed_late else first)

    return change


def _copied_just_before(node: str, leader: str) -> Change:
    """Return a change in which the node's last copy before it joins comes just before the leader lets it in."""

    def change(edit: Edit) -> None:
        joined = edit.find(BROKER, "isr", leader)
        before = [line for line in edit.all(BROKER, "append", node) if edit.at(line) < edit.at(joined)]
        fetches = [
            line
            for line in edit.all(Source.FABRIC, "fetch", offset=before[-1]["value"]["end"])
            if line["value"]["link"] == [node, leader] and edit.at(line) > edit.at(before[-1])
        ]
        edit.move(before[-1], after=edit.lines[edit.at(fetches[0]) - 1])

    return change


MEMBERS = [
    plant("isr-no-replica-1-lawful", "kafka-kip101-1")(set_state(0, isr=["A", "B"])),
    plant("isr-no-replica-2-lawful", "kafka-kip101-2", Kind.PERMITTED)(set_state(4, isr=["A", "B"])),
    plant("isr-no-replica-3-lawful", "sim-clean-8")(_begins("A", "CBA")),
    plant("isr-member-twice-lawful", "kafka-kip101-2", Kind.PERMITTED)(set_state(4, isr=["A", "B"])),
    plant("isr-member-twice-2", "kafka-kip101-1", Kind.WRONG_ISR)(set_state(6, isr=["A", "B", "B"])),
    plant("isr-member-twice-2-lawful", "kafka-kip101-1")(set_state(6, isr=["B", "A"])),
    plant("isr-member-twice-3", "sim-clean-8", Kind.WRONG_ISR)(_begins("B", "BABC")),
    plant("isr-member-twice-3-lawful", "sim-clean-8")(_begins("B", "CBA")),
    plant("isr-member-twice-4", "local-kip101-2", Kind.WRONG_ISR, Kind.PERMITTED)(_says("BAA")),
    plant("isr-member-twice-4-lawful", "local-kip101-2", Kind.PERMITTED)(_says("AB")),
]
WRITERS = [
    plant("isr-that-no-leader-wrote-1-lawful", "local-kip101-1")(_said_late),
    plant("isr-that-no-leader-wrote-2-lawful", "local-kip101-2", Kind.PERMITTED)(_said_late),
    plant("isr-that-no-leader-wrote-3", "sim-clean", Kind.WRONG_ISR)(_unsaid_isr),
    plant("isr-that-no-leader-wrote-3-lawful", "sim-clean")(_said_late),
    plant("isr-that-no-leader-wrote-4", "sim-unpromised", Kind.WRONG_ISR, Kind.UNPROMISED)(_unsaid_isr),
    plant("isr-that-no-leader-wrote-4-lawful", "sim-unpromised", Kind.UNPROMISED)(_said_late),
    plant("isr-that-no-leader-wrote-in-time", "sim-clean", Kind.WRONG_ISR)(_unsaid_until(120)),
    plant("isr-that-no-leader-wrote-in-time-lawful", "sim-clean")(_unsaid_until(80)),
    plant("isr-that-no-leader-wrote-behind-a-delay", "sim-clean", Kind.WRONG_ISR)(
        _unsaid_behind(healed_late=False)
    ),
    plant("isr-that-no-leader-wrote-behind-a-delay-lawful", "sim-clean")(_unsaid_behind(healed_late=True)),
]
JOINERS = [
    plant("isr-lagging-3-lawful", "sim-returned-unseen", Kind.RETURNED)(_lag_allowed),
    plant("isr-joins-without-2-lawful", "sim-clean-8")(_copied_just_before("C", "B")),
    plant("isr-joins-without-3-lawful", "sim-unpromised", Kind.UNPROMISED)(_copied_just_before("A", "C")),
]
