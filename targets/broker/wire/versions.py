"""
The APIs and versions of this broker: one row each.

Between brokers each protocol knows the versions that its release knew (`peer_rows`), and a single rule that is
switched on brings the version whose fields it needs. An API that a protocol does not know is neither listed nor
answered: `hw` has no OffsetForLeaderEpoch.
Clients get the same versions of Produce, Fetch and ListOffsets under every protocol (`client_rows`): record
batch v2 and zstd need newer ones than the old releases had. For all other APIs they see what brokers see.
librdkafka reads features from the lowest version advertised, so Produce and Fetch are advertised from 0 though
record batch v2 needs 3 and 4. It compresses with zstd only with Produce 7 and Fetch 10. It trusts leader epochs
from Metadata 9 on, so here it never asks where they end.
Source:  Kafka's message definitions; KIP-35 (ApiVersions), KIP-101, KIP-227, KIP-279, KIP-320, KIP-380.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from targets.broker.core.inter_broker import spoken_by
from targets.broker.core.rules import FetchSessions, Rules, TruncateTo

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
LEADER_AND_ISR: Final = 4
STOP_REPLICA: Final = 5
FIND_COORDINATOR: Final = 10
API_VERSIONS: Final = 18
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
DELETE_RECORDS: Final = 21
INIT_PRODUCER_ID: Final = 22
OFFSET_FOR_LEADER_EPOCH: Final = 23
DESCRIBE_CONFIGS: Final = 32
ALTER_CONFIGS: Final = 33
DESCRIBE_LOG_DIRS: Final = 35
CREATE_PARTITIONS: Final = 37
ELECT_LEADERS: Final = 43
INCREMENTAL_ALTER_CONFIGS: Final = 44
ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46

# What only the controller may ask for.
COMMANDS: Final = (LEADER_AND_ISR, STOP_REPLICA)

# In place of a version: the protocol does not know the API.
NOT_KNOWN: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    One API.

    Attributes:
        first, last: the versions served, inclusive.
        advertised_first: the first version in ApiVersions answers, which end at `last`.
        peer: protocol -> newest version between brokers, or NOT_KNOWN; `last` for a protocol without an entry.
    """

    key: int
    name: str
    first: int
    last: int
    advertised_first: int
    peer: Mapping[str, int] = field(default_factory=dict)


Rows: TypeAlias = Mapping[int, Row]


def _under(*, hw: int, kip101: int, kip279: int, kip320: int) -> Mapping[str, int]:
    """Return the newest versions between brokers by protocol; kip380 uses the newest of all."""
    return MappingProxyType(
        {
            "hw": hw,
            "kip101": kip101,
            "kip101-text": kip101,
            "kip279": kip279,
            "kip279-2.0.1": kip279,
            "kip320": kip320,
        }
    )


# Of releases after those that have a protocol of their own; the newest has them.
_LATER: Final = _under(hw=NOT_KNOWN, kip101=NOT_KNOWN, kip279=NOT_KNOWN, kip320=NOT_KNOWN)
_COMMANDS: Final = _under(hw=0, kip101=0, kip279=0, kip320=0)

