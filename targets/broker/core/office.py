"""
Controller election: each broker watches /controller; the first to create it takes office in a new epoch.

    watch /controller -> multi{set /controller_epoch, create /controller} -> office
Source:  Kafka Replication Design V3, D; KAFKA-6082.
"""

from __future__ import annotations

from dataclasses import dataclass

from targets.broker.core import controller, readable
from targets.broker.core.controller_state import Controller
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    ZkCreate,
    ZkDone,
    ZkError,
    ZkExists,
    ZkGet,
    ZkMulti,
    ZkNode,
    ZkResult,
    ZkSet,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitLook:
    """/controller and its epoch are being read; `tried` is the epoch of an election with an unknown result."""

    tried: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitElection:
    """The election of this broker is in flight."""

    epoch: int
    version: int


def run_for_office(core: Core, tried: int = 0) -> None:
    """
    Watch /controller and try to become controller if it does not exist (V3 D).

    Args:
        tried: the epoch that this broker holds or may have won without an answer, 0 for none.
    """
    core.ask(AwaitLook(tried=tried), ZkExists(path=CONTROLLER, watch=True), ZkGet(path=CONTROLLER_EPOCH))


def on_fired(core: Core) -> None:
    """Read /controller again: the office may be free, or this broker may have lost it."""
    if core.state.started:
        run_for_office(core, tried=core.state.controller.epoch)


def on_looked(core: Core, continuation: AwaitLook, holder: ZkResult, epoch: ZkResult) -> None:
    """
    Run for election if the office is free; detect an election that was won but lost its answer.

    Several reads may be in flight: the epoch held, not the one tried, shows whether this broker took office since.
    """
    number = readable.read_number(core, CONTROLLER_EPOCH, epoch) if isinstance(epoch, ZkNode) else None
    if not isinstance(epoch, ZkNode) or number is None or holder is ZkError.LOST:
        core.after_ms(("office", continuation.tried), core.config.controller_backoff_ms)
        return
    known = core.state.controller
    held = known.epoch if known.active else continuation.tried
    mine = isinstance(holder, ZkNode) and holder.owner == core.state.session and number == held
    if mine and not known.active:
        _take_office(core, number, epoch.version)
    elif not mine:
        resign(core)
    if not isinstance(holder, ZkNode):
        _stand(core, number + 1, epoch.version)


def _stand(core: Core, epoch: int, version: int) -> None:
    core.ask(
        AwaitElection(epoch=epoch, version=version),
        ZkMulti(
            ops=(
                ZkSet(path=CONTROLLER_EPOCH, data=str(epoch).encode(), version=version),
                ZkCreate(path=CONTROLLER, data=str(core.config.broker_id).encode(), ephemeral=True),
            )
        ),
    )


def on_elected(core: Core, continuation: AwaitElection, result: ZkResult) -> None:
    """
    Take office, or stay out of it if another broker was first.

    Creating /controller fired the watch of the read before: reading again here as well would leave one watch more
    after every election.
    """
    if isinstance(result, ZkDone):
        _take_office(core, continuation.epoch, continuation.version + 1)
    elif result not in (ZkError.NODE_EXISTS, ZkError.BAD_VERSION):
        run_for_office(core, tried=continuation.epoch if result is ZkError.LOST else 0)


def _take_office(core: Core, epoch: int, version: int) -> None:
    core.state.controller = Controller(active=True, epoch=epoch, epoch_version=version)
    core.observe("controller", {"epoch": epoch, "active": True})
    controller.read(core)


def resign(core: Core) -> None:
    """Leave office: write and command nothing more."""
    if core.state.controller.active:
        core.observe("controller", {"epoch": core.state.controller.epoch, "active": False})
    core.state.controller = Controller()
