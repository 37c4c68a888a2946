"""
Record requests and answers of unmodified Apache Kafka in tests/data/kafka-frames, for tests of our readers.

    python -m tests.record_kafka_frames RELEASE...

Three brokers of the release, C, A and B, run on this machine; their jars come from the cache of
`fencepost kafka fetch`. A file has a line for each question: api, version, what was asked, and both frames in hex,
without their lengths. What brokers said to each other came through the fabric, which takes frames apart by their
lengths alone before they are recorded.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from harness import limits
from harness.cleanup.process import until
from harness.cluster.cluster import Cluster
from harness.fabric import reading
from harness.hosts import HOSTS
from harness.scenario.file import PARTITION, TOPIC
from harness.workload.plan import Place
from nemesis import NEMESES
from targets.kafka.releases import BATCHES_SINCE, release_of, version
from targets.kafka_family.clients.batches import write_batch
from targets.kafka_family.wire import requests
from targets.kafka_family.wire.answers import Produced
from targets.kafka_family.wire.bodies import fetch_body
from targets.kafka_family.wire.errors import ErrorCode
from targets.kafka_family.wire.frames import (
    API_NAMES,
    FETCH,
    LEADER_AND_ISR,
    LENGTH,
    OFFSET_FOR_LEADER_EPOCH,
    request_header,
)
from targets.kafka_family.wire.requests import Question
from tests.kafka.lodging import IDS, epoch_question, lodging
from tests.kafka_release import DATA

T = TypeVar("T")

FOLDER: Final = DATA / "kafka-frames"
CLIENT: Final = "recorder"
BETWEEN_BROKERS: Final = (FETCH, LEADER_AND_ISR, OFFSET_FOR_LEADER_EPOCH)
# The last release that keeps message sets (v1) in a log whose topic is set to them.
SETS_UNTIL: Final = (2, 8)
AT: Final = Place(TOPIC, PARTITION)
SETS: Final = Place("sets", 0)
# Brokers wait so long for a follower that is paused.
SHORT_S: Final = 0.3
_CORRELATION: Final = 7
# Where a batch or an entry of a message set says which of both it is.
MAGIC_AT: Final = 16
BATCH: Final = 2
_HEAD: Final = struct.Struct(">hhi")


@dataclass(slots=True)
class Recorder:
    """
    The lines of one release.

    Attributes:
        open: what brokers asked and have not been answered, by connection and correlation id.
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
    open: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def ask(self, address: str, question: Question[Any], what: str) -> Any:
        """Ask a broker, keep both frames, and return what the answer says."""
        request = question.frame(_CORRELATION, CLIENT)
        answer = asked(address, request)
        self.keep(what, request[LENGTH.size :], answer)
        return question.answer(answer, _CORRELATION)

    def keep(self, what: str, request: bytes, answer: bytes) -> None:
        """Add a line."""
        api, number, _ = _HEAD.unpack_from(request)
        self.lines.append(
            {
                "api": API_NAMES[api],
                "version": number,
                "what": what,
                "request": request.hex(),
                "answer": answer.hex(),
            }
        )

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Keep the first question of each api and version that brokers ask each other, and its answer."""
        kind: Any = reading.KafkaReading
        ask, tell = kind.request, kind.answer

        def requested(self_: Any, frame: bytes) -> Any:
            api, _, correlation = _HEAD.unpack_from(frame, LENGTH.size)
            if api in BETWEEN_BROKERS:
                self.open[id(self_), correlation] = frame[LENGTH.size :]
            return ask(self_, frame)

        def told(self_: Any, frame: bytes) -> Any:
            (correlation,) = LENGTH.unpack_from(frame, LENGTH.size)
            request = self.open.pop((id(self_), correlation), None)
            if request is not None and _is_about_a_partition(request):
                self._keep_new(request, frame[LENGTH.size :])
            return tell(self_, frame)

        kind.request, kind.answer = requested, told
        try:
            yield
        finally:
            kind.request, kind.answer = ask, tell

    def _keep_new(self, request: bytes, answer: bytes) -> None:
        api, number, _ = _HEAD.unpack_from(request)
        known = {(line["api"], line["version"]) for line in self.lines if line["what"] == "between brokers"}
        if (API_NAMES[api], number) not in known:
            self.keep("between brokers", request, answer)


def _is_about_a_partition(request: bytes) -> bool:
    """Return False for a Fetch that names no partition, as in a session, and for what is about other topics."""
    header, size = request_header(request, 0)
    if header.api_key == FETCH:
        return bool(fetch_body(request, size, header.version)[0].offsets)
    return TOPIC.encode() in request


def asked(address: str, request: bytes) -> bytes:
    """Ask on a connection of its own; return the answer without its length."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), limits.CLIENT_OPERATION_S_MAX) as connection:
        connection.sendall(request)
        with connection.makefile("rb") as stream:
            (size,) = LENGTH.unpack(stream.read(LENGTH.size))
            return stream.read(size)


