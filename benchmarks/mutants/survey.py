"""
Which seeds can show which mutants: those in which the core as it is runs what a mutant changes.

In every other seed the mutant's run is that of the core as it is, step by step, so that it need not be played. A
seed in which the core as it is has a finding shows no mutant: the finding may be its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from benchmarks.mutants.children import Answer
from benchmarks.mutants.mutant import MutantError

# So many seeds are played by one process.
CHUNK_SEEDS: Final = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """
    What a seed is with the core as it is.

    Attributes:
        reached: the names of the mutants whose changed code runs.
        kinds: the kinds of its anomalies; there should be none.
    """

    seed: int
    reached: frozenset[str]
    kinds: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"surveyed": self.seed, "reached": sorted(self.reached), "kinds": list(self.kinds)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Surveyed:
        """Return what `to_dict` made data of; raise KeyError or TypeError if they are not that."""
        return Surveyed(seed=data["surveyed"], reached=frozenset(data["reached"]), kinds=tuple(data["kinds"]))


@dataclass(slots=True)
class Survey:
    """What is known of each seed."""

    done: dict[int, Surveyed] = field(default_factory=dict)

    def seeds_of(self, name: str, seeds: Iterable[int]) -> list[int]:
        """Return those of the seeds that can show a mutant; a seed that was not surveyed can show all."""
        return [seed for seed in seeds if self._can_show(seed, name)]

    def own_findings(self, seeds: Iterable[int]) -> list[int]:
        """Return the seeds in which the core as it is has a finding."""
        return [seed for seed in seeds if seed in self.done and self.done[seed].kinds]

    def _can_show(self, seed: int, name: str) -> bool:
        known = self.done.get(seed)
        return known is None or (not known.kinds and name in known.reached)


def surveyed_in(seeds: Sequence[int], unknown: frozenset[str], answer: Answer) -> list[Surveyed]:
    """
    Read what a child says of seeds; mutants of which nothing can be said count as reached.

    Raises:
        MutantError: it does not say it of each.
    """
    found = [Surveyed.from_dict(line) for line in answer.lines]
    found = [replace(each, reached=each.reached | unknown) for each in found]
    if [each.seed for each in found] != list(seeds):
        raise MutantError(
            f"survey: {len(found)} of the seeds {seeds[0]} to {seeds[-1]} were played with the core as it is: "
            f"{answer.late or answer.error}; expected all; --every-seed does without a survey"
        )
    return found
