"""
Lines of a server's log about a stream's Raft group; `debug: true` makes it print them.

    skip       an entry of the leader was taken for one that is committed here, without comparing its term
    truncate   the Raft log is cut, by an index of its own; the stream's store is not
    failed     after an error of its disk the server replicates a stream no more; if the metadata, this is said
               of any stream

These lines name the group, whose name is its own for ever; an earlier line of each server says which stream it
replicates.

Source:  log statements of raft.go and jetstream_cluster.go, 2.12.1 to 2.15.3.
"""

from __future__ import annotations

import re
from typing import Final

from harness.target.target import Printed
from targets.nats.streams import place_of

_GROUPS_MAX: Final = 10_000
_FAILED: Final = "failed"
_GROUP: Final = r"(?P<group>S-\S{1,64})"
_MONITOR: Final = re.compile(
    r"Starting stream monitor for '\S{1,256} > (?P<stream>\S{1,256})' \[" + _GROUP + r"\]"
)
_MEANINGS: Final = {
    "skip": re.compile(
        r"RAFT \[\S{1,16} - " + _GROUP + r"\] AppendEntry pindex \d+ below commit \d+, marking success"
    ),
    "truncate": re.compile(
        r"RAFT \[\S{1,16} - " + _GROUP + r"\] Truncating and repairing WAL to Term \d+ Index \d+"
    ),
    _FAILED: re.compile(r"RAFT \[\S{1,16} - " + _GROUP + r"\] Critical write error: "),
}
_STORE_FAILED: Final = re.compile(r"JetStream stream '\S{1,256} > (?P<stream>\S{1,256})' critical write error: ")
_META_FAILED: Final = re.compile(r"RAFT \[\S{1,16} - _meta_\] Critical write error: ")


class Lines:
    """Reads lines, and remembers the stream of each group."""

    def __init__(self) -> None:
        self._streams: dict[str, str] = {}

    def read(self, line: str) -> Printed | None:
        """Return what a line reports; None for any other line, or of a group whose stream is not known."""
        if (monitor := _MONITOR.search(line)) is not None:
            self._streams.pop(monitor["group"], None)
            if len(self._streams) >= _GROUPS_MAX:
                del self._streams[next(iter(self._streams))]
            self._streams[monitor["group"]] = monitor["stream"]
            return None
        for what, pattern in _MEANINGS.items():
            if (found := pattern.search(line)) is not None and found["group"] in self._streams:
                return _about(what, self._streams[found["group"]])
        if (store := _STORE_FAILED.search(line)) is not None:
            return _about(_FAILED, store["stream"])
        if self._streams and _META_FAILED.search(line) is not None:
            return _about(_FAILED, next(iter(self._streams.values())))
        return None


def _about(what: str, stream: str) -> Printed:
    topic, partition = place_of(stream)
    return Printed(what=what, topic=topic, partition=partition)
