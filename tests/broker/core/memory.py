"""A log in a list and a ZooKeeper that answers at once: everything a core touches, for tests."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from targets.broker.core.log_port import (
    LATEST_FORMAT,
    NEVER_YET,
    AppendOrderError,
    Cleaned,
    Damaged,
    DamagedError,
    File,
    LeoAfterCut,
    Moment,
    Recovery,
)
from targets.broker.core.messages import NO_TOPIC_ID, Batch, TopicPartition
from targets.broker.core.sequences import Sequences
from targets.broker.core.tombstones import TombstoneDelay
from targets.broker.core.zookeeper import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    PartitionState,
    ZkError,
    ZkOp,
    ZkResult,
    encode_state,
    leader_and_isr_path,
)
from targets.simulator.broker.coordination import answer, asked, state_in
from targets.simulator.zookeeper import ops
from targets.simulator.zookeeper.tree import Tree

TP = TopicPartition("t", 0)
# Above every session id.
CALLBACKS_FIRST = 1_000_000


def batch(count: int = 1, *, base: int = 0, epoch: int = -1, crc: int = 7) -> Batch:
    """Return a batch of so many records, as a producer sends it (base 0) or as a leader stored it."""
    last = base + count - 1
    return Batch(base_offset=base, last_offset=last, leader_epoch=epoch, crc=crc, size=61 + count, payload=b"")


@dataclass(slots=True)
class MemoryLog:
    """A LogPort with its batches in a list."""

    tp: TopicPartition
    batches: list[Batch] = field(default_factory=list)
    start_offset: int = 0
    end_offset: int = 0
    epoch_writes: list[tuple[list[tuple[int, int]], bool, int]] = field(default_factory=list)
    deleted: bool = False
    topic_id: int = NO_TOPIC_ID
    rotten: set[int] = field(default_factory=set)
    broken: bool = False
    hidden: bool = False
    rolls: int = 0
    formats: list[int] = field(default_factory=list)  # of the batches that were appended as leader
    configured: tuple[int, int] | None = None  # when it is to begin new files, if somebody said so
    # Up to which offset it was to be cleaned, each time, and with how many bytes; what it answers, in this order.
    cleans: list[tuple[int, int]] = field(default_factory=list)
    delays: list[TombstoneDelay] = field(default_factory=list)
    cleaned: list[Cleaned] = field(default_factory=list)

    def append_as_leader(
        self, batches: Sequence[Batch], leader_epoch: int, message_format: int = LATEST_FORMAT
    ) -> tuple[int, int]:
        base = self.end_offset
        self.formats += [message_format] * len(batches)
        for item in batches:
            first = self.end_offset
            last = first + item.last_offset - item.base_offset
            self.batches.append(replace(item, base_offset=first, last_offset=last, leader_epoch=leader_epoch))
            self.end_offset = last + 1
        return base, self.end_offset

    def append_as_follower(self, batches: Sequence[Batch]) -> tuple[int, int]:
        base = batches[0].base_offset
        for item in batches:
            if item.base_offset < self.end_offset:
                raise AppendOrderError(f"{item.base_offset} < {self.end_offset}")
            self.batches.append(item)
            self.end_offset = item.next_offset
        return base, self.end_offset

    def read(
        self, offset: int, end_offset: int, max_bytes: int, *, at_least_one: bool = True
    ) -> tuple[Batch, ...]:
        found: list[Batch] = []
        for item in self.batches:
            if item.last_offset >= offset and item.base_offset < end_offset:
                if self.broken:
                    raise OSError(errno.EIO, "Input/output error")
                if item.base_offset in self.rotten:
                    if not found:
                        raise DamagedError(self.damaged(item))
                    break
                full = sum(b.size for b in found) + item.size > max_bytes
                if full and (found or not at_least_one):
                    break
                found.append(item)
        return tuple(found)

    def headers(self, offset: int) -> Iterator[Batch]:
        yield from (item for item in self.batches if item.last_offset >= offset)

    def damaged(self, item: Batch) -> Damaged:
        """Return how a rotten batch is told of."""
        path = f"{self.tp}/{0:020d}.log"
        position = self.position_of(item.base_offset)
        return Damaged(
            offset=item.base_offset, end=item.next_offset, path=path, position=position, what="its CRC differs"
        )

    def mend(self, batch: Batch) -> bool:
        if batch not in self.batches:
            return False
        self.rotten.discard(batch.base_offset)
        return True

    def check(self, offset: int, max_bytes: int) -> tuple[int, int]:
        found = self.read(offset, self.end_offset, max_bytes)
        return found[-1].next_offset if found else self.end_offset, sum(item.size for item in found)

    def position_of(self, offset: int) -> int:
        return sum(b.size for b in self.batches if b.last_offset < offset)

    def truncate_to(self, offset: int, leo: LeoAfterCut) -> int:
        self.batches = [item for item in self.batches if item.last_offset < offset]
        self.rotten = {base for base in self.rotten if base < offset}
        physical = self.batches[-1].next_offset if self.batches else self.start_offset
        self.end_offset = offset if leo is LeoAfterCut.TARGET else physical
        return self.end_offset

    def truncate_fully(self, offset: int) -> None:
        self.batches, self.rotten = [], set()
        self.start_offset = self.end_offset = offset

    def advance_start(self, offset: int) -> None:
        assert offset <= self.end_offset
        self.start_offset = max(self.start_offset, offset)
        self.batches = [item for item in self.batches if item.last_offset >= self.start_offset]

    def files(self) -> tuple[File, ...]:
        """Return a file for each batch: a batch's crc serves as its time here."""
        ends = [item.base_offset for item in self.batches[1:]]
        found, latest = [], -1
        for item, end in zip(self.batches, [*ends, self.end_offset], strict=False):
            latest = max(latest, item.crc)
            found.append(File(item.base_offset, end, item.size, latest))
        return tuple(found)

    def roll(self) -> None:
        self.rolls += 1

    def configure(self, segment_bytes: int, segment_ms: int) -> None:
        self.configured = (segment_bytes, segment_ms)

    def clean(self, upto: int, delay: TombstoneDelay, bytes_max: int) -> Cleaned:
        self.cleans.append((upto, bytes_max))
        self.delays.append(delay)
        return self.cleaned.pop(0) if self.cleaned else Cleaned()

    def first_offset_at(self, timestamp_ms: int) -> Moment:
        """Return the first batch that is not earlier; a batch's crc serves as its time here."""
        if self.hidden:
            raise DamagedError(self.damaged(self.batches[0]))
        late = (Moment(item.base_offset, item.crc) for item in self.batches if item.crc >= timestamp_ms)
        return next(late, NEVER_YET)

    def write_epochs(self, entries: Sequence[tuple[int, int]], *, flush: bool) -> None:
        self.epoch_writes.append(([tuple(e) for e in entries], flush, self.end_offset))  # type: ignore[misc]

    def adopt(self, topic_id: int) -> None:
        self.topic_id = topic_id

    def delete(self) -> None:
        self.deleted = True


