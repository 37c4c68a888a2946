"""Mutants of what every part of the core steps through: broker, state, timers, waits."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    # --- broker ----------------------------------------------------------------------------------------------
    Mutant(
        name="armed-tick-never-moves",
        module="broker",
        category=Category.MANY,
        sentence="A timer that is set while a later tick is armed does not move that tick, and fires late.",
        breaks="Kafka's SystemTimer: the earliest of all timers decides when it wakes",
        edits=(
            (
                "if earliest not in (NEVER, core.state.armed_ns):",
                "if earliest != NEVER and core.state.armed_ns == NEVER:",
            ),
        ),
    ),
    Mutant(
        name="one-timer-a-tick",
        module="broker",
        category=Category.MANY,
        sentence="Of several timers that are due at one tick only the first fires, and the others never do.",
        breaks="Kafka's SystemTimer: advanceClock runs every expired task",
        edits=(("            _on_timer(core, key)\n", "            _on_timer(core, key)\n            break\n"),),
    ),
    Mutant(
        name="checkpoint-written-once",
        module="broker",
        category=Category.MANY,
        sentence="The timer of the high watermark checkpoint is armed at the start alone: it is written once.",
        breaks="V3 C, the checkpoint thread; Kafka's ReplicaManager.startHighWatermarkCheckPointThread",
        edits=(
            (
                'core.after_ms(("checkpoint",), core.config.high_watermark_checkpoint_ms)\n    current = {',
                "current = {",
            ),
        ),
    ),
    Mutant(
        name="checkpoint-of-led-partitions",
        module="broker",
        category=Category.PROTOCOL,
        sentence="The high watermark checkpoint has only the partitions that this broker leads.",
        breaks="V3 C: every replica keeps its high watermark; Kafka's checkpointHighWatermarks",
        edits=(("if replica.role is not Role.NONE or replica.log.end_offset", "if replica.role is Role.LEADER"),),
    ),
    Mutant(
        name="stale-isr-answer-believed",
        module="broker",
        category=Category.COMMAND,
        sentence="A leader believes the answer to an ISR write that an older session of its own made.",
        breaks="V3 G; ZooKeeper answers for the session that asked",
        edits=(
            (
                "isr.on_asked(core, continuation, ZkError.LOST if stale else results[0])",
                "isr.on_asked(core, continuation, results[0])",
            ),
        ),
    ),
    Mutant(
        name="older-session-believed",
        module="broker",
        category=Category.COMMAND,
        sentence="Registrations, readings and elections of a session that has ended count in the new one.",
        breaks="V3 E; Kafka's KafkaZkClient checks the session of every write (KAFKA-7165)",
        edits=(("case _ if not stale and continuation is not None:", "case _ if continuation is not None:"),),
    ),
    Mutant(
        name="parts-of-two-sessions",
        module="broker",
        category=Category.COMMAND,
        sentence="A long request to ZooKeeper whose parts two sessions answered counts as the last one's.",
        breaks="V3 D; KAFKA-7165: what an older session was told is void",
        edits=(("event.session if rest.session in (None, event.session) else NO_SESSION", "event.session"),),
    ),
    Mutant(
        name="flushed-before-the-cut",
        module="broker",
        category=Category.PROTOCOL,
        sentence="A flush that was asked for before a truncation counts for the log after it.",
        breaks="KIP-101, Unclean Shutdown: what is durable is the log as it was at the flush",
        edits=(("if replica is not None and replica.generation == event.generation:", "if replica is not None:"),),
    ),
    Mutant(
        name="shrunk-isr-commits-late",
        module="broker",
        category=Category.PROTOCOL,
        sentence="A leader whose ISR was written smaller does not look at its high watermark again.",
        breaks="V3 G; Kafka's Partition.maybeShrinkIsr: the high watermark may rise, as the ISR may be 1",
        edits=(
            (
                "isinstance(continuation, isr.AwaitIsrWrite | isr.AwaitIsrRead)",
                "isinstance(continuation, isr.AwaitIsrRead)",
            ),
        ),
    ),
    # --- state -----------------------------------------------------------------------------------------------
    Mutant(
        name="long-ask-backwards",
        module="state",
        category=Category.MANY,
        sentence="A request to ZooKeeper that is sent in parts is sent from its end; its results are mixed up.",
        breaks="ZooKeeper's FIFO order of one client; results are in the order of the operations",
        edits=(("left=list(reversed(ops))", "left=list(ops)"),),
    ),
    Mutant(
        name="timer-set-once",
        module="state",
        category=Category.MANY,
        sentence="A timer that is set again before it fires keeps its first time.",
        breaks="Kafka's DelayedOperation: each operation has the time-out that it was given",
        edits=(
            (
                "        self.state.timers.set(key,",
                "        if key not in tuple(self.state.timers):\n            self.state.timers.set(key,",
            ),
        ),
    ),
    Mutant(
        name="multi-weighs-one",
        module="state",
        category=Category.MANY,
        sentence="Of requests to ZooKeeper that are sent together, one of many operations counts as one.",
        breaks="Kafka's zookeeper.max.in.flight.requests: what is in flight is bounded",
        edits=(("sum(len(op.ops) if isinstance(op, ZkMulti) else 1 for op in ops)", "len(list(ops))"),),
    ),
    # --- timers ----------------------------------------------------------------------------------------------
    Mutant(
        name="moved-timer-fires-early",
        module="timers",
        category=Category.MANY,
        sentence="A timer that was moved to a later time still fires at its first one.",
        breaks="Kafka's TimerTask.cancel: what was moved does not run at its old time",
        edits=(("self._at.get(self._heap[0][2]) != self._heap[0][0]", "self._heap[0][2] not in self._at"),),
    ),
    Mutant(
        name="timers-unsorted",
        module="timers",
        category=Category.MANY,
        sentence="After many timers were moved or dropped the rest is out of order, and some fire late.",
        breaks="Kafka's TimingWheel: the earliest timer fires first",
        edits=(("heapq.heapify(self._heap)", "self._heap.reverse()"),),
    ),
    Mutant(
        name="timers-by-name",
        module="timers",
        category=Category.MANY,
        sentence="Timers that are due together fire in the order of their names, not of their times.",
        breaks="Kafka's SystemTimer: expired tasks run in the order of their times",
        edits=(("key=lambda key: (found[key], str(key))", "key=str"),),
    ),
    # --- waits -----------------------------------------------------------------------------------------------
    Mutant(
        name="first-wait-alone",
        module="waits",
        category=Category.MANY,
        sentence="Of the requests that wait for a partition only the first is found; the others time out.",
        breaks="Kafka's DelayedOperationPurgatory.checkAndComplete: all watchers of a key are tried",
        edits=(
            ("for number in self._of_partition.get(tp, ())]", "for number in self._of_partition.get(tp, ())][:1]"),
        ),
    ),
    Mutant(
        name="waits-for-its-first-partition",
        module="waits",
        category=Category.MANY,
        sentence="A request of several partitions is woken by its first one alone.",
        breaks="Kafka's DelayedOperationPurgatory.tryCompleteElseWatch: it is watched under every key",
        edits=(
            (
                "for tp in request.partitions:\n            numbers",
                "for tp in tuple(request.partitions)[:1]:\n            numbers",
            ),
        ),
    ),
    Mutant(
        name="hangup-ends-one-wait",
        module="waits",
        category=Category.MANY,
        sentence="Of a closed connection's requests that wait only the first is dropped.",
        breaks="Kafka's SocketServer: nothing is sent on a closed connection",
        edits=(
            ("list(self._of_connection.get(connection, ()))", "list(self._of_connection.get(connection, ()))[:1]"),
        ),
        unreachable="a connection is read no further while one of its requests waits, as in Kafka's SocketServer",
    ),
)
