"""
Play seeds with the core as it is, and say of each which mutants it reaches: the child's part of survey.py.

Each seed is played in a process forked after the imports, so that nothing that a seed before it left behind, as a
value that was kept, hides what it runs.
"""

from __future__ import annotations

import builtins
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.mutants.apply import install_changes
from benchmarks.mutants.mutant import MutantError
from benchmarks.mutants.reach import PROBE, Block, Places, probed


class Probes:
    """Probes in the sources of the mutants' modules, and which mutants were reached."""

    def __init__(self, places: Places) -> None:
        self._names = [names for _, _, names in places]
        self._numbers: dict[str, dict[Block, int]] = defaultdict(dict)
        for number, (module, (line, column), _) in enumerate(places):
            self._numbers[module][line, column] = number
        self._entered: set[int] = set()

    def install(self) -> None:
        """Let this process load the probed modules, from the first import on."""
        setattr(builtins, PROBE, self._entered.add)
        changes = {
            name: lambda source, own=numbers: probed(source, own) for name, numbers in self._numbers.items()
        }
        install_changes(changes, "probes")

    @property
    def reached(self) -> list[str]:
        """The mutants reached so far, those of the imports among them."""
        return sorted({name for number in self._entered for name in self._names[number]})


def probe(
    places: Places,
    seeds: Sequence[int],
    searcher: Callable[[], Callable[[int], dict[str, Any]]],
    say: Callable[[dict[str, Any]], None],
) -> None:
    """
    Say of each seed which mutants it reaches, and what it shows without any.

    Args:
        places: the blocks to probe, as `places_of` returns them.
        searcher: imports the core, and returns what plays a seed.

    Raises:
        MutantError: a seed's process failed.
    """
    probes = Probes(places)
    probes.install()
    play = searcher()
    for seed in seeds:
        child = os.fork()
        if not child:
            try:
                found = play(seed)
                say({"surveyed": seed, "reached": probes.reached, "kinds": found["kinds"]})
            except BaseException:
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            raise MutantError(
                f"survey: seed {seed} ended with status {os.waitstatus_to_exitcode(status)}; expected 0; play it: "
                f"fencepost run --host sim --protocol kip380 --seed {seed}"
            )
