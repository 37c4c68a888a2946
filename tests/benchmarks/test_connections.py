"""The frames of the connections' load, and its table."""

from __future__ import annotations

import asyncio
import os
import struct

from benchmarks.connections import TOPIC, Line, Load, fetch_frame, memory_mib, produce_frame, table
from targets.broker.core.messages import FetchRequest, ProduceRequest
from targets.broker.log import split_produced
from targets.broker.wire import decode_request


def decoded(frame: bytes) -> object:
    assert len(frame) - 4 == int.from_bytes(frame[:4])
    return decode_request(frame[4:], split_batches=split_produced).request


def test_frames_are_requests_of_one_record_and_of_one_partition() -> None:
    produced, fetched = decoded(produce_frame(3)), decoded(fetch_frame(3, 17))
    assert isinstance(produced, ProduceRequest)
    assert isinstance(fetched, FetchRequest)
    (part,) = produced.partitions
    assert (1, (TOPIC, 3), 1, 0) == (produced.acks, part.tp, len(part.batches), part.error)
    (place,) = fetched.partitions
    assert ((TOPIC, 3), 17) == (place.tp, place.fetch_offset)


def answer(key: int, error: int) -> bytes:
    """Return an answer to a Produce v3 or a Fetch v4 of partition 3 in whole."""
    topic = struct.pack(">ih", 1, len(TOPIC)) + TOPIC.encode() + struct.pack(">i", 1)
    if key == 0:
        body = struct.pack(">i", 1) + topic + struct.pack(">ihqq", 3, error, 9, -1) + bytes(4)
    else:
        body = struct.pack(">ii", 1, 0) + topic + struct.pack(">ihqqii", 3, error, 10, 10, 0, 5) + bytes(5)
    return struct.pack(">i", len(body)) + body


def played(fetch_error: int) -> Load:
    """Let one connection play against a server that answers its first fetch with this error."""
    load = Load()

    async def play() -> None:
        over = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for key, error in ((0, 0), (1, fetch_error)):
                size = struct.unpack(">i", await reader.readexactly(4))[0]
                assert key == struct.unpack(">h", (await reader.readexactly(size))[:2])[0]
                writer.write(answer(key, error))
            over.set()
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        await Line(load, 3).run("127.0.0.1", port, asyncio.Semaphore(1), over)
        server.close()

    asyncio.run(play())
    return load


def test_connection_produces_and_fetches_and_counts_what_is_wrong() -> None:
    good, bad = played(0), played(6)
    assert [1, 1] == [len(waits) for waits in good.waits_s.values()]
    assert not good.errors
    assert {"ValueError('fetch at 9: error 6, 5 bytes')": 1} == dict(bad.errors)


def test_table_has_a_ratio_for_two_peers() -> None:
    loads = {
        name: Load(waits_s={"produce": [0.1], "fetch": [0.1] * count}, memory_mib=[9.0], seconds=1.0)
        for name, count in (("ours", 2), ("theirs", 4))
    }
    drawn = table(loads, 10)
    assert "0.50" == next(iter(drawn.columns[3].cells))
    assert 4 == len(drawn.columns)


def test_memory_is_that_of_the_process() -> None:
    assert memory_mib(os.getpid()) > 10
