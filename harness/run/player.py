"""
Plays a run: opens its cluster, plays its steps, heals, reads every log, and closes everything.

Failures of the system under test or of a fault are not raised: they are in the history, for the checkers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness import events
from harness.cluster.cluster import Cluster, RunCancelled
from harness.cluster.fault import Fault
from harness.events import Healed, RunnerNote, Setup
from harness.history.file import History
from harness.model import FencepostError, Op, OpType, Source
from harness.random_schedule.runner import RandomPlay, with_slack
from harness.run.environment import Environment
from harness.run.failure import failure_of, reason_of
from harness.run.spec import RunSpec
from harness.run.store import Run, SuiteDir
from harness.scenario.file import Step
from harness.scenario.runner import Play
from harness.scenario.service_steps import hits_on_services
from harness.scenario.stop import Stop, Watch
from harness.scenario.text import text_of
from harness.tables.following import Following
from harness.target.clients import Client
from harness.target.traits import Traits
from harness.version import version


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """
    Plays runs in one environment, in parallel threads, and can cancel all of them.

    Attributes:
        watch: makes the live check of a run that stops at a violation; None if no run is asked to.
        listeners: called with every op of every run.
    """

    environment: Environment
    faults: Mapping[str, Fault]
    watch: Callable[[], Watch] | None = None
    listeners: Sequence[Callable[[Op], None]] = ()
    _open: dict[str, Cluster] = field(default_factory=dict)
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Take down every cluster, even one that is still being opened; raise FencepostError if a part remains."""
        self._cancelled.set()
        with ExitStack() as stack:
            for cluster in list(self._open.values()):
                stack.callback(cluster.cancel)

    def attempt(self, spec: RunSpec, suite: SuiteDir, on_step: Callable[[str], None] = lambda _: None) -> Run:
        """
        Play a run in a new folder of the suite; a run that cannot be played or taken down says why in `failure`.

        What could not be taken down is in a ledger, and the next run undoes it.

        Raises:
            RunCancelled: `cancel` was called.
        """
        began = time.monotonic()
        try:
            return self.play(spec, suite.create_run(spec.name), on_step)
        except RunCancelled:
            raise
        except Exception as error:
            if self._cancelled.is_set():  # what was taken down under a run may fail in any way
                raise
            run = suite.run(spec.name)
            return replace(run, seconds=time.monotonic() - began, failure=failure_of(run, error))

    def play(self, spec: RunSpec, run: Run, on_step: Callable[[str], None] = lambda _: None) -> Run:
        """
        Play a run, and write its schedule, history (and its tables, if it is large), printed lines and replica
        files to its folder.

        Whatever is raised, no process of the run is left alive.

        Args:
            on_step: called with the text of each step as it begins.

        Returns:
            The run's folder, with the power tier of its disks and the time that the run took.

        Raises:
            UsageError: the machine or the scenario is wrong.
            RunCancelled: `cancel` was called.
        """
        began = time.monotonic()
        if spec.random:
            run.schedule.write_text(text_of(spec.scenario), encoding="utf-8")
        history = History(run.history)
        history.listeners += [lambda op: _progress(op, on_step), *self.listeners]
        executed: list[Step] = []
        try:
            with Following(history, self._cancelled.is_set) as following:
                power_tier = self.play_into(history, spec, run.path, keep=run.logs, executed=executed)
                following.finish()
        finally:
            if spec.seconds is not None and executed:
                text = text_of(replace(spec.scenario, steps=tuple(executed)))
                run.executed.write_text(text, encoding="utf-8")
        return replace(run, power_tier=power_tier, seconds=time.monotonic() - began)

    def play_into(
        self,
        history: History,
        spec: RunSpec,
        folder: Path,
        *,
        keep: Path | None = None,
        executed: list[Step] | None = None,
    ) -> str:
        """
        Play a run into this history and close it; return the power tier.

        Args:
            keep: where to keep the nodes' logs, None for nowhere.
            executed: gets the steps of a random schedule that were tried, one by one.
        """
        environment = self.environment
        if spec.random:
            heal_s = spec.traits.heal_s if spec.seconds is None else 0.0
            spec = replace(spec, scenario=with_slack(spec.scenario, environment.timing.slack, heal_s))
        if not spec.has_producer_ids:
            spec = replace(spec, scenario=replace(spec.scenario, clients=spec.scenario.clients.unnumbered()))
        cluster = environment.open_cluster(spec, folder, history)
        self._open[str(history.path)] = cluster
        try:
            if self._cancelled.is_set():
                cluster.cancel()
            client = environment.make_client(cluster)
            stop = self._stop(spec, history)
            hits = any(hits_on_services(spec.scenario))
            linked = () if cluster.services is None else cluster.services.linked
            setup = setup_event(
                spec,
                traits=cluster.traits,
                power_tier=cluster.host.power_tier,
                sends_once=client.sends_once,
                untold=cluster.target.clients.untold(spec.scenario.clients),
                services=cluster.service_nodes if hits else linked,
            )
            cluster.record("runner", OpType.INFO, setup)
            self._play(spec, cluster, client, stop, [] if executed is None else executed)
            environment.record_evidence(cluster)
            if keep is not None:
                self._keep_logs(spec, cluster, keep)
        except BaseException as error:
            self._open.pop(str(history.path), None)
            _close_after(error, cluster)
            raise
        self._open.pop(str(history.path), None)
        cluster.close()
        return cluster.host.power_tier

    def _stop(self, spec: RunSpec, history: History) -> Stop | None:
        """Return what ends the run's schedule at a violation, listening already; None for a run that goes on."""
        if not spec.stop_at_violation:
            return None
        assert self.watch is not None, f"{spec.name}: to stop at a violation, and the player has no live check"
        stop = Stop(self.watch())
        history.listeners.append(stop.listen)
        return stop

    def _play(
        self, spec: RunSpec, cluster: Cluster, client: Client, stop: Stop | None, executed: list[Step]
    ) -> None:
        scenario = spec.scenario.under(spec.variant.names(spec.traits))
        if not spec.random:
            Play(
                scenario=scenario, draw=spec.draw, cluster=cluster, client=client, faults=self.faults, stop=stop
            ).run()
            return
        play = RandomPlay(
            scenario=scenario,
            draw=spec.draw,
            cluster=cluster,
            client=client,
            faults=self.faults,
            timing=replace(self.environment.timing.for_elections(spec.traits.election_s), alike=spec.alike),
            stop=stop,
            seconds=spec.seconds,
            executed=executed,
        )
        play.run()

    def _keep_logs(self, spec: RunSpec, cluster: Cluster, folder: Path) -> None:
        """Keep the nodes' printed lines and the final files of the replicas."""
        for name in cluster.ids:
            try:
                (folder / f"{name}.log").write_text(cluster.host.log_text(name), encoding="utf-8")
                if name in spec.scenario.stores:
                    self.environment.keep(cluster, name, folder / f"{name}-data")
            except (FencepostError, OSError) as error:  # shutil.Error is an OSError
                note = RunnerNote(node=name, text=f"its logs could not be kept: {error}")
                cluster.record("runner", OpType.INFO, note)


