"""Controllers: who may elect and command, in which office."""

from __future__ import annotations

from typing import Final

from harness.model import Kind, Source
from tests.checkers.plants.changes import BROKER, METADATA, STATE, Change, each_of, set_line
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant

CONTROLLER: Final = Kind.WRONG_CONTROLLER


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
    each_of(
        set_line(BROKER, "controller", "D", nth=0, epoch=5),
        set_line(BROKER, "controller", "D", nth=1, epoch=5),
    )
)
FALLS_2 = plant("controller-epoch-falls-2", "sim-clean", CONTROLLER)(
    set_line(BROKER, "controller", "B", nth=0, epoch=0)
)
FALLS_3 = plant("controller-epoch-falls-3", "sim-clean-8", CONTROLLER)(
    each_of(set_line(BROKER, "controller", "A", epoch=3), _resigned(3), _also("A", 2, after=2))
)
FALLS_OK = plant("controller-epoch-falls-lawful", "sim-clean")(set_line(BROKER, "controller", "B", nth=0, epoch=7))


def _wrong_leaver(edit: Edit) -> None:
    edit.change(edit.find(BROKER, "controller", "D", active=False), epoch=4)


def _unnamed(*nodes: str | None) -> Change:
    """Return a change that lets ZooKeeper's watch never tell that these nodes, or None, are controller."""
    return lambda edit: edit.drop(*(edit.find(METADATA, "controller", node=node) for node in nodes))


UNNAMED = plant("controller-unnamed", "sim-clean", CONTROLLER)(_unnamed("B"))
# A watch tells the newest state: D's office may have ended before that was read.
UNNAMED_OK = plant("controller-unnamed-lawful", "sim-clean")(_unnamed("D", None))

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
    edit.insert(line, METADATA, "controller", "metadata", before=True, node="C")
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
        line = edit.find(Source.FABRIC, "learned", nth=nth)
        line["value"]["link"] = [sender, line["value"]["link"][1]]

    return change


def _refused(edit: Edit) -> None:
    line = edit.find(Source.FABRIC, "learned", nth=-1)
    edit.change(line, link=["B" if line["value"]["link"][1] == "A" else "A", line["value"]["link"][1]], error=11)


COMMANDS_1 = plant("controller-foreign-command-1", "kafka-kip101-1", CONTROLLER)(_foreign(1, "B"))
COMMANDS_2 = plant("controller-foreign-command-2", "kafka-kip101-2", CONTROLLER, Kind.PERMITTED)(_foreign(-1, "B"))
COMMANDS_3 = plant("controller-command-nobody-wrote", "kafka-kip101-1", CONTROLLER)(
    lambda edit: edit.change(edit.find(Source.FABRIC, "learned", epoch=1), leader="A")
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


# --- lawful twins ------------------------------------------------------------------------------------------------
def _rises(edit: Edit) -> None:
    """Let A leave office 3 and take office 4."""
    each_of(set_line(BROKER, "controller", "A", epoch=3), _resigned(3))(edit)
    edit.find(BROKER, "controller", "A", active=False)["value"]["epoch"] = 3
    edit.insert(edit.find(BROKER, "elected", nth=2), BROKER, "controller", "A", epoch=4, active=True)
    edit.move(
        edit.find(BROKER, "controller", "A", epoch=4), after=edit.find(BROKER, "controller", "A", epoch=3, nth=-1)
    )


OFFICES = [
    plant("controller-epoch-falls-1-lawful", "sim-clean")(
        each_of(
            set_line(BROKER, "controller", "D", nth=0, epoch=5),
            set_line(BROKER, "controller", "D", nth=1, epoch=5),
            set_line(BROKER, "controller", "B", nth=0, epoch=6),
        )
    ),
    plant("controller-epoch-falls-3-lawful", "sim-clean-8")(_rises),
]


def _commanded_before_written(edit: Edit) -> None:
    """Let the fabric record a command before the watch sees what ZooKeeper has: the two race."""
    state = edit.find(METADATA, STATE, epoch=1)
    edit.move(state, after=edit.find(Source.FABRIC, "learned", nth=-1, epoch=1))


COMMANDS_OK_3 = plant("controller-command-nobody-wrote-lawful", "kafka-kip101-1")(_commanded_before_written)


def _also_refused(edit: Edit) -> None:
    """Let B command A as well, beside the controller, and A refuse it."""
    edit.again(edit.find(Source.FABRIC, "learned", nth=5), link=["B", "A"], error=11)


COMMANDS_4 = plant("controller-foreign-command-3", "kafka-kip101-1", CONTROLLER)(_foreign(5, "B"))
COMMANDS_OK_4 = plant("controller-foreign-command-3-lawful", "kafka-kip101-1")(_also_refused)
