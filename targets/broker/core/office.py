"""
Controller election: each broker watches /controller; the first to create it takes office in a new epoch.

    watch /controller -> multi{set /controller_epoch, create /controller} -> office
Who owns /controller, an ephemeral node, is in office; /controller_epoch is what its writes check. Others may write
both at any moment: so a controller of which a write was refused looks again (`on_checked`). It goes on if only the
version changed, begins a new epoch if the node says another one, or cannot be read, and resigns if /controller is
not its own. A /controller that no session owns is nobody's, and is replaced.
Source:  Kafka Replication Design V3, D; KAFKA-6082; Kafka, ControllerMovedException and KafkaController's
         maybeResign, by which a controller whose check fails leaves its office if /controller names another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from targets.broker.core import controller, readable
from targets.broker.core.controller_state import Controller
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    EPOCH_MAX,
    ZkCheck,
    ZkCreate,
    ZkDelete,
    ZkDone,
    ZkError,
    ZkExists,
    ZkGet,
    ZkMulti,
    ZkNode,
    ZkResult,
    ZkSet,
)

# What a write is told where the version that it checks is another, or the node is gone.
_CHECK_FAILED: Final = frozenset({ZkError.BAD_VERSION, ZkError.NO_NODE})
# The session of a node that is not ephemeral.
_NO_SESSION: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitLook:
    """/controller and its epoch are being read; `tried` is the epoch of an election with an unknown result."""

    tried: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitElection:
    """The election of this broker is in flight; `version` is what /controller_epoch has if it is won."""

    epoch: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitNamed:
    """The controller is writing its id into /controller again, as somebody has written something else there."""


def run_for_office(core: Core, tried: int = 0) -> None:
    """
    Watch /controller and try to become controller if it does not exist (V3 D).

    Args:
        tried: the epoch that this broker holds or may have won without an answer, 0 for none.
    """
    _look(core, tried, watch=True)


def _look(core: Core, tried: int, *, watch: bool) -> None:
    core.ask(AwaitLook(tried=tried), ZkExists(path=CONTROLLER, watch=watch), ZkGet(path=CONTROLLER_EPOCH))


def look_again(core: Core) -> None:
    """Read who is in office, unless it is being read; the watch that was set before is set still."""
    if core.state.started and not any(isinstance(each, AwaitLook) for each in core.state.pending.values()):
        _look(core, core.state.controller.tried, watch=False)


def on_fired(core: Core) -> None:
    """Read /controller again: the office may be free, or this broker may have lost it."""
    if core.state.started:
        run_for_office(core, tried=core.state.controller.epoch)


def on_checked(core: Core, results: Iterable[ZkResult]) -> None:
    """Look again if a write that checks the controller's epoch was refused; its writer reads again by itself."""
    if core.state.controller.active and not _CHECK_FAILED.isdisjoint(results):
        look_again(core)


def heed(core: Core, epoch: int = 0) -> None:
    """Look again if this controller's epoch is not the newest that is known, as somebody set the epoch back."""
    core.state.controller_epoch = max(core.state.controller_epoch, min(epoch, EPOCH_MAX))
    known = core.state.controller
    if known.active and known.epoch < core.state.controller_epoch:
        look_again(core)


def on_looked(core: Core, continuation: AwaitLook, holder: ZkResult, epoch: ZkResult) -> None:
    """
    Run for election if the office is free; detect an election that was won but lost its answer.

    Several reads may be in flight: the epoch held, not the one tried, shows whether this broker took office since.
    """
    if ZkError.LOST in (holder, epoch):
        core.after_ms(("office", continuation.tried), core.config.controller_backoff_ms)
        return
    number = readable.read_epoch(core, epoch) if isinstance(epoch, ZkNode) else None
    known = core.state.controller
    if not isinstance(holder, ZkNode) or holder.owner != core.state.session:
        if known.active:
            _tell(core, number, "another broker has /controller, or nobody", "resigns")
        resign(core)
        if not isinstance(holder, ZkNode) or holder.owner == _NO_SESSION:
            _stand(core, number, epoch, holder)
        return
    is_held = number is not None and number == known.epoch >= core.state.controller_epoch
    if known.active and is_held:
        assert isinstance(epoch, ZkNode), "a number was read of it"
        _go_on(core, holder, epoch)
    elif not known.active and number and isinstance(epoch, ZkNode) and number in (continuation.tried, known.tried):
        _take_office(core, number, epoch.version)
    else:
        if known.active:
            _tell(core, number, f"{CONTROLLER_EPOCH} was written by somebody else", "begins a new epoch")
        resign(core)
        _stand(core, number, epoch, holder)


