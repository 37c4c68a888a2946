"""
What histories, schedules and options had while Fencepost knew Kafka on ZooKeeper alone, for those who read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from harness.events import Setup
from harness.events.older import ANY_F, Renamed
from harness.target.traits import Traits
from targets.kafka_family.traits import KAFKA, OURS

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
    ("nemesis", ANY_F): Renamed(
        source="nemesis",
        texts={
            "zookeeper-lost": "metadata-lost",
            "zookeeper-weak": "metadata-weak",
            "cut-off-from-zookeeper": "cut-off-from-metadata",
        },
    ),
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

# What a stored suite counts, of faults.
COUNTED: Final[Mapping[str, str]] = {"zookeeper": "metadata"}

_OF: Final[Mapping[str, Traits]] = {"broker": OURS, "kafka": KAFKA}
_SIMULATED: Final = "sim"


def traits(setup: Setup) -> Traits | None:
    """Return the traits of a run whose set-up has none: settings that are no rules were among its rules."""
    found, rules, simulated = _OF.get(setup.target), setup.rules, setup.host == _SIMULATED
    if found is None:
        return None
    return replace(
        found,
        named=rules.get("named", ""),
        models=rules.get("models", ""),
        exact_order=simulated,
        tells_flushes=not simulated,
        deletes_later=bool(setup.deletes_later),
        idempotence=rules.get("idempotence") == "yes",
    )
