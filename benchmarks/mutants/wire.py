"""Bugs in the broker's codec, which no simulated run has: `benchmarks.mutants.process` gives them to a process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

WIRE: Final = "targets.broker.wire"
# What comes of a Produce, and the same with one of its errors left out.
_RESULT: Final = "_RESULT.pack(result.tp.partition, result.error, result.base_offset, _NO_TIME)"
_WITHOUT: Final = (
    "_RESULT.pack(result.tp.partition, result.error * (result.error != {code}), result.base_offset, _NO_TIME)"
)
_PIECES: Final = "pieces += (bytes(written), *(batch.payload for batch in result.batches))"
_SHIFTED: Final = (
    "all_ = [bytes(batch.payload) for batch in result.batches]\n"
    "                up = {up}\n"
    "                pieces += (bytes(written), *((int.from_bytes(p[:8]) + up).to_bytes(8) + p[8:] for p in all_))"
)
# Followers fetch in a later version than the client `raw`.
_OF_CONSUMERS: Final = "int(version < 7)"

_ALL: Final = (
    Mutant(
        name="timed-out-is-acknowledged",
        package=WIRE,
        module="produce",
        category=Category.VISIBLE,
        sentence="A Produce whose followers did not have its records in time is answered without an error.",
        breaks="Kafka's DelayedProduce: REQUEST_TIMED_OUT (7)",
        edits=((_RESULT, _WITHOUT.format(code=7)),),
    ),
    Mutant(
        name="too-few-replicas-is-acknowledged",
        package=WIRE,
        module="produce",
        category=Category.VISIBLE,
        sentence="A Produce that was refused for a small ISR is answered without an error.",
        breaks="KAFKA-1555, min.insync.replicas: NOT_ENOUGH_REPLICAS (19)",
        edits=((_RESULT, _WITHOUT.format(code=19)),),
    ),
    Mutant(
        name="produced-one-too-high",
        package=WIRE,
        module="produce",
        category=Category.VISIBLE,
        sentence="The answer to a Produce names the offset after the one at which the records are.",
        breaks="Kafka's ProduceResponse: base_offset is that of the first record",
        edits=((_RESULT, _RESULT.replace("result.base_offset", "result.base_offset + 1")),),
    ),
    Mutant(
        name="fetched-one-too-high",
        package=WIRE,
        module="fetch",
        category=Category.VISIBLE,
        sentence="Each batch in the answer to a Fetch begins one offset too high.",
        breaks="Kafka's DefaultRecordBatch: baseOffset is that of the first record",
        edits=((_PIECES, _SHIFTED.format(up=1)),),
    ),
    Mutant(
        name="consumed-one-too-high",
        package=WIRE,
        module="fetch",
        category=Category.VISIBLE,
        sentence="Each batch in the answer to a consumer's Fetch begins one too high, and none in a follower's.",
        breaks="Kafka's DefaultRecordBatch: baseOffset is that of the first record",
        edits=((_PIECES, _SHIFTED.format(up=_OF_CONSUMERS)),),
    ),
    Mutant(
        name="listed-one-too-high",
        package=WIRE,
        module="offsets",
        category=Category.VISIBLE,
        sentence="The answer to ListOffsets names the offset after the one that was asked for.",
        breaks="Kafka's ListOffsetsResponse: the earliest offset is where the log starts",
        edits=(('"offset": result.offset,', '"offset": result.offset + 1,'),),
    ),
)
MUTANTS_OF_THE_CODEC: Final[Mapping[str, Mutant]] = {mutant.name: mutant for mutant in _ALL}
