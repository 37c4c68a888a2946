"""
A churner of a workload, on plain sockets: it creates, writes to, deletes and creates again a topic of its own.

    ok      a create or a delete that was acknowledged
    fail    it certainly did nothing: not sent, or refused, as by a broker that is controller no more
    info    all else: it may have happened, or may happen later

It asks each of these once, of the node that it believes to be the controller. A batch goes to the leader, once, as
a producer's does. Leaders are those of one generation, and forgotten whenever the topic may have changed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from harness.clients.clock import left
from harness.clients.events import Recorder
from harness.events import CreateTopic, DeleteTopic
from harness.model import OpType
from harness.workload.plan import ACKS_ALL, ChurnPlan, ProducerPlan
from harness.workload.script import ChurnAct, ChurnScript, Create, Send, Write
from targets.kafka_family.clients import topics
from targets.kafka_family.clients.connection import NoAnswer, NotSent
from targets.kafka_family.clients.network import BACKOFF_S, METADATA_S_MAX
from targets.kafka_family.clients.producing import BROKERS_SHARE, Producer
from targets.kafka_family.clients.refusals import outcome_without
from targets.kafka_family.wire.errors import ErrorCode

_Event: TypeAlias = CreateTopic | DeleteTopic

NO_CONTROLLER: Final = "no node names a controller; expected one in time"


class Churner:
    """
    One churner.

    Args:
        seed: of the run; it decides what is done, and which nodes are asked who leads.
        process: its name in the history and on the network.
        nodes: a node's name -> "host:port".
    """

    def __init__(
        self, plan: ChurnPlan, seed: int, *, process: str, history: Recorder, nodes: Mapping[str, str]
    ) -> None:
        self._plan = plan
        self._script = ChurnScript(plan, seed)
        self._process = process
        self._history = history
        self._nodes = nodes
        writes = ProducerPlan(name=plan.name, places=plan.places, within_ms=plan.within_ms)
        self._producer = Producer(writes, seed, process=process, history=history, nodes=nodes)
        self._network = self._producer.network
        self._controller = ""
        self._ids: dict[str, int] = {}

    def run(self, leave: threading.Event) -> None:
        """Act until it is to leave."""
        with self._network:
            while True:
                pause_ms, act = self._script.next()
                if leave.wait(pause_ms / 1000):
                    return
                self._act(act, leave)

    def _act(self, act: ChurnAct, leave: threading.Event) -> None:
        topic = self._plan.topic
        match act:
            case Write(place=place, values=values):
                self._producer.send(Send(parts=((place, values),), acks=ACKS_ALL, codec="none"), leave)
            case Create(assignments=assignments):
                self._change(CreateTopic(topic=topic, assignments=assignments), leave)
            case _:
                self._change(DeleteTopic(topic=topic), leave)

    # --- create and delete -----------------------------------------------------------------------------------
    def _change(self, event: _Event, leave: threading.Event) -> None:
        """Ask the controller to create or to delete the topic, once, and record the outcome."""
        self._history.record(self._process, OpType.INVOKE, event)
        deadline = time.monotonic() + self._plan.within_ms / 1000
        try:
            type_, error = self._asked(event, deadline, leave)
        except (NotSent, NoAnswer) as why:
            outcome = outcome_without(why)
            type_, error, self._controller = outcome.type, outcome.error, ""
        self._network.forget(self._plan.places)
        self._history.record(self._process, type_, replace(event, error=error))

    def _asked(self, event: _Event, deadline: float, leave: threading.Event) -> tuple[OpType, str]:
        controller = self._find(event, deadline, leave)
        if isinstance(event, CreateTopic):
            ids = [[self._ids[name] for name in names] for names in event.assignments]
            answer = self._network.ask(
                controller,
                left(deadline),
                lambda connection: topics.create(connection, event.topic, ids, left(deadline) * BROKERS_SHARE),
            )
        else:
            answer = self._network.ask(
                controller,
                left(deadline),
                lambda connection: topics.delete(connection, event.topic, left(deadline) * BROKERS_SHARE),
            )
        if answer.error is ErrorCode.NONE:
            return OpType.OK, ""
        if answer.error is ErrorCode.NOT_CONTROLLER:
            self._controller = ""
        type_ = OpType.INFO if answer.error in topics.DOUBTFUL else OpType.FAIL
        return type_, f"{answer.error.name} {answer.text}".strip()

    def _find(self, event: _Event, deadline: float, leave: threading.Event) -> str:
        """
        Return the node that is believed to be the controller; ask node after node while there is none.

        Raises:
            NotSent: none was named in time, or the id of a node that is to have a replica is not known.
        """
        wanted = (
            {name for names in event.assignments for name in names} if isinstance(event, CreateTopic) else set()
        )
        why = NO_CONTROLLER
        while not self._controller or wanted - self._ids.keys():
            try:
                self._learn(min(left(deadline), METADATA_S_MAX))
                why = (
                    f"no id of {', '.join(sorted(wanted - self._ids.keys()))}"
                    if self._controller
                    else NO_CONTROLLER
                )
            except (NotSent, NoAnswer) as error:
                why = str(error)
            if self._controller and not wanted - self._ids.keys():
                break
            if leave.wait(min(BACKOFF_S, left(deadline))) or time.monotonic() >= deadline:
                raise NotSent(why)
        return self._controller

    def _learn(self, within_s: float) -> None:
        """Ask a node for the controller and the ids of all brokers that live; ids that are known stay known."""
        node = self._script.any_of(list(self._nodes))
        found = self._network.ask(node, within_s, lambda connection: topics.brokers(connection, self._plan.topic))
        names = {address: name for name, address in self._nodes.items()}
        self._ids.update({names[address]: number for address, number in found.ids.items() if address in names})
        self._controller = names.get(found.controller, found.controller)
