"""Every fault bites and ends on every host: on processes, in containers and over SSH."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.docs import evidence
from harness.docs.evidence import Cell
from harness.environment.real import RealEnvironment
from harness.hosts import HOSTS
from harness.model import UsageError
from harness.scenario.file import TOPIC
from harness.suite.environments import require_abilities
from targets.broker_target.target import TARGET
from tests.clusters import running
from tests.faults import NEMESES
from tests.hosts.sshds import made_on
from tests.kept import exhaustive
from tests.needs import needs
from tests.nemesis.conftest import IDS, REPLICAS, client_of
from tests.nemesis.every_fault import SHOWN
from tests.nemesis.live import show

pytestmark = pytest.mark.slow

# The one that `make test` plays.
KEPT: Final = ("local", "clocks")
# A process has a wall clock of its own, or both clocks; and a run of its own may stop its own ZooKeeper alone.
GROUPS: Final = {
    Ability.CLOCKS: "clocks",
    Ability.OWN_SERVICES: "zookeeper",
    Ability.SERVICE_ENSEMBLE: "zookeeper",
}
# More than is written singly at once, so that it is not flushed, and less than twice that, so that one is closed.
SEGMENT_BYTES: Final = 100_000


def group_of(fault: str) -> str:
    """Return which faults share a cluster with this one."""
    needs = NEMESES[fault].needs
    return GROUPS.get(needs, "others") if needs else "others"


@dataclass(slots=True, kw_only=True)
class Stage:
    """A host, opened, and the cluster on it that lives through the faults of a group."""

    host: str
    environment: RealEnvironment
    cluster: Cluster | None = None


@contextmanager
def staged(host: str, group: str, folder: Path) -> Iterator[Stage]:
    """Start a cluster for a host and a group of faults, with all that the host can do of what they need."""
    with ExitStack() as stack:
        make_host = made_on(stack, host, folder)
        environment = RealEnvironment(host, make_host=make_host, target=TARGET)
        environment.open(folder / "environment")
        stack.callback(environment.close)
        able = [fault for fault in NEMESES if group_of(fault) == group and not why_lacking(environment, fault)]
        made = Stage(host=host, environment=environment)
        if able and environment.shared is not None:
            made.cluster = stack.enter_context(
                running(
                    folder / "run",
                    environment.shared["zookeeper"][0],
                    "kip380",
                    IDS,
                    replicas=REPLICAS,
                    power_tier=None,
                    segment_bytes=SEGMENT_BYTES,
                    faults=able,
                    host=host,
                    make_host=make_host,
                    own_servers=3 if group == "zookeeper" else 0,
                    client_links=True,
                )
            )
            client_of(made.cluster).create_topic(TOPIC, [IDS[name] for name in REPLICAS])
        yield made


def why_lacking(environment: RealEnvironment, fault: str) -> str:
    """Return why the host refuses a fault, or one that it undoes; "" if it can do both."""
    needs = filter(None, (NEMESES[name].needs for name in named_by(fault)))
    return next(filter(None, map(environment.lacks, needs)), "")


def named_by(fault: str) -> list[str]:
    """Return a fault, and those that must have been injected before it."""
    words = (step.split()[0] for step in SHOWN[fault].before)
    return [fault, *(word for word in words if word in NEMESES)]


def parts() -> Iterator[Any]:
    """Yield every host with every group of faults; all but one are exhaustive."""
    for host in HOSTS:
        for group in dict.fromkeys(map(group_of, NEMESES)):
            marks = [] if (host, group) == KEPT else [exhaustive]
            marks += [pytest.mark.docker] if host == "docker" else []
            marks += [needs("sshd")] if host == "ssh" else []
            yield pytest.param(host, group, marks=marks, id=f"{host}-{group}")


@pytest.mark.parametrize(("host", "group"), list(parts()))
@needs("java")
def test_each_fault_bites_and_ends_or_is_refused_with_the_reason(
    host: str, group: str, tmp_path: Path, subtests: pytest.Subtests, pytestconfig: pytest.Config
) -> None:
    with staged(host, group, tmp_path) as stage:
        for fault in NEMESES:
            if group_of(fault) == group:
                with subtests.test(fault=fault):
                    cell = cell_of(stage, fault)
                    if pytestconfig.getoption("--write-evidence"):
                        evidence.keep(host, fault, cell, NEMESES)


def cell_of(stage: Stage, fault: str) -> Cell:
    """Play a fault on the host, or see it refused there; return what was said."""
    why = why_lacking(stage.environment, fault)
    if not why:
        assert stage.cluster is not None
        return show(stage.cluster, fault)
    with pytest.raises(UsageError) as caught:
        require_abilities(stage.environment, NEMESES, named_by(fault))
    assert str(caught.value).endswith(f": {why}")
    assert "; expected " in why
    return Cell(refused=why)