def record(name: str, folder: Path) -> list[dict[str, Any]]:
    """Return the lines of one release."""
    recorder = Recorder()
    batches = version(release_of(name).speaks) >= BATCHES_SINCE
    ground = HOSTS["local"](folder / "zookeeper", power_tier="watermark")
    (folder / "zookeeper").mkdir()
    ground.open()
    with closing(ground), recorder.listening():
        zookeeper = ground.start_zookeeper()
        changes = ("min.insync.replicas=2",)
        with lodging("kafka", name, zookeeper, folder, replicas=("A", "B"), changes=changes) as lodge:
            cluster: Cluster = lodge._cluster
            leader, controller = cluster.addresses["A"], cluster.addresses["C"]
            recorder.ask(leader, requests.api_versions(), "which versions")
            recorder.ask(leader, requests.metadata([TOPIC], 1), "the topic")
            recorder.ask(leader, requests.metadata(["missing"], 1), "a topic that is not there")
            recorder.ask(leader, requests.list_offsets(AT, requests.EARLIEST), "the first offset")
            follower = cluster.addresses["B"]
            recorder.ask(follower, requests.list_offsets(AT, requests.EARLIEST), "of a follower")
            if batches:
                _clients(recorder, name, cluster, leader, controller)
                _epochs(recorder, name, leader)
            _fail_over(cluster)
    return recorder.lines


def _clients(recorder: Recorder, name: str, cluster: Cluster, leader: str, controller: str) -> None:
    """Ask what the client `raw` asks."""
    ask, follower = recorder.ask, cluster.addresses["B"]
    ask(leader, requests.metadata([TOPIC, "missing"]), "a topic, and one that is not there")
    _until(leader, requests.producer_id(60.0), lambda found: found.error is ErrorCode.NONE)
    ask(leader, requests.producer_id(60.0), "an id")
    for codec, produced in (("none", requests.PRODUCE_VERSION), ("zstd", requests.PRODUCE_ZSTD_VERSION)):
        if codec == "zstd" and version(name) < (2, 1):
            continue
        batch = write_batch([b"m1.0", b"m1.1"], codec)
        ask(leader, _produce(batch, version_=produced), f"acknowledged, {codec}")
    ask(leader, _produce(write_batch([b"m2.0"], "none"), acks=1), "acknowledged, acks=1")
    ask(follower, _produce(write_batch([b"m3.0"], "none")), "of a follower")
    ask(leader, _fetch(0), "from 0")
    if version(name) >= (2, 1):
        ask(leader, _fetch(0, requests.FETCH_ZSTD_VERSION), "from 0")
    ask(leader, _fetch(99), "out of range")
    ask(follower, _fetch(0), "of a follower")
    ask(leader, requests.delete_records(AT, 1, 5.0), "before 1")
    ask(leader, requests.list_offsets(AT, requests.EARLIEST), "the first offset, after a deletion")
    ask(controller, requests.create_topic(SETS.topic, [[IDS["A"], IDS["B"]]], 5.0), "created")
    ask(controller, requests.create_topic(SETS.topic, [[IDS["A"], IDS["B"]]], 5.0), "again")
    ask(leader, requests.create_topic("other", [[IDS["A"]]], 5.0), "of a broker that is no controller")
    ask(controller, requests.create_partitions(SETS.topic, 2, [[IDS["B"], IDS["A"]]], 5.0), "added")
    if version(name) < SETS_UNTIL:
        ask(leader, requests.alter_topic(SETS.topic, "message.format.version", "0.10.2"), "altered")
        offset = _await_message_sets(leader)
        ask(leader, _produce(write_batch([b"s.0", b"s.1"], "none"), place=SETS), "acknowledged, to message sets")
        ask(leader, _fetch(offset, place=SETS), "message sets")
    ask(leader, requests.alter_topic(SETS.topic, "no.such.setting", "1"), "refused")
    ask(controller, requests.delete_topic(SETS.topic, 5.0), "deleted")
    ask(controller, requests.delete_topic("missing", 5.0), "a topic that is not there")
    NEMESES["pause"].inject(cluster, "B")
    ask(leader, _produce(write_batch([b"m4.0"], "none"), timeout_s=SHORT_S), "timed out")
    NEMESES["resume"].inject(cluster, "B")
    NEMESES["kill"].inject(cluster, "B")
    NEMESES["expire"].inject(cluster, "B")
    cluster.await_(lambda: {"A"} == cluster.isr(), lambda: "A is alone in the ISR")
    refused = _produce(write_batch([b"m5.0"], "none"))
    _until(leader, refused, lambda found: found[AT].error is ErrorCode.NOT_ENOUGH_REPLICAS)
    ask(leader, refused, "not enough replicas")
    NEMESES["restart"].inject(cluster, "B")
    cluster.await_(lambda: {"A", "B"} == cluster.isr(), lambda: "B is in the ISR")


