"""
Search one mutant, or the core as it is: `python -m benchmarks.mutants.worker NAME FIRST COUNT SCENARIOS`.

It prints one JSON object a line: the seed that begins, and at last what was found. The core is imported only after
the mutant is installed, hence the imports within functions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.mutants import MUTANTS
from benchmarks.mutants.apply import install

PROTOCOL: Final = "kip380"
# In place of a name: the core as it is.
UNCHANGED: Final = "-"


def search(seeds: range) -> dict[str, Any]:
    """Play the seeds as `fencepost run --host sim` does, up to the first finding; return it as JSON data."""
    from harness.model import Verdict
    from harness.search.random_runs import RandomRuns
    from harness.search.simulated import sim_player, simulate_seed
    from targets import VIRTUAL_HOST as SIM

    runs = RandomRuns(target="broker", variant=PROTOCOL, host=SIM)
    player = sim_player(runs.load_target())
    for seed in seeds:
        _say({"begins": seed})
        result = simulate_seed(player, runs, seed)
        if result.is_finding:
            kinds = {a.kind.value: None for a in result.anomalies if a.verdict >= Verdict.UNKNOWN}
            return {"seed": seed, "kinds": list(kinds), "sentence": next(iter(result.sentences), "")}
    return {"seed": None, "kinds": [], "sentence": ""}


def scenarios() -> list[str]:
    """Play every scenario that has an expectation, and return the names of those that do not end as expected."""
    from harness.run.result import Status
    from harness.run.spec import RunSpec
    from harness.scenario.file import draw
    from harness.scenario.variant import Variant
    from harness.search.simulated import sim_player, simulate
    from harness.suite.scenario_files import read_scenario
    from targets import VIRTUAL_HOST as SIM
    from targets.broker_target.target import TARGET
    from workloads import SCENARIOS

    player, red = sim_player(TARGET), []
    for path in sorted(SCENARIOS.glob("*.txt")):
        scenario = read_scenario(path)
        if PROTOCOL in scenario.expectations:
            _say({"begins": scenario.name})
            spec = RunSpec(
                target=TARGET.name,
                host=SIM,
                variant=Variant(protocol=PROTOCOL),
                rules=TARGET.rules(PROTOCOL, ()),
                scenario=scenario,
                draw=draw(scenario, 0),
            )
            if simulate(player, spec).status is not Status.AS_EXPECTED:
                red.append(scenario.name)
    return red


def _say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def main(arguments: Sequence[str]) -> int:
    """Install the mutant, search, and print what was found."""
    name, first, count, with_scenarios = arguments
    if name != UNCHANGED:
        install(MUTANTS[name])
    found = search(range(int(first), int(first) + int(count)))
    _say({**found, "scenarios": scenarios() if with_scenarios == "yes" else []})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
