"""
The load process: librdkafka's producer or consumer, one Job in, one line of Measured out.

    python -m benchmarks.load JOB

It is a separate process, so that the client does not run in a thread of the benchmark, and is the same for all
peers.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from benchmarks.cpu import cpu_seconds
from benchmarks.figures import percentile
from benchmarks.job import Job, Measured, Work

# The most bytes in flight, and the level at which the client is refilled: if it were refilled record by record, as
# acknowledgements come, it would send batches of one.
UNDER_WAY_BYTES: Final = 16 * 1024 * 1024
REFILL_BYTES: Final = 8 * 1024 * 1024
LINGER_MS: Final = 5
# The number of records in one call of the client; the latency of every SAMPLE_EVERY-th record is measured.
BATCH: Final = 500
SAMPLE_EVERY: Final = 50
DRAIN_S_MAX: Final = 30.0
# After this time without a record, the window opens or closes anyway.
IDLE_S_MAX: Final = 30.0
POLL_S: Final = 0.05


@dataclass(slots=True)
class Window:
    """
    The part of the load that is measured.

    It opens after the client has warmed up and completed a record, so that the look-up of the brokers is not
    measured. It closes after at least one record, since a window without records has no speed.
    """

    job: Job
    started: float = -1.0
    began: float = 0.0
    ended: float = 0.0
    brokers_cpu: float = 0.0
    client_cpu: float = 0.0
    records: int = 0
    latencies_ms: list[float] = field(default_factory=list)

    def goes_on(self, records: int) -> bool:
        """Open or close the window if it is time; return False once it is closed. records: the total so far."""
        now = time.monotonic()
        if self.started < 0:
            self.started = now
            cpu_seconds(self.job.pids)  # raises at once if a broker is gone
        if not self.began and _over(now - self.started, self.job.warm_s, records):
            self.latencies_ms.clear()
            self.records, self.began = records, now
            self.brokers_cpu, self.client_cpu = cpu_seconds(self.job.pids), time.process_time()
        elif self.began and _over(now - self.began, self.job.window_s, records - self.records):
            self.records, self.ended = records - self.records, now
            self.brokers_cpu = cpu_seconds(self.job.pids) - self.brokers_cpu
            self.client_cpu = time.process_time() - self.client_cpu
        return not self.ended

    def take(self, latency_ms: float) -> None:
        """Record a latency, unless the window is closed."""
        if not self.ended:
            self.latencies_ms.append(latency_ms)

    def measured(self, failed: int) -> Measured:
        """Return the measurement of the window."""
        taken = sorted(self.latencies_ms)
        return Measured(
            records=self.records,
            record_bytes=self.job.record_bytes,
            seconds=self.ended - self.began,
            broker_cpu_s=self.brokers_cpu,
            client_cpu_s=self.client_cpu,
            failed=failed,
            p50_ms=percentile(taken, 0.50) if taken else None,
            p99_ms=percentile(taken, 0.99) if taken else None,
        )


def _over(passed_s: float, asked_s: float, records: int) -> bool:
    return passed_s >= asked_s and (records > 0 or passed_s >= asked_s + IDLE_S_MAX)


def produce(job: Job) -> Measured:
    """Produce as many records as the brokers accept."""
    producer = Producer(_producer_config(job, LINGER_MS))
    records = [{"value": bytes(job.record_bytes)}] * BATCH
    most, refill = (limit // job.record_bytes for limit in (UNDER_WAY_BYTES, REFILL_BYTES))
    window = Window(job)
    handed = done = failed = 0

    def delivered(error: Any, message: Any) -> None:
        nonlocal done, failed
        if error is not None:
            failed += 1
            return
        done += 1
        if done % SAMPLE_EVERY == 0:
            window.take(message.latency() * 1000)

    while window.goes_on(done):
        if handed - done - failed <= refill:
            while handed - done - failed < most:
                handed += producer.produce_batch(job.topic, records, on_delivery=delivered)
        producer.poll(POLL_S)
    failed += producer.flush(DRAIN_S_MAX)
    return window.measured(failed)


def alone(job: Job) -> Measured:
    """Produce one record at a time, and wait for its acknowledgement."""
    producer = Producer(_producer_config(job, linger_ms=0))
    value = bytes(job.record_bytes)
    window = Window(job)
    done = failed = 0

    def delivered(error: Any, _message: Any) -> None:
        nonlocal done, failed
        done, failed = done + (error is None), failed + (error is not None)

    while window.goes_on(done):
        before = time.perf_counter()
        producer.produce(job.topic, value, on_delivery=delivered)
        failed += producer.flush(DRAIN_S_MAX)
        window.take((time.perf_counter() - before) * 1000)
    return window.measured(failed)


def _producer_config(job: Job, linger_ms: int) -> dict[str, object]:
    return {
        "bootstrap.servers": job.bootstrap,
        "acks": job.acks,
        "linger.ms": linger_ms,
        "queue.buffering.max.kbytes": 2 * UNDER_WAY_BYTES // 1024,
        "queue.buffering.max.messages": 1_000_000,
    }


def consume(job: Job) -> Measured:
    """Read every partition from its beginning to its end, again and again, until the window closes."""
    config = {
        "bootstrap.servers": job.bootstrap,
        "group.id": "benchmark",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(config)
    try:
        consumer.assign([TopicPartition(job.topic, number, 0) for number in range(job.partitions)])
        window = Window(job)
        done = 0
        while window.goes_on(done):
            for message in consumer.consume(num_messages=BATCH, timeout=POLL_S):
                error = message.error()
                if error is None:
                    done += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    consumer.seek(TopicPartition(job.topic, message.partition(), 0))
                else:
                    raise KafkaException(error)
        return window.measured(failed=0)
    finally:
        consumer.close()


WORKS: Final = {Work.PRODUCE: produce, Work.ALONE: alone, Work.CONSUME: consume}


def main(arguments: list[str]) -> int:
    """Run the job in the first argument, and print its measurement."""
    job = Job.from_json(arguments[0])
    print(WORKS[job.work](job).to_json())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