def _epochs(recorder: Recorder, name: str, leader: str) -> None:
    """Ask where leader epochs end, as a follower does, in versions that the release knows."""
    for number in (0,) if version(name) < (2, 0) else (0, 1, 2, 3):
        for epoch in (0, 9):
            request = epoch_question(number, _CORRELATION, epoch)
            recorder.keep(f"the end of epoch {epoch}", request[LENGTH.size :], asked(leader, request))


def _fail_over(cluster: Cluster) -> None:
    """Have B lead, and A follow it, so that A asks where its epoch ends, or is told where it diverges."""
    NEMESES["kill"].inject(cluster, "A")
    NEMESES["expire"].inject(cluster, "A")
    cluster.await_(lambda: cluster.leader() == "B", lambda: "B leads")
    NEMESES["restart"].inject(cluster, "A")
    cluster.await_(lambda: {"A", "B"} == cluster.isr(), lambda: "A is in the ISR")


def _produce(
    batch: bytes,
    *,
    acks: int = -1,
    timeout_s: float = 5.0,
    version_: int = requests.PRODUCE_VERSION,
    place: Place = AT,
) -> Question[Any]:
    return requests.produce({place: batch}, acks=acks, timeout_s=timeout_s, version=version_)


def _fetch(offset: int, version_: int = requests.FETCH_VERSION, place: Place = AT) -> Question[Any]:
    return requests.fetch({place: offset}, wait_ms=500, max_bytes=1 << 20, version=version_)


def _await_message_sets(leader: str) -> int:
    """Produce until the leader has taken up the topic's format; return the next offset."""
    ends = [0]

    def is_message_set(found: Mapping[Place, Produced]) -> bool:
        if found[SETS].error is not ErrorCode.NONE:
            return False
        ends.append(found[SETS].base_offset + 1)
        written = Recorder().ask(leader, _fetch(found[SETS].base_offset, place=SETS), "")[SETS].records
        return len(written) > MAGIC_AT and written[MAGIC_AT] < BATCH

    _until(leader, _produce(write_batch([b"s"], "none"), place=SETS), is_message_set)
    return ends[-1]


def _until(address: str, question: Question[T], is_right: Callable[[T], bool]) -> None:
    """Ask again and again until the answer is right, and keep none of these frames."""
    asks = Recorder()
    assert until(lambda: is_right(asks.ask(address, question, "")), limits.CONDITION_WAIT_S_MAX), question


def main(names: list[str]) -> None:
    """Write a file for each release."""
    FOLDER.mkdir(exist_ok=True)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            lines = record(name, Path(folder))
        text = "".join(f"{json.dumps({'release': name, **line})}\n" for line in lines)
        (FOLDER / f"{name}.jsonl").write_text(text)
        print(f"{name}: {len(lines)} questions")


if __name__ == "__main__":
    main(sys.argv[1:])
