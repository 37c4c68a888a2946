"""What the gauntlet says of a mutant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """What became of a mutant."""

    FOUND = "found"
    SURVIVED = "survived"
    CRASHED = "crashed"
    TOO_LONG = "too long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    What the search says of a mutant.

    Attributes:
        seed: the first one played with a finding; where it crashed or took too long; None if it survived.
        kinds: the kinds of its anomalies.
        sentence: the first of them in words, or the last line of a crash.
        scenarios: those that do not end as expected, if they were played.
        played: how many seeds were begun.
        cpu_s: the processor time of its process; it alone differs from one gauntlet to the next.
    """

    name: str
    outcome: Outcome
    seed: int | str | None
    kinds: tuple[str, ...]
    sentence: str
    scenarios: tuple[str, ...] = ()
    played: int = 0
    cpu_s: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "name": self.name,
            "outcome": self.outcome.value,
            "seed": self.seed,
            "kinds": list(self.kinds),
            "sentence": self.sentence,
            "scenarios": list(self.scenarios),
            "played": self.played,
            "cpu_s": self.cpu_s,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Found:
        """Return what `to_dict` made data of; raise KeyError, TypeError or ValueError if they are not that."""
        return Found(
            name=data["name"],
            outcome=Outcome(data["outcome"]),
            seed=data["seed"],
            kinds=tuple(data["kinds"]),
            sentence=data["sentence"],
            scenarios=tuple(data["scenarios"]),
            played=data["played"],
            cpu_s=data["cpu_s"],
        )
