"""Leadership: epochs, leaders and elections, in ZooKeeper and at brokers; who appends."""

from __future__ import annotations

from typing import Any

from harness.model import Kind
from tests.checkers.plants.changes import (
    BROKER,
    METADATA,
    STATE,
    Change,
    nothing,
    set_line,
    set_state,
    without_state,
)
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant

CONTROLLER, LEADER, ISR = Kind.WRONG_CONTROLLER, Kind.WRONG_LEADER, Kind.WRONG_ISR


def _swap(first: int, second: int) -> Change:
    def change(edit: Edit) -> None:
        a, b = (edit.find(METADATA, STATE, version=v) for v in (first, second))
        edit.move(a, after=b)

    return change


OUTSIDE_1 = plant("leader-outside-isr-1", "kafka-kip101-1", LEADER)(set_state(2, isr=["B"]))
OUTSIDE_2 = plant("leader-outside-isr-2", "kafka-kip101-2", LEADER, Kind.PERMITTED)(set_state(0, isr=["B"]))
OUTSIDE_3 = plant("leader-outside-isr-3", "sim-clean", LEADER, CONTROLLER, ISR)(set_state(5, isr=["B"]))
OUTSIDE_OK = plant("leader-outside-isr-lawful", "kafka-kip101-2", Kind.PERMITTED)(set_state(0, isr=["B", "A"]))
STRANGER_1 = plant("leader-no-replica-1", "sim-clean", LEADER, CONTROLLER, ISR, Kind.TWO_LEADERS)(
    set_state(5, leader="D", isr=["B", "C", "D"])
)
VERSION_1 = plant("leader-version-falls-1", "sim-clean-8", LEADER)(_swap(4, 5))
VERSION_2 = plant("leader-version-repeats", "kafka-kip101-1", LEADER)(set_state(1, version=0))
VERSION_3 = plant("leader-version-falls-2", "kafka-kip101-2", LEADER, Kind.PERMITTED)(_swap(1, 2))
VERSION_OK = plant("leader-version-gap-lawful", "local-kip101-1")(without_state(1))
VERSION_OK_2 = plant("leader-version-gap-2-lawful", "kafka-kip101-1")(without_state(1))
JUMP = plant("leader-epoch-jumps", "kafka-kip101-2", LEADER, CONTROLLER, Kind.EPOCHS_DIFFER, Kind.PERMITTED)(
    lambda edit: [
        edit.change(line, epoch=line["value"]["epoch"] + 3)
        for line in edit.all(METADATA, STATE)
        if line["value"]["version"] >= 3
    ]
)
EPOCH_1 = plant("leader-epoch-falls-in-zookeeper", "kafka-kip101-2", LEADER, Kind.PERMITTED)(set_state(2, epoch=0))


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
    states = edit.all(METADATA, STATE, epoch=epoch) or edit.all(METADATA, STATE)
    return {"epoch": epoch, "leader": edit.node_id(states[-1]["value"]["leader"])}


ACCEPTS_1 = plant("leader-old-epoch-accepted-1", "sim-clean-8", LEADER)(_older("follower", "C", 2))
ACCEPTS_2 = plant("leader-old-epoch-accepted-2", "sim-clean", LEADER)(_older("follower", "B", 0))
ACCEPTS_3 = plant("leader-old-epoch-accepted-3", "sim-clean-8", LEADER)(_older("follower", "A", 3))
ACCEPTS_TWICE = plant("leader-same-epoch-accepted-twice", "sim-clean", Kind.UNCHECKED)(_older("follower", "B", 4))
CLAIMS_1 = plant("leader-of-follower-differs-1", "sim-clean-8", LEADER)(
    lambda edit: edit.change(edit.find(BROKER, "follower", "C", epoch=2), leader=edit.node_id("A"))
)
CLAIMS_2 = plant("leader-epoch-never-was-1", "sim-clean-8", LEADER)(_older("follower", "C", 90))
CLAIMS_3 = plant("leader-epoch-never-was-2", "sim-clean", LEADER)(_older("follower", "B", 9))
ITSELF = plant("leader-follows-itself", "sim-clean-8", LEADER)(_older("follower", "B", 10))
UNCLEAN_1 = plant("leader-unclean-while-off-1", "sim-clean-8", LEADER)(
    set_line(BROKER, "elected", nth=2, unclean=True)
)
UNCLEAN_2 = plant("leader-unclean-while-off-2", "local-kip101-1", LEADER)(
    set_line(BROKER, "elected", nth=1, unclean=True)
)
UNCLEAN_3 = plant("leader-unclean-while-off-3", "local-appendix-a", LEADER, Kind.LOST)(
    lambda edit: edit.lines[0]["value"].update(unclean=False)
)
UNCLEAN_OK = plant("leader-unclean-while-on-lawful", "local-appendix-a", Kind.UNCLEAN)(nothing)


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


# --- more of leadership, and lawful twins ------------------------------------------------------------------------
def _accepts_late(node: str) -> Change:
    """Return a change in which the node accepts its last epoch late: just before it acts on it."""

    def change(edit: Edit) -> None:
        line = edit.find(BROKER, "follower", node, nth=-1)
        since = edit.at(line)
        acts = (
            place
            for place, each in enumerate(edit.lines)
            if place > since and node in (each["process"], *each["value"].get("link", ())[:1])
        )
        until = next(acts, since + 1)
        if until > since + 1:
            edit.move(line, after=edit.lines[until - 1])

    return change


def _elects(names: str, epoch: int) -> Change:
    """Return a change of the order in which a decision names the ISR, which means nothing."""
    return lambda edit: edit.change(
        edit.find(BROKER, "elected", epoch=epoch), isr=[edit.node_id(name) for name in names]
    )


