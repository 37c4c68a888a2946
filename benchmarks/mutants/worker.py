"""
Search one mutant, or the core as it is: `python -m benchmarks.mutants.worker SECONDS`.

What it searches is one line of JSON on its standard input, which then stays open for as long as somebody wants to
know. It prints one JSON object a line: the seed that begins, and at last what was found. The core is imported only
after the mutant is installed, hence the imports within functions.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.mutants import MUTANTS
from benchmarks.mutants.apply import install
from benchmarks.mutants.probing import probe

PROTOCOL: Final = "kip380"
# In place of a name: the core as it is.
UNCHANGED: Final = "-"
# Likewise, and which mutants each seed reaches is asked.
SURVEY: Final = "--survey"


def searcher() -> Callable[[int], dict[str, Any]]:
    """Import the core, and return what plays a seed as `fencepost run --host sim` does, as JSON data."""
    from harness.model import Verdict
    from harness.search.random_runs import RandomRuns
    from harness.search.simulated import sim_player, simulate_seed
    from targets import VIRTUAL_HOST as SIM

    runs = RandomRuns(target="broker", variant=PROTOCOL, host=SIM)
    player = sim_player(runs.load_target())

    def play(seed: int) -> dict[str, Any]:
        result = simulate_seed(player, runs, seed)
        if not result.is_finding:
            return {"seed": None, "kinds": [], "sentence": ""}
        kinds = {a.kind.value: None for a in result.anomalies if a.verdict >= Verdict.UNKNOWN}
        return {"seed": seed, "kinds": list(kinds), "sentence": next(iter(result.sentences), "")}

    return play


def search(seeds: Sequence[int]) -> dict[str, Any]:
    """Play the seeds up to the first finding; return it as JSON data."""
    play = searcher()
    for seed in seeds:
        _say({"begins": seed})
        found = play(seed)
        if found["seed"] is not None:
            return found
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
                traits=TARGET.traits(PROTOCOL, ()),
                scenario=scenario,
                draw=draw(scenario, 0),
            )
            if simulate(player, spec).status is not Status.AS_EXPECTED:
                red.append(scenario.name)
    return red


def _say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def limit(seconds: int) -> None:
    """Let the kernel end this process, by SIGXCPU, after so much processor time; it leaves no core dump."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with_the_asker() -> None:
    """End this process when its standard input closes, as its asker was killed, even while a mutant loops."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


def main(arguments: Sequence[str]) -> int:
    """Install the mutant, search, and print what was found."""
    limit(int(arguments[0]))
    asked = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    if asked["name"] == SURVEY:
        probe(asked["places"], asked["seeds"], searcher, _say)
        return 0
    if asked["name"] != UNCHANGED:
        install(MUTANTS[asked["name"]])
    found = search(asked["seeds"])
    red = scenarios() if asked["scenarios"] else []
    _say({**found, "scenarios": red, "cpu_s": round(time.process_time(), 2)})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
