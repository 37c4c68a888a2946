"""
The simulator and real processes reach the same end: the same anomalies and the same records in every log.

These tests play at most two variants of each scenario; `fencepost agree` compares all runs of two stored suites.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.cli.agree import End, differences, findings, lineages
from harness.environment.real import RealEnvironment
from harness.hosts import HOSTS
from harness.launch import Address
from harness.run.environment import Environment
from harness.run.store import create_suite
from harness.scenario.variant import Variant
from harness.target.found import target as target_of
from harness.target.target import Target
from targets.simulator.broker.environment import make_environment
from tests.kept import keep
from tests.services import shared
from tests.suite.cells import names, spec_of, variants
from tests.suite.conftest import judged, ops_of, play_in

pytestmark = pytest.mark.slow

TARGET: Target = target_of("broker")
SEED = 17
# Runs in parallel: only the start of a broker needs a processor, the waits need none.
JOBS = 3


def _chosen() -> list[tuple[str, Variant]]:
    """Choose each scenario's last variant of ours, and its first with an expected anomaly, if there is one."""
    found: list[tuple[str, Variant]] = []
    for name in names():
        all_of_it = variants(name, TARGET)
        broken = [v for v in all_of_it if spec_of(name, v, TARGET, SEED).expectation != "none"]
        found += [(name, variant) for variant in dict.fromkeys([*broken[:1], *all_of_it[-1:]])]
    return found


CHOSEN = {f"{name}-{variant}": (name, variant) for name, variant in _chosen()}
# A lost record, a broker that restarts before its death is noticed, and a zombie leader.
KEPT = ("kip101-1-hw", "kafka-1120-hw", "v3-zombie-leader-kip380")
GRID = keep([pytest.param(*chosen, id=name) for name, chosen in CHOSEN.items()], *KEPT)


@pytest.fixture(scope="module")
def really(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, zookeeper: Address
) -> Iterator[dict[str, Future[End]]]:
    """Play every chosen run that this session's tests need on real processes, several in parallel."""
    items = [item for item in request.session.items if item.path == request.path]
    asked = {item.callspec.id for item in items if isinstance(item, pytest.Function)}
    folder = tmp_path_factory.mktemp("really")
    environment = RealEnvironment("local", make_host=HOSTS["local"], target=TARGET, shared=shared(zookeeper))
    with ThreadPoolExecutor(JOBS) as pool:
        yield {name: pool.submit(_end, environment, folder, *CHOSEN[name]) for name in CHOSEN if name in asked}


def _end(environment: Environment, folder: Path, name: str, variant: Variant) -> End:
    spec = spec_of(name, variant, TARGET, SEED, host=environment.name)
    played = play_in(environment, spec, create_suite(folder, f"{spec.name}-on-{environment.name}"))
    return End(findings=findings(judged(played).anomalies), logs=lineages(ops_of(played)))


@pytest.mark.parametrize(("scenario", "variant"), GRID)
def test_real_processes_end_as_the_simulator_does(
    tmp_path: Path, really: dict[str, Future[End]], scenario: str, variant: Variant
) -> None:
    sim = make_environment("sim", target=TARGET, power_tier=None, ports=None)
    simulated = _end(sim, tmp_path, scenario, variant)
    real = really[f"{scenario}-{variant}"].result()
    assert not differences(simulated, real)
