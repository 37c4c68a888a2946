"""
Read the log of a stream's Raft group: the records in it, in its order, and the term of each.

A stream's store has no terms. A record's term stands in the Raft log alone, as long as its entry's bytes are
there: a snapshot deletes entries with tombstones, and their bytes stay until a block goes, so that they are read
too. What was cut from the log, because another leader's entries took its place, is cut from the files.

An entry belongs to a record if timestamp, header and payload are equal. Its sequence, which its leader counted,
is the record's, or higher by the number of the leader's failures. Where the store holds other content at that
sequence, the record has no known term: this is how a store that was never cut back differs from its Raft log.

Source:  nats-server 2.15.3, server/raft.go, server/jetstream_cluster.go, applyStreamMsgOp; server/filestore.go,
         compactLocked, Truncate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from harness.beneath import Folder
from harness.logs.files import Seen
from harness.logs.names import shown
from harness.logs.record import NO_EPOCH
from targets.nats import eras
from targets.nats.logs.blocks import Damage
from targets.nats.logs.data import MESSAGES
from targets.nats.logs.entries import AppendEntry, Malformed, StreamMessage, append_entry, stream_messages
from targets.nats.logs.store import Store, blocks_in, reason, seen_blocks

# A Raft log is cut at 8 MB, or after a minute; this many entries take some 60 MB here.
TERMS_MAX: Final = 200_000
# A leader's clock has nanoseconds.
_SAME_TIME_MAX: Final = 64
_DIGEST_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """A record in a Raft log, its entry's place, and its term, counted from the stream's first group on."""

    term: int
    index: int
    message: StreamMessage


def logged(data: Folder, groups: Sequence[str]) -> Iterator[Logged | str]:
    """
    Yield the records of Raft logs in their order, and as text what cannot be read.

    Args:
        groups: The groups' folders below the store directory, from data.groups_of.
    """
    for path in groups:
        name = f"{path}/{MESSAGES}"
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(data.folder(name))
                store = Store(name=path.rpartition("/")[2], path=name, folder=folder, blocks=blocks_in(folder))
            except OSError as error:
                yield f"{shown(name)}: {reason(error)}"
                continue
            yield from _logged(store)


def seen_logs(data: Folder, groups: Sequence[str]) -> dict[str, Seen]:
    """Return the blocks of Raft logs, to see whether they changed; a log that cannot be listed has none."""
    found: dict[str, Seen] = {}
    for path in groups:
        with suppress(OSError), data.folder(f"{path}/{MESSAGES}") as folder:
            found[path] = seen_blocks(folder)
    return found


def _logged(store: Store) -> Iterator[Logged | str]:
    newest, before = max(store.blocks, default=0), eras.before(store.name)
    for number, found in store.records():
        if isinstance(found, Damage):
            if not (found.torn and number == newest):
                yield f"{store.file(number)}, {found.text}"
            continue
        if not found.is_live:
            continue
        try:
            appended = append_entry(found.body)
            yield from _messages(appended, found.sequence, before)
        except Malformed as error:
            yield f"{store.file(number)}, position {found.position}: entry {found.sequence}, {error}"


def _messages(appended: AppendEntry, index: int, before: int) -> Iterator[Logged]:
    for message in stream_messages(appended):
        if not message.skips:
            yield Logged(term=before + appended.term, index=index, message=message)


class Terms:
    """The terms of a stream's records, as far as its Raft log has them."""

    def __init__(self) -> None:
        # By timestamp: (sequence as the leader counted, term, digest of the content) of each entry.
        self._known: dict[int, tuple[tuple[int, int, bytes], ...]] = {}
        self._count = 0
        self.is_full = False

    def add(self, found: Logged) -> None:
        """Keep the term of a record in the Raft log."""
        self.is_full = self._count >= TERMS_MAX
        if self.is_full:
            return
        message = found.message
        entries = self._known.get(message.timestamp_ns, ())
        if len(entries) >= _SAME_TIME_MAX:
            return
        entry = message.sequence, found.term, _digest(message.header, message.payload)
        self._known[message.timestamp_ns] = (*entries, entry)
        self._count += 1

    def at(self, sequence: int, timestamp_ns: int) -> int:
        """Return the term of a record whose content was not looked at; -1 if it is not known."""
        entries = self._known.get(timestamp_ns, ())
        return next((term for counted, term, _ in entries if counted >= sequence), NO_EPOCH)

    def of(self, sequence: int, timestamp_ns: int, header: bytes, payload: bytes) -> int:
        """Return the term of a record; -1 if it is not known."""
        entries = self._known.get(timestamp_ns)
        if entries is None:
            return NO_EPOCH
        digest = _digest(header, payload)
        return next((term for counted, term, each in entries if counted >= sequence and each == digest), NO_EPOCH)


def _digest(header: bytes, payload: bytes) -> bytes:
    return blake2b(
        payload, key=blake2b(header, digest_size=_DIGEST_BYTES).digest(), digest_size=_DIGEST_BYTES
    ).digest()
