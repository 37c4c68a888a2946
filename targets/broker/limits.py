"""
The quotas of a broker: one table, with Kafka's names where Kafka has them; printed in docs/limits.md.

Each bounds what one client can take from all others: memory, files, or the broker's time.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The values in force; ROWS says what each one bounds."""

    request_bytes_max: int = 100 * _MIB
    request_items_max: int = 10_000
    command_items_max: int = 1_000_000
    message_bytes_max: int = 1_048_588
    batch_opened_bytes_max: int = 16 * _MIB
    answer_bytes_max: int = 55 * _MIB
    memory_bytes_max: int = 96 * _MIB
    unread_answer_ms_max: int = 10_000
    connections_max: int = 4_000
    connections_per_address_max: int = 4_000
    internal_connections_max: int = 500
    connection_idle_ms_max: int = 600_000
    topic_partitions_max: int = 10_000
    fetch_sessions_max: int = 1_000
    log_files_open_max: int = 1_000
    producers_max: int = 10_000
    converted_records_max: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One quota: Kafka's name ("" where Kafka has none), what is counted, and what happens beyond it."""

    name: str
    kafka: str
    counts: str
    beyond: str


ROWS: Final = (
    Row(
        name="request_bytes_max",
        kafka="socket.request.max.bytes",
        counts="the bytes of one request",
        beyond="the connection is closed",
    ),
    Row(
        name="request_items_max",
        kafka="",
        counts="the topics and partitions that one request names",
        beyond="the connection is closed",
    ),
    Row(
        name="command_items_max",
        kafka="",
        counts="the partitions that one command of the controller names",
        beyond="the connection is closed",
    ),
    Row(
        name="message_bytes_max",
        kafka="message.max.bytes",
        counts="the bytes of one record batch, as a producer sends it",
        beyond="MESSAGE_TOO_LARGE",
    ),
    Row(
        name="batch_opened_bytes_max",
        kafka="",
        counts="the bytes that one compressed batch opens to",
        beyond="INVALID_RECORD",
    ),
    Row(
        name="answer_bytes_max",
        kafka="fetch.max.bytes",
        counts="the bytes of records in one answer to a Fetch; one larger batch goes alone",
        beyond="the answer holds less than the client asked for",
    ),
    Row(
        name="memory_bytes_max",
        kafka="queued.max.request.bytes",
        counts="the bytes of large requests on their way in, and of answers that clients have not read yet",
        beyond="large requests wait; a Fetch of a client gets one batch, and none beyond twice as much",
    ),
    Row(
        name="unread_answer_ms_max",
        kafka="",
        counts="how long a client may take nothing of its answer, or hold a large request that is not whole, "
        "while memory is short",
        beyond="its connection is closed",
    ),
    Row(
        name="connections_max",
        kafka="max.connections",
        counts="the connections to the clients' listener, or fewer where the process may open too few files",
        beyond="a new connection is closed at once",
    ),
    Row(
        name="connections_per_address_max",
        kafka="max.connections.per.ip",
        counts="those of one address",
        beyond="a new connection is closed at once",
    ),
    Row(
        name="internal_connections_max",
        kafka="listener.name.*.max.connections",
        counts="the connections to the listener for brokers",
        beyond="a new connection is closed at once",
    ),
    Row(
        name="connection_idle_ms_max",
        kafka="connections.max.idle.ms",
        counts="how long a connection may do nothing",
        beyond="it is closed",
    ),
    Row(
        name="topic_partitions_max",
        kafka="",
        counts="the partitions of one topic, by number, by assignments, or as its node in ZooKeeper has them",
        beyond="INVALID_PARTITIONS; a node that somebody has written by hand is named, and left out",
    ),
    Row(
        name="fetch_sessions_max",
        kafka="max.incremental.fetch.session.cache.slots",
        counts="the fetch sessions; one not used for two minutes gives way, and a consumer's to a broker's",
        beyond="each fetch names all its partitions",
    ),
    Row(
        name="log_files_open_max",
        kafka="",
        counts="the segment files that are open at once; the others are opened when needed",
        beyond="the one that was used least recently is closed",
    ),
    Row(
        name="producers_max",
        kafka="",
        counts="the idempotent producers that a replica knows",
        beyond="the one that has sent nothing for longest is not known any more",
    ),
    Row(
        name="converted_records_max",
        kafka="",
        counts="the records of one Produce to topics of an older message format, which are converted one by one",
        beyond="MESSAGE_TOO_LARGE for the partitions that are too many; Java's producers then split them",
    ),
)

assert [row.name for row in ROWS] == [field.name for field in fields(Limits)], "each limit has its row, in order"
