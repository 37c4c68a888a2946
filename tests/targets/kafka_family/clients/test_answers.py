"""Answers that announce more than they hold: a broker under test cannot make a client reserve memory for them."""

from __future__ import annotations

from tests.little_memory import printed_with_little_memory

LYING = """
import io, struct, time
from datetime import timedelta
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from targets.broker.wire.entities import fill, item_type
from tests.workloads.peers import framed, peer
from targets.kafka_family.clients import questions, topics
from targets.kafka_family.clients.connection import Connection, NoAnswer

ASKED = [
    (questions._METADATA, "Metadata", lambda c: questions.metadata(c, "t", 0)),
    (topics._CREATE, "CreateTopics", lambda c: topics.create(c, "t", [[1]], 1.0)),
    (topics._DELETE, "DeleteTopics", lambda c: topics.delete(c, "t", 1.0)),
    (questions._PRODUCE[3], "Produce",
     lambda c: questions.produce(c, "t", 0, b"x", acks=1, timeout_s=1.0, zstd=False)),
    (questions._PRODUCE[7], "Produce",
     lambda c: questions.produce(c, "t", 0, b"x", acks=1, timeout_s=1.0, zstd=True)),
    (questions._FETCH[5], "Fetch", lambda c: questions._fetch(c, "t", 0, 0, 5)),
    (questions._FETCH[10], "Fetch", lambda c: questions._fetch(c, "t", 0, 0, 10)),
]
VALUES = {
    "throttle_time": timedelta(0), "error_code": ErrorCode.none, "error_message": None, "name": "t", "topic": "t",
    "host": "h", "rack": None, "cluster_id": "c", "records": b"records", "is_internal": False,
    "log_append_time": None, "replica_nodes": (1, 2), "isr_nodes": (1, 2), "index": 0, "partition_index": 0,
}

def sample(kind):
    arrays = {name: (sample(item_type(kind, name)),) for name in kind.__annotations__
              if name not in VALUES and "tuple[" in str(kind.__annotations__[name])}
    numbers = dict.fromkeys(kind.__annotations__, 1)
    return fill(kind, **{**numbers, **VALUES, **arrays})

def lies(body):
    for at in range(len(body) - 3):
        for count in (2**31 - 1, 2**28, 2**24, -1, -2**31):
            yield body[:at] + struct.pack(">i", count) + body[at + 4:]

said = [b""]
refused = sound = 0
with peer(lambda frame: framed(frame[4:8] + said[0])) as address:
    for (_, messages), name, ask in ASKED:
        out = io.BytesIO()
        answer = sample(getattr(messages, name + "Response"))
        entity_writer(type(answer))(out, answer)
        with Connection(address, "client", time.monotonic() + 300) as connection:
            said[0] = out.getvalue()
            ask(connection)
            sound += 1
            for said[0] in lies(out.getvalue()):
                try:
                    ask(connection)
                except NoAnswer:
                    refused += 1
print(sound, refused)
"""


def test_no_announced_count_makes_a_client_reserve_memory() -> None:
    """Four bytes anywhere in any answer that the raw client reads announce up to 2**31 - 1 items."""
    sound, refused = map(int, printed_with_little_memory(LYING).split())
    assert 7 == sound
    assert refused > 500
