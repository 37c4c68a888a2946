"""
A consumer of a workload, on plain sockets, which polls all the time and assigns its partitions by itself.

    ok      what came from one node for one partition, with the high watermark of the answer
    fail    an error, or no answer: no position moves
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from harness.clients.events import Recorder, poll_event
from harness.events import Poll
from harness.kafka_errors import MOVED
from harness.model import OpType
from harness.workload.plan import ConsumerPlan, Via
from harness.workload.script import FIRST, Ask, ConsumerScript, Life
from targets.kafka_family.clients import questions
from targets.kafka_family.clients.connection import NoAnswer, NotSent
from targets.kafka_family.clients.network import BACKOFF_S, Network
from targets.kafka_family.logs.codec import CodecError
from targets.kafka_family.logs.message_set import records_of, walk
from targets.kafka_family.logs.records import RecordError
from targets.kafka_family.wire.answers import Fetched
from targets.kafka_family.wire.errors import ErrorCode
from targets.kafka_family.wire.requests import FETCH_VERSION, FETCH_ZSTD_VERSION

# How long a node has for its answer, beyond the time that it may wait for records.
ANSWER_S_MAX: Final = 1.0


class Consumer:
    """
    One consumer.

    Args:
        seed: of the run; it decides when it seeks, and which nodes are asked who leads.
        process: its name in the history and on the network.
        nodes: a node's name -> "host:port".
        life: which of its lives this is.
    """

    def __init__(
        self,
        plan: ConsumerPlan,
        seed: int,
        *,
        process: str,
        history: Recorder,
        nodes: Mapping[str, str],
        life: Life = FIRST,
    ) -> None:
        self._plan = plan
        self._script = ConsumerScript(plan, seed, life)
        self._process = process
        self._history = history
        self._network = Network(process, plan.places, nodes, Random(f"metadata {plan.name} {seed}").choice)
        self._turns = itertools.cycle(nodes)
        self._version = FETCH_VERSION

    def run(self, leave: threading.Event) -> None:
        """Poll until it is to leave."""
        with self._network:
            leave.wait(self._script.pause_ms() / 1000)
            while not leave.is_set():
                polled = False
                for node, asks in self._whom():
                    self._poll(node, asks)
                    polled = True
                    if leave.is_set():
                        return
                leave.wait(self._script.pause_ms() / 1000 if polled else BACKOFF_S)

    def _whom(self) -> Iterator[tuple[str, list[Ask]]]:
        """Yield the nodes that are asked next, each with what it is asked; none while no leader is known."""
        if self._plan.via is Via.EVERY:
            yield next(self._turns), self._script.asks()
            return
        self._network.refresh()
        by_leader: dict[str, list[Ask]] = {}
        for ask in self._script.asks():
            leader = self._network.leader(ask.place)
            if leader is not None:
                by_leader.setdefault(leader, []).append(ask)
        yield from by_leader.items()

    # --- one request -----------------------------------------------------------------------------------------
    def _poll(self, node: str, asks: Sequence[Ask]) -> None:
        """Ask a node once, and record what it answered for each partition."""
        polls = {ask.place: poll_event(node, ask) for ask in asks}
        for event in polls.values():
            self._history.record(self._process, OpType.INVOKE, event)
        offsets = {ask.place: ask.position for ask in asks}
        plan, version = self._plan, self._version
        try:
            found = self._network.ask(
                node,
                plan.wait_ms / 1000 + ANSWER_S_MAX,
                lambda connection: questions.fetch_each(
                    connection, offsets, version=version, wait_ms=plan.wait_ms, max_bytes=plan.max_bytes
                ),
            )
        except (NotSent, NoAnswer) as error:
            for event in polls.values():
                self._history.record(self._process, OpType.FAIL, replace(event, error=str(error)))
            return
        for ask in asks:
            self._take(ask, polls[ask.place], found[ask.place])

    def _take(self, ask: Ask, poll: Poll, fetched: Fetched) -> None:
        """Record one partition's answer, and move its position."""
        error, records, next_offset = fetched.error.name, list[tuple[int, str]](), ask.position
        if fetched.error is ErrorCode.NONE:
            error, records, next_offset = opened(fetched.records, ask.position)
        if error:
            self._history.record(self._process, OpType.FAIL, replace(poll, error=error))
            self._refused(ask, fetched)
            return
        answered = replace(poll, records=tuple(records), high_watermark=fetched.high_watermark)
        self._history.record(self._process, OpType.OK, answered)
        self._script.took(ask, records, next_offset)

    def _refused(self, ask: Ask, fetched: Fetched) -> None:
        error = fetched.error
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._script.out_of_range(ask, fetched.log_start)
        elif error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
            self._version = FETCH_ZSTD_VERSION  # releases before zstd know no such version, so it is not the first
        elif error.value in MOVED and self._plan.via is Via.LEADER:
            self._network.forget([ask.place])


def opened(data: bytes, position: int) -> tuple[str, list[tuple[int, str]], int]:
    """
    Open an answer's batches, as a consumer does: what is below its position it skips.

    Returns:
        Why they cannot be read, "" if they can; (offset, value) of each record; the offset after the last batch.
    """
    found = walk(data)
    if found.stopped and not found.headers:
        return f"records at {position}: {found.stopped}", [], position
    records: list[tuple[int, str]] = []
    next_offset = position
    for header in found.headers:
        try:
            inside = () if header.control else records_of(header)
        except (CodecError, RecordError) as error:
            return f"batch at {header.base_offset}: {error}", [], position
        records += [(record.offset, record.value_text or "") for record in inside if record.offset >= position]
        next_offset = max(next_offset, header.last_offset + 1)
    return "", records, next_offset
