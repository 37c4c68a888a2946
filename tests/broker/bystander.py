"""
Produce a record and read it back, until a line comes:  python -m tests.broker.bystander ADDRESS TOPIC

It prints a line when its first record is read, and one of JSON at the end: the fields of tests.broker.storm.Seen.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import ExitStack

from targets.kafka_family.clients.batches import write_batch
from targets.kafka_family.clients.connection import Connection, NoAnswer, NotSent
from targets.kafka_family.clients.questions import fetch, produce
from targets.kafka_family.logs.message_set import records_of, walk

ANSWER_S_MAX = 60.0
PAUSE_S = 0.005


def values_in(records: bytes) -> dict[int, str]:
    """Return the values of whole batches by offset."""
    found = (record for header in walk(records).headers for record in records_of(header))
    return {record.offset: record.value_text or "" for record in found}


class Bystander:
    """One connection at a time, one record at a time."""

    def __init__(self, address: str, topic: str) -> None:
        self._address = address
        self._topic = topic
        self._kept = ExitStack()
        self._connection: Connection | None = None
        self.waits_s: list[float] = []
        self.errors: list[str] = []
        self.written: dict[int, str] = {}

    def turn(self, value: str) -> None:
        """Produce a record and read it back, on a new connection after an error."""
        began = time.monotonic()
        try:
            self._write_and_read(value)
        except (NoAnswer, NotSent, AssertionError) as error:
            self.errors.append(str(error))
            self._kept.close()
            self._connection = None
        self.waits_s.append(time.monotonic() - began)

    def lost(self) -> int:
        """Read everything; return how many acknowledged records are not there, or cannot be read."""
        found: dict[int, str] = {}
        offset = 0
        try:
            while offset <= max(self.written, default=-1):
                batch = values_in(fetch(self._open(), self._topic, 0, offset).records)
                if not batch:
                    break
                found |= batch
                offset = max(batch) + 1
        except (NoAnswer, NotSent) as error:
            self.errors.append(str(error))
        return sum(found.get(at) != value for at, value in self.written.items())

    def _open(self) -> Connection:
        if self._connection is None:
            deadline = time.monotonic() + ANSWER_S_MAX
            self._connection = self._kept.enter_context(Connection(self._address, "bystander", deadline))
        self._connection._deadline = time.monotonic() + ANSWER_S_MAX
        return self._connection

    def _write_and_read(self, value: str) -> None:
        batch = write_batch([value.encode()], "none")
        made = produce(self._open(), self._topic, 0, batch, acks=-1, timeout_s=ANSWER_S_MAX, zstd=False)
        assert made is not None and int(made.error) == 0, f"produce: {made}"
        self.written[made.base_offset] = value
        found: dict[int, str] = {}
        # Nothing is an answer too, where a broker is short of memory: as any consumer, ask again.
        until = time.monotonic() + ANSWER_S_MAX
        while made.base_offset not in found:
            assert time.monotonic() < until, f"fetch at {made.base_offset}: nothing in {ANSWER_S_MAX} s"
            read = fetch(self._open(), self._topic, 0, made.base_offset)
            assert int(read.error) == 0, f"fetch at {made.base_offset}: {read}"
            found = values_in(read.records)
        assert found[made.base_offset] == value, f"fetch at {made.base_offset}: {found}"


def main() -> int:
    """Produce and read until a line comes, then read everything."""
    address, topic = sys.argv[1:]
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), over.set()), daemon=True).start()
    client = Bystander(address, topic)
    client.turn("bystander begins")
    print("begun", flush=True)
    while not over.wait(PAUSE_S):
        client.turn(f"bystander {len(client.waits_s)}")
    lost = client.lost()
    seen = {
        "waits_s": client.waits_s,
        "errors": client.errors,
        "acknowledged": len(client.written),
        "lost": lost,
    }
    print(json.dumps(seen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