def _go_on(core: Core, holder: ZkNode, epoch: ZkNode) -> None:
    """Stay in office, under the version that is there now; name this broker in /controller if it was rewritten."""
    known = core.state.controller
    if epoch.version != known.epoch_version:
        _tell(core, known.epoch, f"{CONTROLLER_EPOCH} has version {epoch.version}", "goes on")
        known.epoch_version = epoch.version
        controller.read(core)
    if holder.version != known.node_version:
        _tell(core, known.epoch, f"{CONTROLLER} has version {holder.version}", "writes its id there")
        known.node_version = holder.version + 1
        own = ZkSet(path=CONTROLLER, data=_own_id(core), version=holder.version)
        core.ask(AwaitNamed(), ZkMulti(ops=(own,)))


def _tell(core: Core, number: int | None, found: str, then: str) -> None:
    held = core.state.controller.epoch
    read = -1 if number is None else number
    core.observe("office-doubted", {"epoch": held, "found": read, "why": found, "then": then})


def _own_id(core: Core) -> bytes:
    return str(core.config.broker_id).encode()


def _stand(core: Core, number: int | None, epoch: ZkResult, holder: ZkResult) -> None:
    """
    Run for the next epoch after all that are known: somebody may have written a smaller one, or deleted it.

    Args:
        holder: of /controller; one that is this broker's own stays, and one that no session owns is replaced.
    """
    following = max(number or 0, core.state.controller_epoch) + 1
    data = str(following).encode()
    ops: list[ZkSet | ZkCreate | ZkDelete | ZkCheck] = []
    if isinstance(epoch, ZkNode):
        ops.append(ZkSet(path=CONTROLLER_EPOCH, data=data, version=epoch.version))
    else:
        ops.append(ZkCreate(path=CONTROLLER_EPOCH, data=data))
    if isinstance(holder, ZkNode) and holder.owner == core.state.session:
        ops.append(ZkCheck(path=CONTROLLER, version=holder.version))
    else:
        if isinstance(holder, ZkNode):
            ops.append(ZkDelete(path=CONTROLLER, version=holder.version))
        ops.append(ZkCreate(path=CONTROLLER, data=_own_id(core), ephemeral=True))
    core.state.controller.tried = following
    version = epoch.version + 1 if isinstance(epoch, ZkNode) else 0
    core.ask(AwaitElection(epoch=following, version=version), ZkMulti(ops=tuple(ops)))


def on_elected(core: Core, continuation: AwaitElection, result: ZkResult) -> None:
    """
    Take office, or stay out of it if another broker was first.

    Creating /controller fired the watch of the read before: reading again here as well would leave one watch more
    after every election. Who wrote the epoch alone has fired no watch: only then is it read again.
    """
    if isinstance(result, ZkDone):
        resign(core)  # from an earlier epoch, if this one began within an office
        _take_office(core, continuation.epoch, continuation.version)
    elif result is ZkError.LOST:
        run_for_office(core, tried=continuation.epoch)
    elif result is ZkError.REFUSED:
        core.after_ms(("office", 0), core.config.controller_backoff_ms)
    else:
        look_again(core)


def on_named(core: Core, result: ZkResult) -> None:
    """Look again if somebody has written /controller once more."""
    if not isinstance(result, ZkDone):
        core.state.controller.node_version = 0
        look_again(core)


def _take_office(core: Core, epoch: int, version: int) -> None:
    core.state.controller = Controller(active=True, epoch=epoch, epoch_version=version)
    core.observe("controller", {"epoch": epoch, "active": True})
    controller.read(core)


def resign(core: Core) -> None:
    """Leave office: write and command nothing more."""
    if core.state.controller.active:
        core.observe("controller", {"epoch": core.state.controller.epoch, "active": False})
    core.state.controller = Controller()
