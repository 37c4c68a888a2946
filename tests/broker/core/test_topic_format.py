"""
A topic's own message format, `message.format.version`, changed while the topic is in use.

Without epochs a log has no cache of them, and its followers fall back to the high watermark; with them it begins
at the next batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlteredSetting,
    AlterOperation,
    Batch,
    ErrorCode,
    ProduceResponse,
)
from targets.broker.core.rules import PROTOCOLS
from targets.broker.limits import Limits
from tests.broker.core.asks import epoch_ends, epoch_question, produce
from tests.broker.core.bench import TP, MemoryLog, batch
from tests.broker.core.cluster import Cluster

WITH_EPOCHS = tuple(name for name, rules in PROTOCOLS.items() if rules.epochs)
OLD, NEW = "0.10.2", "2.2"
U = (-1, -1)


def have_format(cluster: Cluster, version: str | None, *, via: int = 2) -> None:
    """Give the topic a format of its own; None: take it away."""
    operation = AlterOperation.DELETE if version is None else AlterOperation.SET
    setting = AlteredSetting("message.format.version", version, operation)
    request = AlterConfigsRequest(
        resources=(AlteredResource(kind=2, name="t", settings=(setting,)),), incremental=True, validate_only=False
    )
    (answer,) = cluster.ask(via, request)
    assert isinstance(answer, AlterConfigsResponse)
    assert [ErrorCode.NONE] == [each.error for each in answer.results]


def made(protocol: str = "kip380", **settings: Any) -> Cluster:
    cluster = Cluster(protocol, brokers=(1, 2), **settings)
    cluster.create(replicas=(1, 2))
    return cluster


def epochs(cluster: Cluster) -> list[list[tuple[int, int]]]:
    """Return the entries of both brokers' caches; what they have written down last is the same."""
    found = [cluster.replica(broker) for broker in (1, 2)]
    for replica in found:
        log = replica.log
        assert isinstance(log, MemoryLog)
        written = log.epoch_writes[-1][0] if log.epoch_writes else []
        assert written == replica.epochs.entries
    return [[(entry.epoch, entry.start) for entry in replica.epochs.entries] for replica in found]


def batch_epochs(cluster: Cluster, broker: int) -> list[int]:
    log = cluster.replica(broker).log
    assert isinstance(log, MemoryLog)
    return [each.leader_epoch for each in log.batches]


def where_ends(cluster: Cluster, epoch: int) -> tuple[int, int]:
    bench = cluster.benches[1]
    ((error, *end),) = epoch_ends(bench.request(epoch_question(epoch)))
    assert ErrorCode.NONE == error
    return end[0], end[1]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_format_that_goes_down_and_up_again_takes_the_epochs_away_and_begins_them_anew(protocol: str) -> None:
    """
    Source:  KIP-101, step 4.3: "if the leader can't find the LastOffset [...] the follower will fall back to the
             current approach by truncating the log to its high watermark"; KAFKA-7897, KAFKA-7959.
    """
    cluster = made(protocol)
    cluster.produce(1, 2)
    assert ([[(0, 0)]] * 2, (0, 2)) == (epochs(cluster), where_ends(cluster, 0))
    have_format(cluster, OLD)
    assert ([[], []], U) == (epochs(cluster), where_ends(cluster, 0))
    cluster.produce(1, 2)
    assert ([[], []], U) == (epochs(cluster), where_ends(cluster, 0))
    have_format(cluster, NEW)
    assert ([[], []], U) == (epochs(cluster), where_ends(cluster, 0))
    cluster.produce(1, 2)
    assert ([[(0, 4)]] * 2, (0, 6)) == (epochs(cluster), where_ends(cluster, 0))
    assert [[0, -1, 0]] * 2 == [batch_epochs(cluster, broker) for broker in (1, 2)]
    log = cluster.replica(1).log
    assert isinstance(log, MemoryLog)
    assert [2, 1, 2] == log.formats


