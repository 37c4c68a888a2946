"""
The names that histories, schedules and options had while Fencepost knew Kafka on ZooKeeper alone.

harness/events/older.py and harness/scenario/words.py read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.events.older import ANY_F, Renamed

# The end of a link, and the process of an op.
_ENDS: Final = {"zookeeper": "metadata"}
# The messages of rules of links, and of the frames that they take.
_MESSAGES: Final = {
    "Fetch": "fetch",
    "LeaderAndIsr": "command",
    "OffsetForLeaderEpoch": "epoch-question",
    "StopReplica": "stop-command",
    "ZooKeeper": "metadata-request",
}
_VERSION: Final = {"zk_version": "version"}

OLDER: Final[Mapping[tuple[str, str], Renamed]] = {
    ("zookeeper", ANY_F): Renamed(
        source="metadata", f={"leaderAndISR": "state", "registered": "members"}, keys=_VERSION, texts=_ENDS
    ),
    ("broker", "registered"): Renamed(source="broker", f={"registered": "member"}, keys={"czxid": "incarnation"}),
    ("broker", "isr"): Renamed(source="broker", keys=_VERSION),
    ("broker", "unreadable-node"): Renamed(source="broker", f={"unreadable-node": "unreadable-metadata"}),
    ("fabric", ANY_F): Renamed(source="fabric", f={"commanded": "learned"}, texts={**_ENDS, **_MESSAGES}),
    ("simulator", "world"): Renamed(
        source="simulator",
        keys={
            "zookeeper_faults_asked": "metadata_faults_asked",
            "zookeeper_faults_bit": "metadata_faults_bit",
        },
    ),
}

# Of scenarios and schedules: old word -> word now. Options may have the old name of a fault too.
OLDER_WORDS: Final = {
    "end": _ENDS,
    "message": _MESSAGES,
    "fault": {"cut-from-zookeeper": "cut-from-metadata"},
}