def _close_after(error: BaseException, cluster: Cluster) -> None:
    """Take down the cluster of a run that failed; add a second failure to the first, which is raised."""
    try:
        cluster.close()
    except Exception as second:
        error.add_note(f"not taken down: {reason_of(second)}")


def _progress(op: Op, on_step: Callable[[str], None]) -> None:
    if op.source is not Source.RUNNER:
        return
    match op.event:
        case events.Step(text=text) if op.type is OpType.INVOKE:
            on_step(text)
        case Healed():
            on_step("final reads")


def setup_event(
    spec: RunSpec,
    *,
    traits: Traits,
    power_tier: str,
    sends_once: bool,
    services: tuple[str, ...] = (),
    untold: tuple[str, ...] = (),
) -> Setup:
    """Return the history's first event: everything that was chosen and drawn."""
    settings, counts = spec.scenario.settings, spec.draw.counts
    return Setup(
        version=version(),
        scenario=spec.scenario.name,
        protocol=spec.variant.protocol,
        changes=tuple(spec.variant.changes),
        rules=spec.rules,
        traits=traits.as_text(),
        host=spec.host,
        target=spec.target,
        seed=spec.seed,
        random=spec.random,
        again=spec.command,
        schedule=text_of(spec.scenario),
        power_tier=power_tier,
        nodes=spec.draw.ids,
        replicas=tuple(spec.scenario.replicas),
        topic=spec.scenario.topic,
        partition=spec.scenario.partition,
        records={name: tuple(f"{name}.{number}" for number in range(count)) for name, count in counts.items()},
        min_isr=settings.min_isr,
        unclean=settings.unclean_election,
        replica_lag_ms=settings.replica_lag_ms_max,
        delete_retention_ms=settings.delete_retention_ms,
        retains=bool(settings.retention_ms or settings.retention_bytes) or None,
        message_format=settings.message_format.value,
        sends_once=sends_once and spec.scenario.clients.sends_once,
        idempotent=spec.scenario.clients.idempotent or None,
        untold=untold or None,
        must_play=spec.must_play or None,
        further={str(place): replicas for place, replicas in spec.scenario.further.items()} or None,
        churned=spec.scenario.clients.churned or None,
        removed=tuple(map(str, spec.scenario.removed)) or None,
        services=services or None,
    )
