"""Controllers, leadership, the ISR and the high watermark: who may write, lead, join and pass what.

Length: one list of changes, a few lines each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from harness.model import Kind, Source
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant

BROKER, ZOOKEEPER = Source.BROKER, Source.ZOOKEEPER
CONTROLLER, LEADER = Kind.WRONG_CONTROLLER, Kind.WRONG_LEADER
ISR, HIGH_WATERMARK = Kind.WRONG_ISR, Kind.WRONG_HIGH_WATERMARK
_STATE: Final = "leaderAndISR"

Change = Callable[[Edit], Any]


def _set(source: Source, f: str, process: str | None = None, *, nth: int = 0, **value: Any) -> Change:
    """Return a change that sets keys of the nth line of that source, f and process."""
    return lambda edit: edit.change(edit.find(source, f, process, nth=nth), **value)


def _state(version: int, **value: Any) -> Change:
    """Return a change of ZooKeeper's state of that version."""
    return lambda edit: edit.change(edit.find(ZOOKEEPER, _STATE, zk_version=version), **value)


def _all(*changes: Change) -> Change:
    """Return the changes, one after the other."""
    return lambda edit: [change(edit) for change in changes]


def _nobody(edit: Edit) -> None:
    """Change nothing."""


def _place(edit: Edit) -> dict[str, Any]:
    setup = edit.lines[0]["value"]
    return {"topic": setup["topic"], "partition": setup["partition"]}


# --- the controller --------------------------------------------------------------------------------------------
def _by(nth: int, node: str) -> Change:
    """Return a change that makes another node report the nth decision."""

    def change(edit: Edit) -> None:
        edit.find(BROKER, "elected", nth=nth)["process"] = node

    return change


def _resigned(nth: int) -> Change:
    """Return a change that lets the controller resign just before its nth decision."""

    def change(edit: Edit) -> None:
        line = edit.find(BROKER, "elected", nth=nth)
        edit.insert(line, BROKER, "controller", line["process"], before=True, epoch=1, active=False)

    return change


def _resigned_at_the_end(edit: Edit) -> None:
    line = edit.find(BROKER, "elected", nth=-1)
    edit.insert(line, BROKER, "controller", line["process"], epoch=_epoch(edit, line["process"]), active=False)


def _epoch(edit: Edit, node: str) -> int:
    return int(edit.find(BROKER, "controller", node, nth=-1, active=True)["value"]["epoch"])


def _also(node: str, epoch: int, *, after: int = 0) -> Change:
    """Return a change that lets another node take office in that epoch, after the nth decision."""

    def change(edit: Edit) -> None:
        line = edit.find(BROKER, "elected", nth=after)
        edit.insert(line, BROKER, "controller", node, epoch=epoch, active=True)

    return change


NEVER_1 = plant("controller-never-in-office-1", "sim-clean", CONTROLLER)(_by(1, "C"))
NEVER_2 = plant("controller-never-in-office-2", "local-kip101-1", CONTROLLER)(_by(1, "A"))
NEVER_3 = plant("controller-never-in-office-3", "sim-clean-8", CONTROLLER)(_by(-1, "C"))
RESIGNED_1 = plant("controller-resigned-1", "sim-clean", CONTROLLER)(_resigned(2))
RESIGNED_2 = plant("controller-resigned-2", "local-kip101-1", CONTROLLER)(_resigned(1))
RESIGNED_3 = plant("controller-resigned-3", "sim-clean-8", CONTROLLER)(_resigned(4))
RESIGNED_OK = plant("controller-resigned-lawful", "local-kip101-1")(_resigned_at_the_end)
RESIGNED_OK_2 = plant("controller-resigned-2-lawful", "sim-clean-8")(_resigned_at_the_end)
ONE_EPOCH_1 = plant("controller-one-epoch-1", "sim-clean", CONTROLLER)(_also("A", 1))
ONE_EPOCH_2 = plant("controller-one-epoch-2", "local-kip101-1", CONTROLLER)(_also("B", 1))
ONE_EPOCH_3 = plant("controller-one-epoch-3", "sim-clean-8", CONTROLLER)(_also("C", 1, after=2))
ONE_EPOCH_OK = plant("controller-one-epoch-lawful", "local-kip101-1")(_also("B", 2, after=-1))
FALLS_1 = plant("controller-epoch-falls-1", "sim-clean", CONTROLLER)(
    _all(
        _set(BROKER, "controller", "D", nth=0, epoch=5),
        _set(BROKER, "controller", "D", nth=1, epoch=5),
    )
)
FALLS_2 = plant("controller-epoch-falls-2", "sim-clean", CONTROLLER)(
    _set(BROKER, "controller", "B", nth=0, epoch=0)
)
FALLS_3 = plant("controller-epoch-falls-3", "sim-clean-8", CONTROLLER)(
    _all(_set(BROKER, "controller", "A", epoch=3), _resigned(3), _also("A", 2, after=2))
)
FALLS_OK = plant("controller-epoch-falls-lawful", "sim-clean")(_set(BROKER, "controller", "B", nth=0, epoch=7))


