"""
Play a scenario on a cluster: each step recorded, each condition seen before the next, then heal and read.

    produce NAME acks=0|1|all [...]       see harness/produces.py
    read [via A]                          a client reads all that it may see
    FAULT NODES                           a fault of docs/nemeses.md, on all these nodes at once
    await CONDITION                       wait until it holds
    require CONDITION                     now, or the cell is unknown

`API` may be `question`: what a restarted follower asks first under the protocol played.
A step that fails ends the schedule; the cluster is healed and read all the same, and the run is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from harness.client import Client
from harness.cluster import PARTITION, TOPIC, Cluster
from harness.conditions import Conditions
from harness.fault import Fault
from harness.links import VERBS, LinkSteps
from harness.logdir.scan import snapshot_ops
from harness.marks import Marks
from harness.model import BeyondHelpError, FencepostError, OpType, PreconditionError, Source, UsageError
from harness.news import News
from harness.produces import Produces
from harness.schedule import Draw, Scenario, Step

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Play:
    """One scenario being played; its steps are those of the variant that is played."""

    scenario: Scenario
    draw: Draw
    cluster: Cluster
    client: Client
    faults: Mapping[str, Fault]
    # How a step or a fault that did not come about is told: what a random schedule asks for need not come about.
    missed: OpType = OpType.FAIL
    marks: Marks = field(init=False)
    produces: Produces = field(init=False)
    links: LinkSteps = field(init=False)
    conditions: Conditions = field(init=False)
    _news: News = field(init=False, default_factory=News)

    def __post_init__(self) -> None:
        self.marks = Marks(counts=self.draw.counts)
        self.produces = Produces(self.cluster, self.client, self.marks)
        self.links = LinkSteps(self.cluster, self.marks, self._news, self._api)
        self.conditions = Conditions(
            self.cluster,
            self.scenario.replicas,
            marks=self.marks,
            links=self.links,
            produces=self.produces,
            news=self._news,
        )

    # --- the whole run ---------------------------------------------------------------------------------------
    def run(self) -> None:
        """Set up, play, heal, read; every failure is in the history, none is raised but a wrong scenario."""
        self.cluster.history.listeners.append(self._news.listen)
        try:
            self._recorded({"line": 0, "text": "set up", "narrative": ""}, self._set_up)
            for step in self.scenario.steps:
                self._step(step)
            if self.links.rules:
                last = {"line": self.scenario.steps[-1].line, "text": "every rule of a link bit", "narrative": ""}
                self._recorded(last, self.links.prove)
        except UsageError as error:
            raise UsageError(f"scenario {self.scenario.name}: {error}") from error
        except FencepostError as error:
            _log.info("%s: stopped: %s", self.scenario.name, error)
        self._heal()
        self.produces.end()
        self._read()
        self._say(OpType.INFO, "done", {})

    def _set_up(self) -> None:
        """Start the controller first, so that it is the controller; then the replicas, then the topic."""
        cluster = self.cluster
        controller = self.scenario.nodes[0]
        cluster.start(controller)
        cluster.await_(lambda: cluster.observer.controller() == controller, lambda: f"controller is {controller}")
        cluster.time.together(cluster.start, self.scenario.nodes[1:])
        cluster.observer.watch(TOPIC, PARTITION)
        self.client.create_topic(TOPIC, [cluster.ids[name] for name in self.scenario.replicas])
        self._await(["leader", "=", self.scenario.replicas[0]])
        self._await(["isr", "=", *self.scenario.replicas])

    def _step(self, step: Step) -> None:
        about = {"line": step.line, "text": step.text, "narrative": step.narrative}
        self._recorded(about, lambda: self._act(step.words))

    def _recorded(self, about: Mapping[str, object], act: Callable[[], None]) -> None:
        """Do it as a step of the history; a step that fails is recorded with its error, and raised."""
        self._say(OpType.INVOKE, "step", about)
        try:
            act()
        except FencepostError as error:
            self._say(self.missed, "step", {**about, "error": str(error)})
            raise
        self._say(OpType.OK, "step", about)

    def _act(self, words: tuple[str, ...]) -> None:
        if words[0] not in ("await", "require"):
            self._news.turn()
            self.conditions.turn()
        match words:
            case ("await", *condition):
                self._await(condition)
            case ("require", *condition):
                if not self.conditions.of(condition)():
                    raise PreconditionError(f"required and not so: {self.conditions.saw(condition)}")
            case ("produce", name, *options):
                self.produces.act(name, options)
            case ("read",):
                self.client.read_all(TOPIC, PARTITION)
            case ("read", "via", node):
                self.client.read_all(TOPIC, PARTITION, via=self.cluster.address_of(node))
            case (verb, *_) if verb in VERBS:
                self.links.act(words)
            case (verb, *nodes) if verb in self.faults and nodes:
                self._inject(self.faults[verb], nodes)
            case _:
                raise UsageError(
                    f"step {' '.join(words)!r}; expected one of produce, read, await, require, "
                    f"{', '.join((*VERBS, *self.faults))} (harness/runner.py)"
                )

    # --- steps -----------------------------------------------------------------------------------------------
    def _await(self, condition: list[str]) -> None:
        self.cluster.await_(self.conditions.of(condition), lambda: self.conditions.saw(condition))

    def _inject(self, fault: Fault, nodes: list[str]) -> None:
        """Inject into all nodes at once: a power cut that takes two brokers takes them together."""
        process = "nemesis"
        self.cluster.record(Source.NEMESIS, process, OpType.INVOKE, fault.name, {"nodes": nodes})
        try:
            probes = self.cluster.time.together(lambda name: fault.inject(self.cluster, name), nodes)
        except FencepostError as error:
            value = {"nodes": nodes, "error": str(error)}
            self.cluster.record(Source.NEMESIS, process, self.missed, fault.name, value)
            raise
        value = {"nodes": nodes, "probe": "; ".join(probes)}
        self.cluster.record(Source.NEMESIS, process, OpType.OK, fault.name, value)

    def _api(self, word: str) -> str:
        return self.cluster.target.first_question(self.cluster.rules) if word == "question" else word

    # --- the end ---------------------------------------------------------------------------------------------
    def _heal(self) -> None:
        """Undo every fault, then wait until the cluster is whole."""
        cluster = self.cluster
        self._miss_the_gone()
        try:
            cluster.fabric.heal_all()
            for name in sorted(cluster.zombies):
                self._inject(self.faults["return"], [name])
            for name in sorted(cluster.paused):
                self._inject(self.faults["resume"], [name])
            # The session of a dead node ends some day, and a controller sees it; it is ended now.
            for name in (name for name in sorted(cluster.down) if cluster.observer.registered(name)):
                self._inject(self.faults["expire"], [name])
            for name in sorted(cluster.down):
                self._inject(self.faults["restart"], [name])
            self._await_whole()
        except FencepostError as error:
            waited = not isinstance(error, BeyondHelpError)
            self._say(OpType.FAIL, "healed", {"missing": str(error), "waited": waited})
        else:
            self._say(OpType.OK, "healed", {})
        self._miss_the_gone()

    def _await_whole(self) -> None:
        """Wait until each replica has caught up with the leader or says that it cannot."""
        within_s = self.scenario.settings.heal_within_s
        self.cluster.await_(self.conditions.whole, self.conditions.lacking, within_s)

    def _miss_the_gone(self) -> None:
        """A node that nobody took down and that is not there ended by itself, which no scenario allows."""
        cluster = self.cluster
        for name in cluster.ids:
            if name in cluster.down or (cluster.host.alive(name) and not cluster.has_exited(name)):
                continue
            error = f"{name} ended by itself; {cluster.last_words(name)}"
            self._say(OpType.FAIL, "exited", {"node": name, "error": error})
            if cluster.host.alive(name):  # it may hang in its own exit
                cluster.host.kill(name)
            cluster.down.add(name)

    def _read(self) -> None:
        """Final reads: through the client where anybody leads, then each replica's own log."""
        leader = self.cluster.leader()
        if leader is not None and self.conditions.leads(leader):
            with suppress(FencepostError):  # a read that fails is in the history, and misses there
                self.client.read_all(TOPIC, PARTITION)
        for name in self.scenario.replicas:
            try:
                log = self.cluster.log(name)
            except (FencepostError, OSError) as error:
                place = {"topic": TOPIC, "partition": PARTITION, "problems": [str(error)]}
                self.cluster.record(Source.LOG, name, OpType.FAIL, "snapshot", place)
                continue
            if log is None:
                place = {"topic": TOPIC, "partition": PARTITION, "problems": ["no log directory"]}
                self.cluster.record(Source.LOG, name, OpType.FAIL, "snapshot", place)
                continue
            for f, value in snapshot_ops(log):
                self.cluster.record(Source.LOG, name, OpType.OK, f, value)

    def _say(self, type_: OpType, f: str, value: Mapping[str, object]) -> None:
        self.cluster.record(Source.RUNNER, "runner", type_, f, value)
