"""
A producer of a workload, on plain sockets: one request under way at a time.

    ok      acknowledged, with its offset; with acks=0 only sent
    fail    certainly not appended, by no try
    info    all else: a try may have been appended, and none was acknowledged
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from harness.clients.clock import left
from harness.clients.events import Recorder, produce_events
from harness.clients.outcome import Outcome
from harness.events import Produce
from harness.kafka_errors import KAFKA_ERRORS, MOVED
from harness.logs.record import sent_digest
from harness.model import OpType
from harness.workload.numbering import IDEMPOTENT_TRIES, UNNUMBERED, Numbering, Numbers
from harness.workload.plan import Place, ProducerPlan
from harness.workload.script import FIRST, Life, ProducerScript, Send
from targets.kafka_family.clients import questions
from targets.kafka_family.clients.batches import write_batch
from targets.kafka_family.clients.connection import Connection, NoAnswer, NotSent
from targets.kafka_family.clients.network import BACKOFF_S, Network
from targets.kafka_family.clients.refusals import outcome_of, outcome_without
from targets.kafka_family.wire.answers import Produced

# The share of a producer's time that the broker gets, so that "timed out" arrives before the client gives up.
BROKERS_SHARE: Final = 0.8
_MOVED: Final = frozenset(KAFKA_ERRORS[code].name for code in MOVED)


class Producer:
    """
    One producer.

    Args:
        seed: of the run; it decides what is sent, and which nodes are asked who leads.
        process: its name in the history and on the network.
        nodes: a node's name -> "host:port".
        life: which of its lives this is.

    Attributes:
        network: its connections, which `run` closes at its end.
    """

    def __init__(
        self,
        plan: ProducerPlan,
        seed: int,
        *,
        process: str,
        history: Recorder,
        nodes: Mapping[str, str],
        life: Life = FIRST,
    ) -> None:
        self._plan = plan
        self._script = ProducerScript(plan, seed, life)
        self._process = process
        self._history = history
        self._numbering = Numbering()
        # Not the script's chance: how often it asks depends on time, and what it sends must not.
        self.network = Network(process, plan.places, nodes, Random(f"metadata {plan.name} {seed}").choice)

    def run(self, leave: threading.Event) -> None:
        """Send until it is to leave."""
        with self.network:
            while not leave.wait(self._script.pause_ms() / 1000):
                if self._plan.idempotent and not self._numbering.has_id:
                    self._begin()
                else:
                    self.send(self._script.next(), leave)

    def _begin(self) -> None:
        """Ask a node for a producer's id; without an answer another one is asked after the next pause."""
        try:
            self._numbering.begin(*self.network.ask_any(questions.producer_id))
        except (NotSent, NoAnswer):
            return

    # --- one batch for each partition ------------------------------------------------------------------------
    def send(self, send: Send, leave: threading.Event) -> None:
        """Send a batch to each partition, again if the plan says so, and record every record's outcome."""
        events = {place: produce_events(self._plan.name, place, values, send) for place, values in send.parts}
        batches = {
            place: write_batch([value.encode() for value in values], send.codec, self._numbers(place, len(values)))
            for place, values in send.parts
        }
        for of_place in events.values():
            for event in of_place:
                asked = replace(event, digest=sent_digest(event.value))  # write_batch writes no timestamp
                self._history.record(self._process, OpType.INVOKE, asked)
        missing: dict[Place, Outcome] = {}
        deadline = time.monotonic() + self._plan.within_ms / 1000
        for attempt in range(1 + self._plan.retries):
            if attempt and (leave.wait(BACKOFF_S) or time.monotonic() > deadline):
                break
            self.network.refresh()
            for together in self._groups(list(batches)):
                tried = self._try({place: batches[place] for place in together}, send, leave)
                for place, outcome in tried.items():
                    if outcome.type is OpType.OK:
                        self._record(events[place], outcome)
                        del batches[place]
                        missing.pop(place, None)
                    elif missing.get(place, outcome).type is OpType.FAIL or outcome.type is OpType.INFO:
                        missing[place] = outcome  # what may have been appended by one try stays unknown
            if not batches:
                break
        for place, outcome in missing.items():
            self._record(events[place], outcome)
        if missing and self._plan.idempotent:
            self._numbering.doubt()

    def _numbers(self, place: Place, records: int) -> Numbers:
        return self._numbering.number(place, records) if self._plan.idempotent else UNNUMBERED

    def _record(self, events: Sequence[Produce], outcome: Outcome) -> None:
        for at, event in enumerate(events):
            known = replace(event, offset=outcome.offset(at), error=outcome.error)
            self._history.record(self._process, outcome.type, known)

    # --- one request -----------------------------------------------------------------------------------------
    def _groups(self, places: list[Place]) -> list[list[Place]]:
        """Return what goes into a request each: all partitions if one node is believed to lead them."""
        leaders = {self.network.leader(place) for place in places}
        return [places] if len(leaders) == 1 and None not in leaders else [[place] for place in places]

    def _try(self, batches: Mapping[Place, bytes], send: Send, leave: threading.Event) -> dict[Place, Outcome]:
        """Send these batches once, in one request, to the node that is believed to lead their partitions."""
        tries = IDEMPOTENT_TRIES if self._plan.idempotent else 1
        deadline = time.monotonic() + self._plan.within_ms / 1000 / tries

        def question(connection: Connection) -> dict[Place, Produced]:
            return questions.produce_each(
                connection,
                batches,
                acks=send.acks,
                timeout_s=left(deadline) * BROKERS_SHARE,
                zstd=send.codec == "zstd",
            )

        try:
            leader = self._leader(next(iter(batches)), deadline, leave)
            found = self.network.ask(leader, left(deadline), question)
        except (NotSent, NoAnswer) as error:
            return dict.fromkeys(batches, outcome_without(error))
        outcomes = {place: outcome_of(found.get(place), send.acks) for place in batches}
        self.network.forget(place for place, outcome in outcomes.items() if outcome.error in _MOVED)
        return outcomes

    def _leader(self, place: Place, deadline: float, leave: threading.Event) -> str:
        """
        Return the node that is believed to lead a partition; ask node after node while there is none.

        Raises:
            NotSent: none was named in time, or the producer is to leave.
        """
        why = ""
        while (leader := self.network.leader(place)) is None:
            why = self.network.refresh(left(deadline)) or why
            if self.network.leader(place) is not None:
                continue
            if leave.wait(min(BACKOFF_S, left(deadline))) or time.monotonic() >= deadline:
                raise NotSent(why or f"{place}: no node names a leader; expected one in time")
        return leader