def _wrong_leaver(edit: Edit) -> None:
    edit.change(edit.find(BROKER, "controller", "D", active=False), epoch=4)


LEAVES = plant("controller-leaves-another-epoch", "sim-clean", CONTROLLER)(_wrong_leaver)


def _zombie(edit: Edit) -> None:
    """Let D, whose office ended when B was elected, stay in office and decide once more, after B has."""
    edit.drop(edit.find(BROKER, "controller", "D", active=False))
    edit.find(BROKER, "elected", nth=-1)["process"] = "D"


def _late_zombie(edit: Edit) -> None:
    """The same, but it is B's first decision that D makes: B is in office by then."""
    edit.drop(edit.find(BROKER, "controller", "D", active=False))
    edit.find(BROKER, "elected", epoch=3)["process"] = "D"


def _two_offices(edit: Edit) -> None:
    """Let C take a newer office between two decisions of A, and write one of them."""
    line = edit.find(BROKER, "elected", nth=3)
    edit.insert(line, BROKER, "controller", "C", before=True, epoch=2, active=True)
    edit.insert(line, ZOOKEEPER, "controller", "zookeeper", before=True, node="C")
    line["process"] = "C"


def _late_notice(edit: Edit) -> None:
    """Let D notice its end of office only after B has decided: it writes nothing, which is lawful."""
    edit.move(edit.find(BROKER, "controller", "D", active=False), after=edit.find(BROKER, "elected", epoch=3))


DEPOSED_1 = plant("controller-deposed-writes-1", "sim-clean", CONTROLLER)(_zombie)
DEPOSED_2 = plant("controller-deposed-writes-2", "sim-clean", CONTROLLER)(_late_zombie)
DEPOSED_3 = plant("controller-deposed-writes-3", "sim-clean-8", CONTROLLER)(_two_offices)
DEPOSED_OK = plant("controller-deposed-writes-lawful", "sim-clean")(_late_notice)


def _foreign(nth: int, sender: str) -> Change:
    def change(edit: Edit) -> None:
        line = edit.find(Source.FABRIC, "commanded", nth=nth)
        line["value"]["link"] = [sender, line["value"]["link"][1]]

    return change


def _refused(edit: Edit) -> None:
    line = edit.find(Source.FABRIC, "commanded", nth=-1)
    edit.change(line, link=["B" if line["value"]["link"][1] == "A" else "A", line["value"]["link"][1]], error=11)


COMMANDS_1 = plant("controller-foreign-command-1", "kafka-kip101-1", CONTROLLER)(_foreign(1, "B"))
COMMANDS_2 = plant("controller-foreign-command-2", "kafka-kip101-2", CONTROLLER, Kind.PERMITTED)(_foreign(-1, "B"))
COMMANDS_3 = plant("controller-command-nobody-wrote", "kafka-kip101-1", CONTROLLER)(
    lambda edit: edit.change(edit.find(Source.FABRIC, "commanded", epoch=1), leader="A")
)
COMMANDS_OK = plant("controller-foreign-command-lawful", "kafka-kip101-1")(_refused)
COMMANDS_OK_2 = plant("controller-foreign-command-2-lawful", "kafka-kip101-2", Kind.PERMITTED)(_refused)


