"""
Damaged batches of a replica's own log: each is reported once, none is served, and a follower copies it again.

A log is looked through all the time, some of it with every checkpoint, so that what nobody reads is found too.
A leader keeps what it has: the batches behind the damage are whole, and may be the only ones. It answers
CORRUPT_MESSAGE where the damage begins. A follower fetches from there, throws the damaged batch away, and puts
its leader's in its place: if that is the batch that was written there, nothing else changes. Else the follower
cuts its log there, and copies all behind it again. If the leader's batch is damaged too, or the follower becomes
leader before the answer, it keeps what it has.
A member of the ISR must not cut more than it has to: it may be elected before it has copied the rest, and then
all others cut their logs to its own.
Source:  Kafka, CorruptRecordException (error 2), KafkaStorageException (error 56). Apache Kafka looks for damage
         in what it is sent and what it recovers, and not in what it has.
"""

from __future__ import annotations

from targets.broker.core.events import Exit
from targets.broker.core.log_port import Damaged, DamagedError
from targets.broker.core.messages import ErrorCode
from targets.broker.core.state import Core, Replica, Role


def found(core: Core, replica: Replica, damaged: Damaged) -> None:
    """Report a damaged batch, unless it was reported before, and remember it until it is cut."""
    if damaged.offset in replica.damages:
        return
    replica.damages[damaged.offset] = damaged.end
    replica.repair_failed = False
    core.observe_replica(
        "corrupt",
        replica,
        base=damaged.offset,
        end=damaged.end,
        path=damaged.path,
        position=damaged.position,
        what=damaged.what,
        role=replica.role.value,
    )


def refusal(core: Core, replica: Replica, error: DamagedError | OSError) -> ErrorCode:
    """
    Return the error for a reader of a log that cannot be read as it was written.

    A disk that cannot be read ends the broker, once the reader was answered (V3, 4).
    """
    if isinstance(error, DamagedError):
        found(core, replica, error.damaged)
        return ErrorCode.CORRUPT_MESSAGE
    core.ending = core.ending or Exit(reason=f"{replica.tp}: {error!r}")
    return ErrorCode.KAFKA_STORAGE_ERROR


def repair_from(replica: Replica) -> int | None:
    """Return the offset from which on a follower is to copy its leader's log again; None if there is none."""
    if not replica.damages or replica.repair_failed or replica.role is not Role.FOLLOWER:
        return None
    return min(replica.damages)


def mended(core: Core, replica: Replica, offset: int) -> None:
    """Report that a damaged batch was written again as the leader has it, and forget it."""
    end = replica.damages.pop(offset)
    core.observe_replica("repaired", replica, base=offset, end=end, leader=replica.leader)


def was_cut(replica: Replica) -> None:
    """Forget the damages that a truncation has removed."""
    end = replica.log.end_offset
    replica.damages = {offset: until for offset, until in replica.damages.items() if offset < end}
    replica.checked_to = min(replica.checked_to, end)


def start_moved(replica: Replica) -> None:
    """Forget the damages that begin below the log's new start; one that reaches past it is found again."""
    start = replica.log.start_offset
    replica.damages = {offset: until for offset, until in replica.damages.items() if offset >= start}
    replica.checked_to = max(replica.checked_to, start)


def look_through(core: Core) -> None:
    """
    Read on in every replica's log, one after another, so many bytes in all; the next time goes on from there.

    What could not be repaired may be tried again.
    """
    replicas = sorted(core.state.replicas.items())
    last = core.state.checking
    turn = next((at for at, (tp, _) in enumerate(replicas) if last is not None and tp >= last), 0)
    left = core.config.check_bytes_max
    for tp, replica in (*replicas[turn:], *replicas[:turn]):
        core.state.checking = tp
        replica.repair_failed = False
        left = _look(core, replica, left)
        if left <= 0:
            return
        replica.checked_to = replica.log.start_offset


def _look(core: Core, replica: Replica, left: int) -> int:
    """Read on in a replica's log up to its end, or so many bytes; return how many are left."""
    while replica.checked_to < replica.log.end_offset:
        if left <= 0:
            return 0
        try:
            replica.checked_to, read = replica.log.check(replica.checked_to, left)
        except DamagedError as error:
            found(core, replica, error.damaged)
            # Behind a header that cannot be read the next batch may not be found.
            beyond = error.damaged.end if error.damaged.offset >= replica.checked_to else replica.log.end_offset
            replica.checked_to = max(beyond, replica.checked_to)
        else:
            left -= read
    return max(left, 1)
