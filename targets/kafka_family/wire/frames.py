"""
Frames of Kafka's wire protocol: headers, and api names; harness/target/length_prefix.py has their lengths.

Nothing here does IO. Readers are `(buffer, offset) -> (value, size)`, where size is the number of bytes read.
They raise Unreadable and never read past the buffer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from harness.target.wire import Word

REQUEST_HEAD: Final = struct.Struct(">hhih")
ANSWER_HEAD: Final = struct.Struct(">i")

FETCH: Final = 1
LEADER_AND_ISR: Final = 4
STOP_REPLICA: Final = 5
CONTROLLED_SHUTDOWN: Final = 7
OFFSET_FOR_LEADER_EPOCH: Final = 23

# Kafka's api keys and names, as far as a broker in ZooKeeper mode receives them from other brokers and clients.
API_NAMES: Final[dict[int, str]] = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    56: "AlterPartition",
    57: "UpdateFeatures",
    58: "Envelope",
    60: "DescribeCluster",
    61: "DescribeProducers",
    65: "DescribeTransactions",
    66: "ListTransactions",
    67: "AllocateProducerIds",
}
# The general words of those that all replicated logs have in some form.
WORDS: Final[dict[int, str]] = {
    FETCH: Word.FETCH.value,
    LEADER_AND_ISR: Word.COMMAND.value,
    STOP_REPLICA: Word.STOP.value,
    OFFSET_FOR_LEADER_EPOCH: Word.EPOCH_QUESTION.value,
}
# The names of messages that no general word fits.
MESSAGES: Final = tuple(name for key, name in API_NAMES.items() if key not in WORDS)


class Unreadable(ValueError):
    """Bytes that do not fit the layout: too short, a length out of range, text that is not UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeader:
    """The header of every request; client_id is "" if it is null, or if the version has none."""

    api_key: int
    version: int
    correlation: int
    client_id: str

    @property
    def api(self) -> str:
        """The general word for the api, else its name."""
        return api_word(self.api_key)


def api_word(api_key: int) -> str:
    """Return the general word for an api; else its name, `api-<key>` if the table lacks it."""
    return WORDS.get(api_key) or API_NAMES.get(api_key) or f"api-{api_key}"


def request_header(buffer: bytes, offset: int) -> tuple[RequestHeader, int]:
    """
    Read a request's header, up to and including the client id.

    The tagged fields of header v2, which only flexible requests have, are not counted in the size.

    Raises:
        Unreadable: The header is cut short, or its client id is not UTF-8.

    Source:  Kafka's RequestHeader.json; ControlledShutdown v0 alone has no client id.
    """
    try:
        api_key, version, correlation, length = REQUEST_HEAD.unpack_from(buffer, offset)
    except struct.error as error:
        raise Unreadable(f"request header at {offset}: {error}; expected {REQUEST_HEAD.size} bytes") from error
    if (api_key, version) == (CONTROLLED_SHUTDOWN, 0):
        header = RequestHeader(api_key=api_key, version=version, correlation=correlation, client_id="")
        return header, REQUEST_HEAD.size - 2
    start = offset + REQUEST_HEAD.size
    end = start + max(length, 0)
    if length < -1 or end > len(buffer):
        raise Unreadable(f"client id at {start}: length {length}; expected -1 to {len(buffer) - start}")
    try:
        client_id = buffer[start:end].decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"client id at {start}: {error}; expected UTF-8") from error
    return RequestHeader(
        api_key=api_key, version=version, correlation=correlation, client_id=client_id
    ), end - offset


def answer_correlation(buffer: bytes, offset: int) -> tuple[int, int]:
    """Read the correlation id at the beginning of an answer; raise Unreadable if it is cut short."""
    try:
        (correlation,) = ANSWER_HEAD.unpack_from(buffer, offset)
    except struct.error as error:
        raise Unreadable(f"answer header at {offset}: {error}; expected {ANSWER_HEAD.size} bytes") from error
    return correlation, ANSWER_HEAD.size