def _unsaid(epoch: int) -> Change:
    return lambda edit: edit.drop(edit.find(BROKER, "elected", epoch=epoch))


def _unsaid_by_the_dead(edit: Edit) -> None:
    """Drop the last decision of D before its office ends: it may not have lived to report it."""
    edit.drop(edit.find(BROKER, "elected", "D", nth=-1))


UNSAID_1 = plant("controller-unsaid-1", "sim-clean-8", CONTROLLER)(_unsaid(3))
UNSAID_2 = plant("controller-unsaid-2", "sim-clean", CONTROLLER)(_unsaid(1))
UNSAID_3 = plant("controller-unsaid-3", "local-kip101-1", CONTROLLER)(_unsaid(1))
UNSAID_OK = plant("controller-unsaid-lawful", "sim-clean")(_unsaid_by_the_dead)
UNWRITTEN_1 = plant("controller-unwritten-leader", "sim-clean-8", CONTROLLER)(
    lambda edit: edit.change(edit.find(BROKER, "elected", epoch=3), leader=edit.node_id("A"))
)
UNWRITTEN_2 = plant("controller-unwritten-isr", "sim-clean-8", CONTROLLER)(
    lambda edit: edit.change(edit.find(BROKER, "elected", epoch=4), isr=[edit.node_id("B")])
)
UNWRITTEN_3 = plant("controller-unwritten-epoch", "local-kip101-1", CONTROLLER)(
    lambda edit: edit.again(edit.find(BROKER, "elected", epoch=1), epoch=2)
)
TWICE = plant("controller-elected-twice", "sim-clean", CONTROLLER)(
    lambda edit: edit.again(edit.find(BROKER, "elected", epoch=3), after=edit.find(BROKER, "elected", epoch=4))
)


# --- leadership ------------------------------------------------------------------------------------------------
def _gone(version: int) -> Change:
    """Return a change that drops a state: a watch may miss one."""
    return lambda edit: edit.drop(edit.find(ZOOKEEPER, _STATE, zk_version=version))


def _swap(first: int, second: int) -> Change:
    def change(edit: Edit) -> None:
        a, b = (edit.find(ZOOKEEPER, _STATE, zk_version=v) for v in (first, second))
        edit.move(a, after=b)

    return change


OUTSIDE_1 = plant("leader-outside-isr-1", "kafka-kip101-1", LEADER)(_state(2, isr=["B"]))
OUTSIDE_2 = plant("leader-outside-isr-2", "kafka-kip101-2", LEADER, Kind.PERMITTED)(_state(0, isr=["B"]))
OUTSIDE_3 = plant("leader-outside-isr-3", "sim-clean", LEADER, CONTROLLER, ISR)(_state(5, isr=["B"]))
OUTSIDE_OK = plant("leader-outside-isr-lawful", "kafka-kip101-2", Kind.PERMITTED)(_state(0, isr=["B", "A"]))
STRANGER_1 = plant("leader-no-replica-1", "sim-clean", LEADER, CONTROLLER, ISR, Kind.TWO_LEADERS)(
    _state(5, leader="D", isr=["B", "C", "D"])
)
VERSION_1 = plant("leader-version-falls-1", "sim-clean-8", LEADER)(_swap(4, 5))
VERSION_2 = plant("leader-version-repeats", "kafka-kip101-1", LEADER)(_state(1, zk_version=0))
VERSION_3 = plant("leader-version-falls-2", "kafka-kip101-2", LEADER, Kind.PERMITTED)(_swap(1, 2))
VERSION_OK = plant("leader-version-gap-lawful", "sim-clean-8")(_gone(5))
VERSION_OK_2 = plant("leader-version-gap-2-lawful", "kafka-kip101-1")(_gone(1))
JUMP = plant("leader-epoch-jumps", "kafka-kip101-2", LEADER, CONTROLLER, Kind.PERMITTED)(
    lambda edit: [
        edit.change(line, epoch=line["value"]["epoch"] + 3)
        for line in edit.all(ZOOKEEPER, _STATE)
        if line["value"]["zk_version"] >= 3
    ]
)
EPOCH_1 = plant("leader-epoch-falls-in-zookeeper", "kafka-kip101-2", LEADER, Kind.PERMITTED)(_state(2, epoch=0))