def log_of(*spans: tuple[int, int], tp: TopicPartition = TP) -> MemoryLog:
    """Return a log of batches given as (leader epoch, records)."""
    log = MemoryLog(tp)
    for epoch, count in spans:
        log.append_as_leader([batch(count)], epoch)
    return log


def recovery(
    log: MemoryLog,
    *,
    high_watermark: int = 0,
    file_epochs: Sequence[tuple[int, int]] | None = None,
    clean: bool = True,
) -> Recovery:
    """Return the result of opening a log; by default the epoch checkpoint holds the epochs after the last -1."""
    epochs: list[tuple[int, int]] = []
    for item in log.batches:
        if not epochs or epochs[-1][0] != item.leader_epoch:
            epochs.append((item.leader_epoch, item.base_offset))
    if file_epochs is None:
        without = [at for at, (epoch, _) in enumerate(epochs) if epoch < 0]
        file_epochs = epochs[without[-1] + 1 :] if without else epochs
    return Recovery(
        clean=clean,
        cut_bytes=0,
        reason="clean",
        batch_epochs=tuple(epochs),
        file_epochs=tuple(file_epochs),
        high_watermark=high_watermark,
        sequences=Sequences.of(log.batches),
    )


class MemoryZk(Tree):
    """
    The simulator's ZooKeeper tree, which applies each operation at once.

    Watches fire once, into `due`: (session, path). With callbacks_differ, two watches that one session sets on a
    path both fire, as in a client that is given a new callback each time.
    """

    def __init__(self, *, callbacks_differ: bool = False) -> None:
        super().__init__(self._is_due)
        self.callbacks_differ = callbacks_differ
        self.due: list[tuple[int, str]] = []
        self._sessions: dict[int, int] = {}  # watcher -> its session

    def ask(self, op: ZkOp, session: int) -> ZkResult:
        """Apply one operation of a session; without a session (0) its answer is lost."""
        if session == 0:
            return ZkError.LOST
        watcher = CALLBACKS_FIRST + len(self._sessions) if self.callbacks_differ else session
        self._sessions[watcher] = session
        return answer(self.do(asked((op,))[0], session, watcher))

    def _is_due(self, watcher: int, _kind: str, path: str) -> None:
        self.due.append((self._sessions[watcher], path))

    @property
    def watches(self) -> list[tuple[str, str, int]]:
        """Every watch that is set: kind, path and session."""
        return [(*key, self._sessions[watcher]) for key, waiting in self._watches.items() for watcher in waiting]

    def forget_session(self, session: int) -> None:
        """Drop a session's watches and the notifications due to it."""
        for watcher in [each for each, of in self._sessions.items() if of == session]:
            self.forget(watcher)
        self.due = [due for due in self.due if due[0] != session]

    def close_session(self, session: int) -> None:
        """Remove a session's ephemeral nodes and its watches, as its expiry does."""
        self.forget_session(session)
        if session:
            self.end_session(session)

    # --- reads and writes by a test ------------------------------------------------------------------------------
    def remove(self, path: str) -> None:
        """Remove a node, as another client would."""
        self.write((ops.Delete(path=path),), 0)

    def put(self, path: str, data: bytes = b"", *, owner: int = 0) -> None:
        """Write a node and its missing parents, as another client would."""
        parent = path.rpartition("/")[0]
        if parent and parent not in self.nodes:
            self.put(parent)
        write = ops.Set(path=path, data=data, version=-1) if path in self.nodes else None
        self.write((write or ops.Create(path=path, data=data, ephemeral=owner != 0),), owner)

    def seize(self, epoch: int, *, owner: int = 99) -> None:
        """Write /controller and the next epoch as another broker that takes office; its watches are not fired."""
        self.nodes.pop(CONTROLLER, None)
        self.put(CONTROLLER, b"9", owner=owner)
        self.put(CONTROLLER_EPOCH, str(epoch).encode())

    def state(self, tp: TopicPartition = TP) -> PartitionState:
        """Return a partition's leaderAndISR state."""
        return state_in(self.nodes[leader_and_isr_path(tp)])

    def put_state(
        self,
        leader: int,
        epoch: int,
        isr: Sequence[int],
        *,
        controller_epoch: int = 1,
        tp: TopicPartition = TP,
        topic_id: int = NO_TOPIC_ID,
    ) -> int:
        """Write leaderAndISR as a controller would; return the node's version."""
        state = PartitionState(
            leader=leader,
            leader_epoch=epoch,
            isr=tuple(isr),
            controller_epoch=controller_epoch,
            zk_version=-1,
            topic_id=topic_id,
        )
        self.put(leader_and_isr_path(tp), encode_state(state))
        return self.nodes[leader_and_isr_path(tp)].version