# All APIs of this broker, under any protocol.
ROWS: Final[Rows] = MappingProxyType(
    {
        row.key: row
        for row in (
            Row(key=PRODUCE, name="produce", first=3, last=8, advertised_first=0),
            Row(
                key=FETCH,
                name="fetch",
                first=4,
                last=12,
                advertised_first=0,
                peer=_under(hw=5, kip101=5, kip279=8, kip320=10),
            ),
            Row(
                key=LIST_OFFSETS,
                name="list_offsets",
                first=1,
                last=6,
                advertised_first=1,
                peer=_under(hw=1, kip101=1, kip279=2, kip320=4),
            ),
            Row(key=METADATA, name="metadata", first=0, last=8, advertised_first=0),
            Row(key=LEADER_AND_ISR, name="leader_and_isr", first=0, last=2, advertised_first=0, peer=_COMMANDS),
            Row(key=STOP_REPLICA, name="stop_replica", first=0, last=2, advertised_first=0, peer=_COMMANDS),
            Row(key=FIND_COORDINATOR, name="find_coordinator", first=0, last=2, advertised_first=0),
            Row(key=API_VERSIONS, name="api_versions", first=0, last=3, advertised_first=0),
            Row(key=CREATE_TOPICS, name="create_topics", first=2, last=4, advertised_first=2),
            Row(key=DELETE_TOPICS, name="delete_topics", first=1, last=3, advertised_first=1),
            Row(
                key=DELETE_RECORDS,
                name="delete_records",
                first=0,
                last=1,
                advertised_first=0,
                peer=_under(hw=NOT_KNOWN, kip101=1, kip279=1, kip320=1),  # KIP-107, in 0.11.0
            ),
            Row(
                key=INIT_PRODUCER_ID,
                name="init_producer_id",
                first=0,
                last=4,
                advertised_first=0,
                peer=_under(hw=NOT_KNOWN, kip101=0, kip279=1, kip320=1),  # KIP-98, in 0.11.0
            ),
            Row(
                key=OFFSET_FOR_LEADER_EPOCH,
                name="offset_for_leader_epoch",
                first=0,
                last=4,
                advertised_first=0,
                peer=_under(hw=NOT_KNOWN, kip101=0, kip279=1, kip320=2),
            ),
            Row(
                key=CREATE_PARTITIONS,
                name="create_partitions",
                first=0,
                last=1,
                advertised_first=0,
                peer=_under(hw=NOT_KNOWN, kip101=1, kip279=1, kip320=1),  # KIP-195, in 1.0
            ),
            # KIP-183, in 2.2; v1 and v2 (KIP-460) in 2.4.
            Row(key=ELECT_LEADERS, name="elect_leaders", first=0, last=2, advertised_first=0, peer=_LATER),
            # KIP-455, in 2.4.
            Row(
                key=ALTER_PARTITION_REASSIGNMENTS,
                name="alter_partition_reassignments",
                first=0,
                last=0,
                advertised_first=0,
                peer=_LATER,
            ),
            Row(
                key=LIST_PARTITION_REASSIGNMENTS,
                name="list_partition_reassignments",
                first=0,
                last=0,
                advertised_first=0,
                peer=_LATER,
            ),
            Row(
                key=DESCRIBE_CONFIGS,
                name="describe_configs",
                first=1,
                last=4,
                advertised_first=1,
                peer=_under(hw=NOT_KNOWN, kip101=1, kip279=2, kip320=2),  # KIP-133, in 0.11.0; v1 in 1.1
            ),
            Row(
                key=ALTER_CONFIGS,
                name="alter_configs",
                first=0,
                last=2,
                advertised_first=0,
                peer=_under(hw=NOT_KNOWN, kip101=0, kip279=1, kip320=1),  # KIP-133, in 0.11.0; v1 in 2.0
            ),
            # KIP-339, in 2.3.
            Row(
                key=INCREMENTAL_ALTER_CONFIGS,
                name="incremental_alter_configs",
                first=0,
                last=1,
                advertised_first=0,
                peer=_LATER,
            ),
            Row(
                key=DESCRIBE_LOG_DIRS,
                name="describe_log_dirs",
                first=1,
                last=4,
                advertised_first=1,
                peer=_under(hw=NOT_KNOWN, kip101=NOT_KNOWN, kip279=1, kip320=1),  # KIP-113, in 1.0; v1 in 2.0
            ),
        )
    }
)
_FOR_CLIENTS: Final = (PRODUCE, FETCH, LIST_OFFSETS)
# The newest versions for clients, who know no ids: those above are for brokers alone.
_CLIENT_LAST: Final[Mapping[int, int]] = MappingProxyType({FETCH: 11, LIST_OFFSETS: 5, OFFSET_FOR_LEADER_EPOCH: 3})


def peer_rows(protocol: str, rules: Rules) -> Rows:
    """Return the APIs that a broker uses with other brokers, each up to its newest version."""
    needed, spoken = _needed(rules), spoken_by(protocol)
    known = {key: max(row.peer.get(spoken, row.last), needed.get(key, NOT_KNOWN)) for key, row in ROWS.items()}
    return {key: replace(row, last=known[key]) for key, row in ROWS.items() if known[key] >= row.first}


def _needed(rules: Rules) -> Mapping[int, int]:
    """Return the versions whose fields the rules need, whatever the protocol's name."""
    needed: dict[int, int] = {}
    if rules.truncate_to is TruncateTo.ONE_ANSWER:
        needed[OFFSET_FOR_LEADER_EPOCH] = 0
    if rules.truncate_to is TruncateTo.EPOCH_WALK:
        needed[OFFSET_FOR_LEADER_EPOCH] = 1
    if rules.fence_truncation_query:
        needed[OFFSET_FOR_LEADER_EPOCH] = 2
    if rules.fetch_sessions is not FetchSessions.NONE:
        needed[FETCH] = 7
    if rules.fence_fetch or rules.fence_high_watermark or rules.fence_isr_join:
        needed[FETCH] = 9
    if rules.idempotence:
        needed[INIT_PRODUCER_ID] = 0
    if rules.fence_broker_epoch:
        needed |= {LEADER_AND_ISR: 1, STOP_REPLICA: 1}
    if rules.topic_identity:
        needed |= {FETCH: 12, LIST_OFFSETS: 6, OFFSET_FOR_LEADER_EPOCH: 4, LEADER_AND_ISR: 2, STOP_REPLICA: 2}
    return needed


def client_rows(protocol: str, rules: Rules) -> Rows:
    """Return the APIs that a broker serves to clients; commands come from the controller alone."""
    known = {key: row for key, row in peer_rows(protocol, rules).items() if key not in COMMANDS}
    rows = {**known, **{key: ROWS[key] for key in _FOR_CLIENTS}}
    return {key: replace(row, last=min(row.last, _CLIENT_LAST.get(key, row.last))) for key, row in rows.items()}