def _older(f: str, node: str, epoch: int) -> Change:
    """Return a change in which the node accepts that epoch at the end, with an event of that name."""

    def change(edit: Edit) -> None:
        line = edit.find(BROKER, f, node, nth=-1)
        last = edit.find(BROKER, "high-watermark", nth=-1)
        own = edit.find(BROKER, "high-watermark", node, nth=-1)["value"]["to"]
        end = edit.find(BROKER, "append", node, nth=-1)["value"]["end"]
        edit.again(line, after=last, high_watermark=own, log_end_offset=end, **_as(edit, epoch))

    return change


def _as(edit: Edit, epoch: int) -> dict[str, Any]:
    states = edit.all(ZOOKEEPER, _STATE, epoch=epoch) or edit.all(ZOOKEEPER, _STATE)
    return {"epoch": epoch, "leader": edit.node_id(states[-1]["value"]["leader"])}


ACCEPTS_1 = plant("leader-old-epoch-accepted-1", "sim-clean-8", LEADER)(_older("follower", "C", 2))
ACCEPTS_2 = plant("leader-old-epoch-accepted-2", "sim-clean", LEADER)(_older("follower", "B", 0))
ACCEPTS_3 = plant("leader-old-epoch-accepted-3", "sim-clean-8", LEADER)(_older("follower", "A", 3))
ACCEPTS_OK = plant("leader-same-epoch-accepted-lawful", "sim-clean")(_older("follower", "B", 4))
CLAIMS_1 = plant("leader-of-follower-differs-1", "sim-clean-8", LEADER)(
    lambda edit: edit.change(edit.find(BROKER, "follower", "C", epoch=2), leader=edit.node_id("A"))
)
CLAIMS_2 = plant("leader-epoch-never-was-1", "sim-clean-8", LEADER)(_older("follower", "C", 90))
CLAIMS_3 = plant("leader-epoch-never-was-2", "sim-clean", LEADER)(_older("follower", "B", 9))
ITSELF = plant("leader-follows-itself", "sim-clean-8", LEADER)(_older("follower", "B", 10))
UNCLEAN_1 = plant("leader-unclean-while-off-1", "sim-clean-8", LEADER)(
    _set(BROKER, "elected", nth=2, unclean=True)
)
UNCLEAN_2 = plant("leader-unclean-while-off-2", "local-kip101-1", LEADER)(
    _set(BROKER, "elected", nth=1, unclean=True)
)
UNCLEAN_3 = plant("leader-unclean-while-off-3", "local-appendix-a", LEADER, Kind.LOST)(
    lambda edit: edit.lines[0]["value"].update(unclean=False)
)
UNCLEAN_OK = plant("leader-unclean-while-on-lawful", "local-appendix-a", Kind.UNCLEAN)(_nobody)


# --- who appends -----------------------------------------------------------------------------------------------
def _appends(node: str, *, nth: int = -1, **value: Any) -> Change:
    """Return a change that makes the nth copy of the node an append as leader."""
    return lambda edit: edit.change(
        edit.find(BROKER, "append", node, nth=nth, role="follower"), role="leader", **value
    )


APPENDS_1 = plant("append-by-follower-1", "sim-clean", Kind.TWO_LEADERS, Kind.NOT_REPLICATED)(_appends("C"))
APPENDS_2 = plant("append-by-follower-2", "local-kip101-1", Kind.TWO_LEADERS, Kind.FALSE_ACK)(_appends("B"))
APPENDS_3 = plant("append-by-follower-3", "sim-clean-8", Kind.TWO_LEADERS)(_appends("A", nth=0))
APPENDS_4 = plant("append-in-another-epoch", "local-kip101-1", Kind.TWO_LEADERS)(
    lambda edit: edit.change(edit.find(BROKER, "append", "A", nth=-1), epoch=0)
)
APPENDS_5 = plant(
    "append-by-two-without-epochs",
    "local-kip101-1-hw",
    Kind.TWO_LEADERS,
    Kind.LOST,
    Kind.NOT_REPLICATED,
    Kind.COMMITTED_LOST,
)(_appends("A", nth=0))