def _split(node: str, base: int, *parts: tuple[int, int]) -> Change:
    """Return a change in which the node reports one append in parts, each with its end and epoch."""

    def change(edit: Edit) -> None:
        append = edit.find(BROKER, "append", node, base=base)
        line, begin = append, base
        for end, epoch in parts:
            line = edit.again(append, after=line, base=begin, end=end, epoch=epoch)
            begin = end
        edit.drop(append)

    return change


LEADERS = [
    plant("leader-outside-isr-1-lawful", "kafka-kip101-1")(set_state(2, isr=["A", "B"])),
    plant("leader-outside-isr-3-lawful", "sim-clean")(set_state(5, isr=["C", "B"])),
    plant("leader-no-replica-1-lawful", "sim-clean")(set_state(5, isr=["C", "B"])),
    plant("leader-no-replica-2", "kafka-kip101-2", Kind.WRONG_ISR, Kind.WRONG_LEADER, Kind.UNCHECKED)(
        set_state(1, leader="C", isr=["C"])
    ),
    plant("leader-no-replica-2-lawful", "kafka-kip101-2", Kind.PERMITTED)(set_state(1, leader=None, isr=["B"])),
    plant("leader-no-replica-3", "kafka-kip101-1", Kind.WRONG_CONTROLLER, Kind.WRONG_ISR, Kind.WRONG_LEADER)(
        set_state(3, leader="C", isr=["B", "A", "C"])
    ),
    plant("leader-no-replica-3-lawful", "kafka-kip101-1")(without_state(3)),
    plant("leader-no-replica-elected", "local-kip101-1", Kind.WRONG_CONTROLLER, Kind.WRONG_LEADER)(
        lambda edit: edit.change(edit.find(BROKER, "elected", epoch=1), leader=edit.node_id("C"))
    ),
    plant("leader-no-replica-elected-lawful", "local-kip101-1")(without_state(1)),
]
EPOCHS_IN_ZOOKEEPER = [
    plant("leader-epoch-falls-in-zookeeper-lawful", "kafka-kip101-2", Kind.PERMITTED)(without_state(1)),
    plant("leader-epoch-falls-in-zookeeper-2", "kafka-kip101-1", Kind.WRONG_LEADER)(set_state(4, epoch=1)),
    plant("leader-epoch-falls-in-zookeeper-2-lawful", "kafka-kip101-1")(without_state(4)),
    plant("leader-epoch-falls-in-zookeeper-3", "sim-clean-8", Kind.WRONG_CONTROLLER, Kind.WRONG_LEADER)(
        set_state(11, epoch=6)
    ),
    plant("leader-epoch-falls-in-zookeeper-3-lawful", "sim-clean-8")(set_state(11, isr=["C", "B", "A"])),
    plant(
        "leader-epoch-falls-in-zookeeper-4", "local-kip101-2", Kind.WRONG_ISR, Kind.WRONG_LEADER, Kind.PERMITTED
    )(set_state(3, epoch=1)),
    plant("leader-epoch-falls-in-zookeeper-4-lawful", "local-kip101-2", Kind.PERMITTED)(without_state(2)),
]
EPOCHS_AT_BROKERS = [
    plant("leader-old-epoch-accepted-1-lawful", "sim-clean-8")(_accepts_late("C")),
    plant("leader-old-epoch-accepted-2-lawful", "sim-clean")(_accepts_late("B")),
    plant("leader-old-epoch-accepted-3-lawful", "sim-clean-8")(_accepts_late("A")),
]
APPENDERS = [
    plant("append-by-follower-1-lawful", "sim-clean")(_split("A", 0, (1, 0), (2, 0))),
    plant("append-by-follower-2-lawful", "local-kip101-1")(_split("B", 0, (1, 0), (3, 0))),
    plant("append-by-follower-3-lawful", "sim-clean-8")(_split("A", 0, (1, 0), (2, 0))),
    plant("append-in-another-epoch-2", "sim-clean-8", Kind.TWO_LEADERS)(
        set_line(BROKER, "append", "B", nth=-1, epoch=9)
    ),
    plant("append-after-following", "local-kip101-2", Kind.TWO_LEADERS, Kind.NOT_REPLICATED, Kind.PERMITTED)(
        set_line(BROKER, "append", "A", nth=-1, role="leader")
    ),
    plant("append-after-following-lawful", "local-kip101-2", Kind.PERMITTED)(_split("A", 1, (2, 0), (3, 0))),
]
DECISIONS = [
    plant("controller-unwritten-leader-lawful", "sim-clean-8")(_elects("CBA", 3)),
    plant("controller-unwritten-isr-lawful", "sim-clean-8")(_elects("CBA", 4)),
    plant("controller-unwritten-epoch-lawful", "local-kip101-1")(without_state(1)),
    plant("controller-unwritten-epoch-2", "local-kip101-2", Kind.WRONG_CONTROLLER, Kind.PERMITTED)(
        lambda edit: edit.again(edit.find(BROKER, "elected", epoch=3), epoch=4)
    ),
    plant("controller-unwritten-epoch-2-lawful", "local-kip101-2", Kind.PERMITTED)(without_state(1)),
    plant("controller-unwritten-epoch-3", "sim-clean", Kind.WRONG_CONTROLLER)(
        lambda edit: edit.again(edit.find(BROKER, "elected", epoch=4), epoch=5)
    ),
    plant("controller-unwritten-epoch-3-lawful", "sim-clean")(_elects("CB", 4)),
]
