"""
The log reader of NATS JetStream as a part of its target; see harness/target/logs.py for every call.

A replica of a stream keeps two logs: the stream's store, which clients are served from, and its Raft group's
log. The first is the replica's log here, with sequences as offsets. The second has the terms, and the same
records as long as it is not cut: `beside` yields these, for who compares the two. A server cuts its Raft log by
term and index, as Raft does, and never the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from weakref import WeakKeyDictionary

from harness.beneath import Folder, RefusedError
from harness.bit_rot import Flip, Where
from harness.logs.record import Record
from harness.logs.stream import Reading, Unread
from harness.target.logs import NodeFiles
from targets.nats.logs.data import MESSAGES, Labels, Place, groups_of, places
from targets.nats.logs.part import LaterLogs
from targets.nats.logs.raft_log import logged
from targets.nats.logs.rot import flip_in
from targets.nats.logs.scan import Scan, record_of
from targets.nats.logs.state import flip_of_state, read_again
from targets.nats.logs.store import OpenError, Store, blocks_in
from targets.nats.logs.survey import FIRST, block_end


class NatsLogs:
    """Reads the store directories of NATS servers."""

    second = LaterLogs.second
    expected = LaterLogs.expected

    def __init__(self, *, has_terms: bool = True) -> None:
        """
        Begin with no store directory known.

        Args:
            has_terms: A reading joins terms from the Raft log. Replicas compact theirs at different times, so that
                of one record one replica may know the term and another not. Where that would be a difference,
                leave terms out: `beside` has them in any case.
        """
        self._has_terms = has_terms
        # What a Raft group replicates is read once, while the store directory is used.
        self._labels: WeakKeyDictionary[Folder, Labels] = WeakKeyDictionary()

    def partitions(self, node: NodeFiles) -> Iterable[tuple[str, int]]:
        """Return the replicas by their streams' names."""
        return list(places(node.folder))

    def reading(self, node: NodeFiles, topic: str, partition: int) -> Reading:
        """Begin to scan a stream's store."""
        return Scan(node.folder, topic, partition, self._known(node.folder) if self._has_terms else None)

    def beside(self, node: NodeFiles, topic: str, partition: int) -> Iterator[Record | Unread]:
        """
        Yield the stream's records that the replica's Raft log holds, in its order: offsets may repeat, or go back.

        A server that runs may compact its log meanwhile: then an Unread is no damage, and reading again helps.

        The offset is the sequence as the entry's leader counted, which is above the store's by what failed there.
        Content and headers are as in a reading, so that equal records have equal digests; the epoch is the term.
        """
        try:
            place = places(node.folder).get((topic, partition))
            groups = [] if place is None else groups_of(node.folder, place, self._known(node.folder))
        except OSError as error:
            yield Unread(why=f"Raft groups: {error.strerror}", first=FIRST)
            return
        end = FIRST
        for found in logged(node.folder, groups):
            if isinstance(found, str):
                yield Unread(why=found, first=end)
                continue
            message = found.message
            end = message.sequence + 1
            yield record_of(message.sequence, message.header, message.payload, found.term)

    def end(self, node: NodeFiles, topic: str, partition: int) -> int | None:
        """Return the log end offset that the newest blocks show."""
        with suppress(OSError, OpenError), _store(node, topic, partition) as store:
            if store is None:
                return None
            for number in reversed(list(store.blocks)):
                with store.source(number) as (source, why):
                    end = None if why else block_end(source)
                if end != 0:
                    return end
            return FIRST
        return None

    def to_flip(self, node: NodeFiles, topic: str, partition: int, where: Where) -> Flip | None:
        """
        Choose a byte of the middle record of the newest block, or of the newest older one that has records.

        The checkpoint is the Raft log: there it is a byte of the middle entry of its newest block. Files of its
        state are in state.py.
        """
        if where.is_state:
            place = places(node.folder).get((topic, partition))
            if place is None:
                return None
            groups = groups_of(node.folder, place, self._known(node.folder))
            return flip_of_state(node.folder, place, groups, where)
        if where is not Where.CHECKPOINT:
            with _store(node, topic, partition) as store:
                return None if store is None else flip_in(store, where)
        place = places(node.folder).get((topic, partition))
        for path in [] if place is None else groups_of(node.folder, place, self._known(node.folder)):
            with _opened(node, f"{path}/{MESSAGES}", path.rpartition("/")[2]) as store:
                flip = None if store is None else flip_in(store, where, offsets=False)
            if flip is not None:
                return flip
        return None

    def read_again(self, node: NodeFiles, flip: Flip) -> str:
        """Return what a file of the replica's state says since a byte of it was flipped, "" if nothing new."""
        return read_again(node.folder, flip)

    def newest_segment(self, node: NodeFiles, topic: str, partition: int) -> Sequence[str]:
        """Return the newest block."""
        with _store(node, topic, partition) as store:
            if store is None or not store.blocks:
                return []
            return [f"{store.path}/{store.blocks[max(store.blocks)]}"]

    def _known(self, data: Folder) -> Labels:
        return self._labels.setdefault(data, {})


@contextmanager
def _store(node: NodeFiles, topic: str, partition: int) -> Iterator[Store | None]:
    """Open a stream's store; None if there is none, or a link in its place."""
    place: Place | None = places(node.folder).get((topic, partition))
    if place is None:
        yield None
        return
    with _opened(node, f"{place.path}/{MESSAGES}", place.stream) as store:
        yield store


@contextmanager
def _opened(node: NodeFiles, path: str, name: str) -> Iterator[Store | None]:
    try:
        folder = node.folder.folder(path)
    except (FileNotFoundError, RefusedError):
        yield None
        return
    with folder:
        yield Store(name=name, path=path, folder=folder, blocks=blocks_in(folder))


LOGS = NatsLogs()