# --- the ISR ---------------------------------------------------------------------------------------------------
STRANGE_1 = plant("isr-no-replica-1", "kafka-kip101-1", ISR)(_state(0, isr=["B", "A", "C"]))
STRANGE_2 = plant("isr-no-replica-2", "kafka-kip101-2", ISR, Kind.PERMITTED)(_state(4, isr=["B", "A", "C"]))
STRANGE_3 = plant("isr-no-replica-3", "sim-clean-8", ISR, Kind.FALSE_ACK, Kind.UNCHECKED)(
    lambda edit: edit.change(line := edit.find(BROKER, "leader", "A"), isr=[*line["value"]["isr"], 7])
)
TWICE_1 = plant("isr-member-twice", "kafka-kip101-2", ISR, Kind.PERMITTED)(_state(4, isr=["B", "A", "A"]))
EMPTY_1 = plant("isr-empty-1", "kafka-kip101-2", ISR, LEADER, Kind.PERMITTED)(_state(2, isr=[]))
EMPTY_2 = plant("isr-empty-2", "sim-clean-8", ISR, Kind.FALSE_ACK)(_set(BROKER, "leader", "A", nth=0, isr=[]))
EMPTY_3 = plant("isr-empty-3", "sim-clean-8", ISR, CONTROLLER, LEADER)(_set(BROKER, "elected", nth=3, isr=[]))
EMPTY_OK = plant("isr-empty-unclean-lawful", "kafka-kip101-2", Kind.PERMITTED)(
    _all(lambda edit: edit.lines[0]["value"].update(unclean=True), _state(2, isr=[]))
)


def _isr(edit: Edit, **value: Any) -> Line:
    line = edit.find(BROKER, "isr")
    edit.change(line, **value)
    return line


NEVER_STOOD_1 = plant("isr-never-stood-1", "sim-clean-8", ISR)(
    lambda edit: _isr(edit, isr=[edit.node_id("B"), edit.node_id("C")])
)
NEVER_STOOD_2 = plant("isr-never-stood-2", "local-kip101-1", ISR)(lambda edit: _isr(edit, zk_version=7))
NEVER_STOOD_3 = plant("isr-never-stood-3", "sim-clean", ISR)(
    lambda edit: edit.again(edit.find(BROKER, "isr"), zk_version=40)
)
NOT_LEADING = plant("isr-by-follower", "sim-clean-8", ISR)(
    lambda edit: edit.find(BROKER, "isr").update(process="C")
)
NEVER_STOOD_OK = plant("isr-missed-by-watch-lawful", "sim-clean-8")(_gone(3))


