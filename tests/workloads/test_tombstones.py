"""Tombstones through each client library: sent, read, compacted on real processes, and gone after their delay."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from harness.events import Batch, LogCleaned, Poll, Produce
from harness.keys import is_tombstone
from harness.launch import Address
from harness.model import OpType, events_of
from harness.workload.plan import Clients, ConsumerPlan, Library, ProducerPlan
from tests.kept import keep
from tests.needs import needs
from tests.workloads.test_at_work import LOG, played

pytestmark = pytest.mark.slow

# Less than the pauses of the 40 records that each produce waits for: ten batches at least, after 5 ms at least.
DELAY_MS: Final = 40
SCHEDULE: Final = f"""
title    Keys are written, deleted and read
source   KIP-534
nodes    B A replicas, C controller
settings segment_bytes=600 compact=yes delete_retention_ms={DELAY_MS}
records  m1 1, m2 1, m3 1, m4 1
{{clients}}
# What came before m2 is cleaned once, and, when its delay is over, again.
produce m1 acks=all
produce m2 acks=all
await compacted A >= end(m2)
await compacted B >= end(m2)
produce m3 acks=all
produce m4 acks=all
await compacted A >= end(m4)
await compacted B >= end(m4)

expect kip380: none
"""


@pytest.mark.parametrize(
    "library",
    keep(
        [
            pytest.param(each, marks=[pytest.mark.kafka, needs("java-clients")] if each is Library.JAVA else [])
            for each in Library
        ],
        Library.RAW,
        Library.LIBRDKAFKA,
    ),
)
def test_tombstones_are_sent_read_and_gone_after_their_delay(
    tmp_path: Path, zookeeper: Address, library: Library
) -> None:
    clients = Clients(
        producers=(
            ProducerPlan(
                name="p1",
                places=(LOG,),
                batch=(1, 4),
                codecs=("none", "gzip"),
                keys=2,
                tombstones=0.5,
                client=library,
            ),
        ),
        consumers=(ConsumerPlan(name="c1", places=(LOG,), seek=0.1, client=library),),
    )
    result, ops = played(clients, zookeeper, tmp_path, schedule=SCHEDULE)
    assert ("as expected", "") == (result.status, result.reason)
    sent = [each.value for op, each in events_of(ops, Produce) if op.type is OpType.OK]
    deleted = {value for value in sent if is_tombstone(value)}
    assert 0.2 * len(sent) < len(deleted) < 0.8 * len(sent)
    # Readers saw them by their texts. What a batch holds is compared with what was sent: a null, and a header.
    assert {value for _, poll in events_of(ops, Poll) for _, value in poll.records or ()} & deleted
    assert {"A", "B"} == {op.process for op, _ in events_of(ops, LogCleaned)}
    held = {value for _, batch in events_of(ops, Batch) for _, _, value in batch.records}
    assert 0 < len(held) < len(sent)
    assert next(value for value in sent if is_tombstone(value)) not in held
