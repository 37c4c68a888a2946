"""Answers that announce more than they hold: a broker under test cannot make a client reserve memory for them."""

from __future__ import annotations

from tests.little_memory import printed_with_little_memory

LYING = """
import importlib, io, struct, time
from datetime import timedelta
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from targets.broker.wire.entities import fill, item_type
from tests.workloads.peers import framed, peer
from harness.workload.plan import Place
from targets.kafka_family.clients import questions, topics
from targets.kafka_family.clients.connection import Connection, NoAnswer

ASKED = [
    ("metadata", 4, "Metadata", lambda c: questions.metadata(c, "t", 0)),
    ("create_topics", 2, "CreateTopics", lambda c: topics.create(c, "t", [[1]], 1.0)),
    ("create_partitions", 0, "CreatePartitions", lambda c: topics.add(c, "t", 2, [[1]], 1.0)),
    ("delete_topics", 1, "DeleteTopics", lambda c: topics.delete(c, "t", 1.0)),
    ("produce", 3, "Produce",
     lambda c: questions.produce(c, "t", 0, b"x", acks=1, timeout_s=1.0, zstd=False)),
    ("produce", 7, "Produce",
     lambda c: questions.produce(c, "t", 0, b"x", acks=1, timeout_s=1.0, zstd=True)),
    ("fetch", 5, "Fetch", lambda c: questions.fetch_each(c, {Place("t", 0): 0}, version=5)),
    ("fetch", 10, "Fetch", lambda c: questions.fetch_each(c, {Place("t", 0): 0}, version=10)),
    ("list_offsets", 1, "ListOffsets", lambda c: questions.earliest(c, "t", 0)),
    ("delete_records", 0, "DeleteRecords", lambda c: questions.delete_records(c, "t", 0, 1, timeout_s=1.0)),
    ("alter_configs", 0, "AlterConfigs", lambda c: questions.alter_topic(c, "t", "a", "b")),
]
VALUES = {
    "throttle_time": timedelta(0), "error_code": ErrorCode.none, "error_message": None, "name": "t", "topic": "t",
    "host": "h", "rack": None, "cluster_id": "c", "records": b"records", "is_internal": False,
    "log_append_time": None, "resource_name": "t",
    "replica_nodes": (1, 2), "isr_nodes": (1, 2), "index": 0, "partition_index": 0,
    "resource_type": 2,
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
    for api, version, name, ask in ASKED:
        out = io.BytesIO()
        messages = importlib.import_module(f"kio.schema.{api}.v{version}.response")
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
    assert 11 == sound
    assert refused > 500
