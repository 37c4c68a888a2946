"""
Search one mutant blindly, and by growing: `python -m benchmarks.guidance.worker NAME FIRST TRIES`.

It prints one JSON object: of either way, at which try there was a finding, None if there was none.
The core is imported only after the mutant is installed, hence the imports within functions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from benchmarks.mutants import MUTANTS
from benchmarks.mutants.apply import install
from benchmarks.mutants.worker import PROTOCOL, UNCHANGED

if TYPE_CHECKING:
    from random import Random

    from harness.run.spec import RunSpec
    from harness.search.random_runs import RandomRuns

# Of the tries of a guided search, the share that is drawn blindly: else nothing new would ever come in.
BLIND: Final = 0.5


def blind(first: int, tries: int) -> int | None:
    """Return the try with the first finding, of seeds one after another."""
    from harness.search.random_runs import RandomRuns
    from harness.search.simulated import sim_player, simulate
    from targets import VIRTUAL_HOST as SIM

    runs = RandomRuns(target="broker", variant=PROTOCOL, host=SIM)
    player = sim_player(runs.load_target())
    found = (at for at in range(tries) if simulate(player, runs.spec(first + at)).is_finding)
    return next(found, None)


def guided(first: int, tries: int, *, by_coverage: bool) -> int | None:
    """
    Return the try with the first finding, where half of the tries grow schedules.

    Those are the ones that brought new pairs, or without coverage any that were played.
    """
    from benchmarks.guidance.pairs import PairsEnvironment
    from harness.run.player import Player
    from harness.search.random_runs import RandomRuns
    from harness.search.simulated import simulate
    from harness.suite.scenario_files import faults_on
    from harness.target.settings import MessageFormat
    from targets import VIRTUAL_HOST as SIM

    runs = RandomRuns(target="broker", variant=PROTOCOL, host=SIM)
    environment = PairsEnvironment(runs.load_target())
    player = Player(environment=environment, faults=faults_on("broker"))
    known: set[object] = set()
    corpus: list[RunSpec] = []
    for at, spec in enumerate(_specs(runs, corpus, first)):
        if at == tries:
            return None
        if simulate(player, spec).is_finding:
            return at
        assert environment.pairs is not None, "a world was made"
        fresh = environment.pairs.found - known
        known |= fresh
        # In the older message format records are lost as soon as two things are disturbed, which no rule forbids.
        stamped = spec.scenario.settings.message_format is MessageFormat.WITH_EPOCHS
        if stamped and (fresh or not by_coverage):
            corpus.append(spec)
    return None


def _specs(runs: RandomRuns, corpus: list[RunSpec], first: int) -> Iterator[RunSpec]:
    """Yield runs without end: half of them of new seeds, half grown from the corpus, the newest most often."""
    from dataclasses import replace
    from itertools import count
    from random import Random

    from benchmarks.guidance.grow import grown
    from harness.scenario.file import draw

    random = Random(first)
    for seed in count(first):
        if corpus and random.random() >= BLIND:
            parent = _newest(corpus, random)
            # Steps of a cluster of another shape name nodes and partitions that the parent's has not.
            alike = [each for each in corpus if _shape(each) == _shape(parent)]
            child = grown(parent.scenario, _newest(alike, random).scenario, random)
            yield replace(parent, scenario=child, draw=draw(child, random.randrange(1 << 30)))
        else:
            yield runs.spec(seed)


def _newest(corpus: Sequence[RunSpec], random: Random) -> RunSpec:
    """Return one of the runs: the newest most often."""
    return corpus[int(len(corpus) * random.random() ** 0.5)]


def _shape(spec: RunSpec) -> Hashable:
    """Return the nodes and the partitions of a run's cluster."""
    return tuple(spec.scenario.nodes), tuple(spec.scenario.places)


def main(arguments: Sequence[str]) -> int:
    """Install the mutant, search it each way, and print at which try each had a finding."""
    name, first, tries = arguments
    if name != UNCHANGED:
        install(MUTANTS[name])
    start, most = int(first), int(tries)
    print(
        json.dumps(
            {
                "blind": blind(start, most),
                "coverage": guided(start, most, by_coverage=True),
                "any": guided(start, most, by_coverage=False),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
