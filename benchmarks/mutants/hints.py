"""The seeds that showed the mutants before, in shown.txt: each is tried first, as it may show its mutant again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.mutants.mutant import MutantError

SHOWN: Final = Path(__file__).with_name("shown.txt")


def read_hints(path: Path = SHOWN) -> dict[str, int]:
    """
    Return the seed of each mutant that one is known of; lines are `MUTANT SEED`.

    Raises:
        MutantError: a line is none.
    """
    hints: dict[str, int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        name, _, seed = line.partition(" ")
        if not seed.isdecimal() or name in hints:
            raise MutantError(f"{path}:{number}: {line!r}; expected the name of another mutant and a seed")
        hints[name] = int(seed)
    return hints


def written(hints: Mapping[str, int], names: Iterable[str]) -> str:
    """Return the text of the file, in the order of the names."""
    return "".join(f"{name} {hints[name]}\n" for name in names if name in hints)


def in_order(seeds: Sequence[int], hint: int | None) -> list[int]:
    """Return the seeds, the hint first if it is one of them."""
    if hint is None or hint not in seeds:
        return list(seeds)
    return [hint, *(seed for seed in seeds if seed != hint)]