def test_leader_without_epochs_writes_format_1_and_no_checkpoint_before_kip_101() -> None:
    """Source: Kafka 0.10.2 writes format 1; the setting is older than the epochs (KIP-32)."""
    cluster = made("hw")
    have_format(cluster, OLD)
    cluster.produce(1)
    log = cluster.replica(1).log
    assert isinstance(log, MemoryLog)
    assert ([1], [-1], []) == (log.formats, batch_epochs(cluster, 1), log.epoch_writes)


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_only_that_topic_is_concerned(protocol: str) -> None:
    cluster = made(protocol)
    cluster.create("other", replicas=(1, 2))
    have_format(cluster, OLD)
    other = replace(produce().partitions[0], tp=TP._replace(topic="other"))
    cluster.ask(1, replace(produce(acks=-1), partitions=(other,)))
    assert [(0, 0)] == cluster.replica(1, other.tp).epochs.entries


def test_idempotent_producers_are_refused_where_the_format_has_none() -> None:
    """Source: Kafka, LogValidator.validateBatch: "Idempotent records cannot be used with magic version 1"."""
    cluster = made()
    numbered = replace(batch(), producer_id=7, producer_epoch=0, base_sequence=0)

    def sent(one: Batch) -> tuple[ErrorCode, int, str]:
        (answer,) = cluster.ask(1, produce(one, acks=-1))
        assert isinstance(answer, ProduceResponse)
        (result,) = answer.results
        return result.error, result.base_offset, result.error_text

    assert (ErrorCode.NONE, 0, "") == sent(numbered)
    have_format(cluster, OLD)
    error, base, text = sent(replace(numbered, base_sequence=1))
    assert (ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, -1) == (error, base)
    assert "idempotent producer 7; expected none, as message format 1 has no producers" in text
    assert (1, (ErrorCode.NONE, 1, "")) == (cluster.replica(1).log.end_offset, sent(batch()))
    have_format(cluster, None)
    assert (ErrorCode.NONE, 2, "") == sent(replace(numbered, base_sequence=1))


def test_one_request_has_only_so_many_records_to_convert() -> None:
    """A loop that serves all clients converts record by record; in format 2 it looks at none."""
    cluster = made(limits=Limits(converted_records_max=3))
    cluster.create("other", replicas=(1, 2))
    other = replace(produce(batch(9)).partitions[0], tp=TP._replace(topic="other"))

    def sent(count: int) -> list[ErrorCode]:
        request = produce(batch(count), acks=1)
        (answer,) = cluster.ask(1, replace(request, partitions=(*request.partitions, other)))
        assert isinstance(answer, ProduceResponse)
        return [each.error for each in answer.results]

    assert [ErrorCode.NONE] * 2 == sent(4)
    have_format(cluster, OLD)
    assert [ErrorCode.NONE] * 2 == sent(3)
    assert [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.NONE] == sent(4)


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_broker_that_starts_in_format_1_finds_the_epochs_of_a_topic_in_format_2(protocol: str) -> None:
    """Source: Kafka, LogManager: a topic's settings are read before its logs are opened."""
    cluster = made(protocol, message_format=1)
    have_format(cluster, NEW)
    cluster.produce(1, 2)
    expected = [(0, 0)]
    assert [expected] * 2 == epochs(cluster)
    cluster.crash(2)
    cluster.start(2)
    assert [(0, 0)] == cluster.replica(2).epochs.entries
    log = cluster.replica(2).log
    assert isinstance(log, MemoryLog)
    assert [([(0, 0)], 0)] == [(entries, end) for entries, _, end in log.epoch_writes]


def test_epochs_that_a_start_found_are_not_believed_once_the_log_has_grown() -> None:
    """Source: KAFKA-7897: an epoch cache that did not grow with its log."""
    cluster = made(message_format=2)
    cluster.produce(1, 2)
    cluster.settings["message_format"] = 1
    cluster.crash(2)
    cluster.start(2)
    cluster.produce(1, 2)
    have_format(cluster, NEW)
    assert [] == cluster.replica(2).epochs.entries


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_broker_that_was_away_takes_the_format_up_before_it_registers(protocol: str) -> None:
    """Source: KAFKA-7897: what its log tells of epochs is from before the change."""
    cluster = made(protocol)
    cluster.produce(1, 2)
    cluster.crash(2)
    have_format(cluster, OLD, via=1)
    cluster.start(2)
    assert ([], True) == (cluster.replica(2).epochs.entries, cluster.registered(2))
