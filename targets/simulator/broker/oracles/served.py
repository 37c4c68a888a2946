"""
What is served to consumers is committed, whole, in order, and below the high watermark.

The broker that serves must lead by its own state when the step began or when it ended: a step that ends a
leadership still answers the fetches that waited.
Source:  Kafka Replication Design V3, C (consumers read up to the high watermark); KAFKA-9807.
"""

from __future__ import annotations

from targets.broker.core.messages import Batch, ErrorCode, FetchPartition, FetchRequest, FetchResponse, FetchResult
from targets.broker.core.state import Role
from targets.simulator.broker.oracles.partition import PartitionOracle
from targets.simulator.broker.oracles.records import HOLE
from targets.simulator.broker.oracles.violation import Rule


def judge_served(
    oracle: PartitionOracle, name: str, step: int, request: FetchRequest, response: FetchResponse
) -> None:
    """Check one partition of an answer to a consumer, after the look at the node that gave it."""
    asked = next((part for part in request.partitions if part.tp == oracle.tp), None)
    if asked is None or oracle.replicas.is_of_older_topic(name):
        return
    for result in response.results:
        if result.tp == oracle.tp and result.error is ErrorCode.NONE:
            text = _leading(oracle, name, step, result)
            offset, wrong = (result.high_watermark, text) if text else _batches(oracle, asked, result)
            if wrong:
                text = (
                    f"{oracle.replicas.place(name)}, asked by a consumer for offset {asked.fetch_offset}, {wrong}"
                )
                oracle.violated(Rule.SERVED, (name,), offset, text)


def _leading(oracle: PartitionOracle, name: str, step: int, result: FetchResult) -> str:
    """Return what is wrong with a server or with the high watermark that it told, "" if nothing."""
    seen, told = oracle.replicas.seen[name], result.high_watermark
    before = seen.before(step)
    led, leads = before.role is Role.LEADER, seen.role is Role.LEADER
    if not led and not leads:
        return "serves it and does not lead"
    lowest = before.high_watermark if led else seen.high_watermark
    highest = seen.high_watermark if leads else before.high_watermark
    if lowest <= told <= highest:
        return ""
    return f"tells the high watermark {told}, and its own is {highest}"


def _batches(oracle: PartitionOracle, asked: FetchPartition, result: FetchResult) -> tuple[int, str]:
    """Return the first offset at which a batch is wrong, and why; "" if none is."""
    at, high = asked.fetch_offset, result.high_watermark
    for index, batch in enumerate(result.batches):
        first, last = batch.base_offset, batch.last_offset
        if last < at or (index and first < at):
            return first, f"serves offsets {first} to {last} where {at} was due"
        if last >= high:
            return last, f"serves offset {last}, not below the high watermark that it tells, {high}"
        wrong = _gap(oracle, at, first) or _contents(oracle, batch)
        if wrong is not None:
            return wrong
        at = last + 1
    return at, ""


def _gap(oracle: PartitionOracle, at: int, first: int) -> tuple[int, str] | None:
    at = max(at, oracle.start)
    for offset, number in enumerate(oracle.committed[at:first], at):
        if number != HOLE and not oracle.is_excused(number) and not oracle.compacted.may_remove(offset):
            return offset, f"leaves out {oracle.records.name(number)}, committed at offset {offset}"
    return None


def _contents(oracle: PartitionOracle, batch: Batch) -> tuple[int, str] | None:
    numbers = oracle.records.of_batches((batch,))
    committed = oracle.committed[batch.base_offset : batch.last_offset + 1]
    if numbers == committed:
        return None
    for index, number in enumerate(numbers):
        there = committed[index] if index < len(committed) else None
        if number == there or oracle.is_excused(number) or batch.base_offset + index < oracle.start:
            continue
        if number == HOLE and there is not None and oracle.compacted.may_remove(batch.base_offset + index):
            continue
        if there is None or (there != HOLE and not oracle.is_excused(there)):
            offset = batch.base_offset + index
            instead = oracle.records.name(there)
            return offset, f"serves {oracle.records.name(number)} at offset {offset}, where {instead} is committed"
    return None
