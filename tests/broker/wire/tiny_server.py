"""A server of one partition with only the wire and the log: no core, no replication, no ZooKeeper."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from targets.broker.core.messages import (
    BrokerMetadata,
    CreateTopicsRequest,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    FetchResult,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    Request,
    Response,
    TopicErrors,
    TopicMetadata,
)
from targets.broker.log import FileLog, split_produced
from targets.broker.wire import FrameSplitter, decode_request, encode_response
from targets.broker.wire.versions import ROWS, Rows
from tests.broker.log.batches import TP, new_log

BROKER_ID = 5


class TinyBroker:
    """
    Answer every request at once, as the leader of the only partition.

    Attributes:
        epoch: the leader epoch in metadata; batches are always stamped with epoch 0.
        untold: how many metadata responses still name no controller and no topic.
        unaware: how many ListOffsets requests are still answered with NOT_LEADER_OR_FOLLOWER.
        rows: the API versions that it advertises and accepts.
        seen: (api key, version) of every request.
        producers: how many producers' ids it has given.
    """

    def __init__(self, folder: Path) -> None:
        self.log: FileLog = new_log(folder)
        self.epoch = 0
        self.untold = 0
        self.unaware = 0
        self.rows: Rows = ROWS
        self.port = 0
        self.producers = 0
        self.seen: list[tuple[int, int]] = []
        self.transports: list[asyncio.Transport] = []
        self.loop: asyncio.AbstractEventLoop | None = None

    def hang_up(self) -> None:
        """Close the first connection, as a broker that dies; for threads other than the server's."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.transports[0].abort)

    def answer(self, request: Request) -> Response:
        match request:
            case MetadataRequest():
                return self._metadata()
            case ProduceRequest():
                return ProduceResponse(results=tuple(self._produce(asked) for asked in request.partitions))
            case ListOffsetsRequest():
                return self._offsets(request)
            case FetchRequest():
                end = self.log.end_offset
                fetched = tuple(
                    FetchResult(
                        tp=asked.tp,
                        error=ErrorCode.NONE,
                        high_watermark=end,
                        log_start_offset=0,
                        batches=self.log.read(asked.fetch_offset, end, asked.max_bytes),
                    )
                    for asked in request.partitions
                )
                return FetchResponse(results=fetched)
            case InitProducerIdRequest():
                self.producers += 1
                return InitProducerIdResponse(error=ErrorCode.NONE, producer_id=self.producers, producer_epoch=0)
            case CreateTopicsRequest():
                return TopicErrors(
                    errors=tuple((new.topic, ErrorCode.TOPIC_ALREADY_EXISTS, "there") for new in request.topics)
                )
            case _:
                raise AssertionError(f"{request} was not expected")

    def _offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        self.unaware -= 1
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER if self.unaware >= 0 else ErrorCode.NONE
        results = tuple(
            ListOffsetsResult(tp=asked.tp, error=error, offset=0 if asked.timestamp == -2 else self.log.end_offset)
            for asked in request.partitions
        )
        return ListOffsetsResponse(results=results)

    def _produce(self, asked) -> ProduceResult:  # type: ignore[no-untyped-def]
        if asked.error:
            return ProduceResult(tp=asked.tp, error=asked.error, error_text=asked.error_text)
        first, _ = self.log.append_as_leader(asked.batches, 0)
        return ProduceResult(tp=asked.tp, error=ErrorCode.NONE, base_offset=first)

    def _metadata(self) -> MetadataResponse:
        me = BrokerMetadata(broker_id=BROKER_ID, host="127.0.0.1", port=self.port)
        if self.untold > 0:
            self.untold -= 1
            return MetadataResponse(brokers=(me,), controller_id=-1, topics=())
        partition = PartitionMetadata(
            tp=TP,
            error=ErrorCode.NONE,
            leader=BROKER_ID,
            leader_epoch=self.epoch,
            replicas=(BROKER_ID,),
            isr=(BROKER_ID,),
        )
        return MetadataResponse(
            brokers=(me,),
            controller_id=BROKER_ID,
            topics=(TopicMetadata(topic=TP.topic, error=ErrorCode.NONE, partitions=(partition,)),),
        )


class _Connection(asyncio.BufferedProtocol):
    def __init__(self, broker: TinyBroker) -> None:
        self._broker = broker
        self._frames = FrameSplitter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._broker.transports.append(transport)

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._frames.room()

    def buffer_updated(self, nbytes: int) -> None:
        for frame in self._frames.came(nbytes):
            incoming = decode_request(frame, split_batches=split_produced, rows=self._broker.rows)
            self._broker.seen.append((incoming.api_key, incoming.api_version))
            if incoming.answer is not None:
                self._transport.write(incoming.answer)
            elif incoming.request is not None:
                response = self._broker.answer(incoming.request)
                if incoming.expects_answer:
                    self._transport.writelines(encode_response(incoming, response))


@contextmanager
def running(folder: Path) -> Iterator[TinyBroker]:
    """Serve on a free loopback port, from a separate thread, until the block ends."""
    broker = TinyBroker(folder)
    loop = broker.loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(lambda: _Connection(broker), "127.0.0.1", 0))
    broker.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield broker
    finally:
        asyncio.run_coroutine_threadsafe(_shut(server, broker), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _shut(server: asyncio.Server, broker: TinyBroker) -> None:
    """Stop accepting, and abort every accepted socket once it has its transport: asyncio would leak it."""
    for listener in server.sockets:
        asyncio.get_running_loop().remove_reader(listener)
    while broker.transports or asyncio.all_tasks() - {asyncio.current_task()}:
        while broker.transports:
            broker.transports.pop().abort()
        await asyncio.sleep(0)
    server.close()
    # An aborted transport closes its socket in the next iteration of the loop.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