MIND_1 = plant("isr-in-the-leaders-mind-1", "local-kip101-1", ISR, Kind.FALSE_ACK)(
    lambda edit: edit.change(edit.find(BROKER, "leader", "B"), isr=[edit.node_id("B")])
)
MIND_2 = plant("isr-in-the-leaders-mind-2", "sim-clean-8", ISR)(
    lambda edit: edit.change(edit.find(BROKER, "leader", "C"), isr=[edit.node_id("C")])
)
MIND_3 = plant("isr-in-the-leaders-mind-3", "sim-clean", ISR)(
    lambda edit: edit.again(edit.find(BROKER, "isr"), isr=[edit.node_id("B")], zk_version=4)
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


# --- the high watermark ----------------------------------------------------------------------------------------
def _then(node: str, to: int, *, nth: int = -1) -> Change:
    """Return a change that adds another high watermark of the node after its nth one."""
    return lambda edit: edit.again(edit.find(BROKER, "high-watermark", node, nth=nth), to=to)


FALL_1 = plant("high-watermark-falls-1", "sim-clean-8", HIGH_WATERMARK)(_then("A", 1, nth=0))
FALL_2 = plant("high-watermark-falls-2", "local-kip101-1", HIGH_WATERMARK)(_then("A", 4))
FALL_3 = plant("high-watermark-falls-3", "sim-clean", HIGH_WATERMARK)(
    _set(BROKER, "leader", "B", nth=-1, high_watermark=2)
)
FALL_OK = plant("high-watermark-falls-at-follower-lawful", "sim-clean")(
    lambda edit: [
        edit.again(line := edit.find(BROKER, "high-watermark", "C", nth=0), to=1),
        edit.again(line, after=edit.lines[edit.at(line) + 1]),
    ]
)
ABOVE_1 = plant("high-watermark-above-end-1", "sim-clean", HIGH_WATERMARK)(_then("C", 90))
ABOVE_2 = plant("high-watermark-above-end-2", "local-kip101-1", HIGH_WATERMARK)(_then("A", 6))
ABOVE_3 = plant("high-watermark-above-end-3", "local-kip101-2", HIGH_WATERMARK, Kind.PERMITTED)(
    _set(BROKER, "recovered", "B", high_watermark=2)
)


def _early(edit: Edit) -> None:
    """Move the first high watermark of the leader before every copy of its followers."""
    line = edit.find(BROKER, "high-watermark", to=2)
    edit.move(line, after=edit.find(BROKER, "append", line["process"], role="leader"))


def _uncopied(node: str) -> Change:
    return lambda edit: edit.drop(*edit.all(BROKER, "append", node))


PASSES_1 = plant("high-watermark-passes-isr-1", "sim-clean-8", HIGH_WATERMARK)(_early)
PASSES_2 = plant("high-watermark-passes-isr-2", "sim-unpromised", HIGH_WATERMARK, Kind.UNPROMISED)(_early)
PASSES_3 = plant("high-watermark-passes-isr-3", "sim-last-standing", HIGH_WATERMARK, Kind.LAST_STANDING)(_early)
TOLD_1 = plant("high-watermark-told-above-1", "sim-clean", HIGH_WATERMARK)(
    _set(Source.CLIENT, "read", nth=-1, high_watermark=99)
)
TOLD_2 = plant("high-watermark-told-and-shorter", "kafka-kip101-1", HIGH_WATERMARK)(
    _set(Source.CLIENT, "read", nth=-1, high_watermark=99)
)
TOLD_3 = plant("high-watermark-told-below", "local-kip101-1", HIGH_WATERMARK, Kind.WRONG_READ)(
    lambda edit: _shorter(edit.find(Source.CLIENT, "read", nth=-1, type="ok"))
)


def _shorter(line: Line) -> None:
    line["value"]["high_watermark"] -= 1
    line["value"]["records"] = line["value"]["records"][:-1]


def _reads_again(lower: int) -> Change:
    """Return a change in which a client reads once more, and is told a lower high watermark."""

    def change(edit: Edit) -> None:
        asked, told = (edit.find(Source.CLIENT, "read", nth=-1, type=t) for t in ("invoke", "ok"))
        twin = edit.again(asked, after=told)
        again = edit.again(told, after=twin)
        for _ in range(lower):
            _shorter(again)

    return change


TOLD_4 = plant(
    "high-watermark-told-and-lower-1", "kafka-kip101-2", HIGH_WATERMARK, Kind.PERMITTED, Kind.WRONG_READ
)(_reads_again(1))
TOLD_5 = plant("high-watermark-told-and-lower-2", "kafka-kip101-1", HIGH_WATERMARK, Kind.WRONG_READ)(
    _reads_again(2)
)
TOLD_6 = plant("high-watermark-told-and-lower-3", "sim-clean-8", HIGH_WATERMARK, Kind.WRONG_READ)(_reads_again(1))
TOLD_OK = plant("high-watermark-told-again-lawful", "kafka-kip101-2", Kind.PERMITTED)(_reads_again(0))
