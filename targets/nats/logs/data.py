"""
Find the streams of a server's store directory, and the Raft group that replicates each.

    DATA/jetstream/ACCOUNT/streams/STREAM/msgs/N.blk    a stream's store; the account is $G if none is configured
    DATA/jetstream/$SYS/_js_/GROUP/meta.inf             a Raft group; its metadata name what it replicates
    DATA/jetstream/$SYS/_js_/GROUP/msgs/N.blk           its log
    DATA/jetstream/$SYS/_js_/_meta_                     the group that assigns streams to servers

A group's folder has a random name, such as S-R3F-KMUcprGm. But the server labels its store: in `meta.inf` stand
`"metadata": {"type": "stream", "account": "$G", "stream": "orders-0"}`. A stream of one replica has no group. One
that was made anew, or moved, may have several for a while.

The topic of a stream is its name in the account $G, `ACCOUNT.NAME` in any other; NATS has no dots in streams'
names. Of two streams of one place, `x` and `x-0`, the numbered one counts. A name that is a stream's and is no
folder (a link, a FIFO) is a replica that cannot be read: it is returned, and its reading reports why.

Source:  nats-server 2.15.3, server/jetstream_cluster.go, createRaftGroup; server/filestore.go; the same in 2.12.1.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from harness import limits
from harness.beneath import Folder, RefusedError
from harness.logs.source import opened
from targets.nats.streams import place_of, stream_of

ROOT: Final = "jetstream"
STREAMS: Final = "streams"
GROUPS: Final = "_js_"
MESSAGES: Final = "msgs"
META: Final = "meta.inf"
# The account of clients that name none: its streams have plain names.
OUR_ACCOUNT: Final = "$G"
# A stream's configuration may have thousands of subjects; a group's has some hundred bytes.
_META_BYTES_MAX: Final = 64 * 1024

# What a group replicates by its folder, (account, stream), or None if that is no stream.
Labels = dict[str, tuple[str, str] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """
    A stream in a store directory.

    Attributes:
        path: Its folder, below the store directory.
    """

    account: str
    stream: str

    @property
    def path(self) -> str:
        """The stream's folder, below the store directory."""
        return f"{ROOT}/{self.account}/{STREAMS}/{self.stream}"


def places(data: Folder) -> dict[tuple[str, int], Place]:
    """
    Return the streams of a store directory by (topic, partition), sorted.

    Raises:
        OSError: A folder cannot be listed, or there are more than FOLDER_NAMES_MAX streams.
    """
    found: dict[tuple[str, int], Place] = {}
    for account, stream in _streams(data):
        topic, partition = place_of(stream)
        named = topic if account == OUR_ACCOUNT else f"{account}.{topic}"
        if (named, partition) not in found or stream == stream_of(topic, partition):
            found[named, partition] = Place(account=account, stream=stream)
    return dict(sorted(found.items()))


def groups_of(data: Folder, place: Place, labels: Labels) -> list[str]:
    """
    Return the folders of the Raft groups that replicate a stream, below the store directory.

    A group whose `meta.inf` cannot be read belongs to no stream.

    Args:
        labels: What was read before, to which it adds: a group's label never changes.

    Raises:
        OSError: A folder cannot be listed, or there are more than FOLDER_NAMES_MAX groups.
    """
    wanted = place.account, place.stream
    return [path for path in _groups(data) if _label(data, path, labels) == wanted]


def _streams(data: Folder) -> Iterator[tuple[str, str]]:
    """Yield the account and the name of each stream."""
    count = 0
    for account in _accounts(data):
        with suppress(FileNotFoundError, NotADirectoryError, RefusedError):
            with data.folder(f"{ROOT}/{account}/{STREAMS}") as folder:
                names = [entry.name for entry in folder.entries() if not entry.is_file(follow_symlinks=False)]
            count += len(names)
            if count > limits.FOLDER_NAMES_MAX:
                break
            yield from ((account, name) for name in sorted(names))
    if count > limits.FOLDER_NAMES_MAX:
        raise RefusedError(
            errno.EOVERFLOW, f"more than {limits.FOLDER_NAMES_MAX} streams, the limit of this reader"
        )


def _groups(data: Folder) -> list[str]:
    found: list[str] = []
    for account in _accounts(data):
        path = f"{ROOT}/{account}/{GROUPS}"
        with suppress(FileNotFoundError, NotADirectoryError, RefusedError), data.folder(path) as folder:
            found += (f"{path}/{each.name}" for each in folder.entries() if each.is_dir(follow_symlinks=False))
        if len(found) > limits.FOLDER_NAMES_MAX:
            text = f"more than {limits.FOLDER_NAMES_MAX} Raft groups, the limit of this reader"
            raise RefusedError(errno.EOVERFLOW, text)
    return sorted(found)


def _accounts(data: Folder) -> list[str]:
    try:
        with data.folder(ROOT) as root:
            return sorted(each.name for each in root.entries() if each.is_dir(follow_symlinks=False))
    except (FileNotFoundError, RefusedError):
        return []


def _label(data: Folder, path: str, labels: Labels) -> tuple[str, str] | None:
    if path not in labels:
        try:
            with opened(data, f"{path}/{META}") as source:
                text = source.at(0, _META_BYTES_MAX)
            label = json.loads(text)["metadata"]
            found = label["account"], label["stream"]
        except (OSError, ValueError, RecursionError, TypeError, KeyError):
            # It may be written just now, so that it is read again.
            return None
        is_stream = label.get("type") == "stream" and all(isinstance(each, str) for each in found)
        labels[path] = found if is_stream else None
    return labels[path]
