"""A `RunSpec` for tests that open a cluster themselves and play no scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.run.spec import RunSpec
from harness.scenario.file import Draw, Scenario
from harness.scenario.variant import Variant
from harness.target.settings import Settings
from harness.target.target import Target


def cluster_spec(
    target: Target,
    protocol: str,
    ids: Mapping[str, int],
    replicas: Sequence[str],
    *,
    changes: Sequence[str] = (),
    settings: Settings | None = None,
    seed: int = 1,
    host: str = "local",
    nemeses: Sequence[str] = (),
) -> RunSpec:
    """Return the spec of a cluster with these nodes (the controller first) and this protocol."""
    scenario = Scenario(
        name="cluster",
        title="a cluster",
        sources=(),
        replicas=tuple(replicas),
        nodes=tuple(ids),
        records=(),
        steps=(),
        expectations={},
        settings=settings or Settings(),
    )
    return RunSpec(
        target=target.name,
        host=host,
        variant=Variant(protocol=protocol),
        rules=target.rules(protocol, changes),
        traits=target.traits(protocol, changes),
        scenario=scenario,
        draw=Draw(seed=seed, ids=ids, counts={}),
        nemeses=tuple(nemeses),
    )
