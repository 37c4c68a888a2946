"""Search mutants, each in a process of its own: what found it, at which seed, or that nothing did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Final, TypeVar

from benchmarks.mutants import MUTANTS
from benchmarks.mutants.children import Answer, Children
from benchmarks.mutants.found import Found, Outcome
from benchmarks.mutants.hints import in_order
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.reach import places_of
from benchmarks.mutants.survey import CHUNK_SEEDS, Survey, Surveyed, surveyed_in
from benchmarks.mutants.worker import SURVEY, UNCHANGED

A = TypeVar("A")
B = TypeVar("B")

# Processor time, so that what is found does not depend on what else the machine does. Far above what 400 seeds
# take; a mutant that loops for ever is ended.
SECONDS_PER_SEED_MAX: Final = 1.0
SECONDS_MIN: Final = 120.0
TOLD_CHARACTERS_MAX: Final = 200


class Gauntlet:
    """
    Searches mutants, several at a time.

    Attributes:
        seeds: the seeds of each.
        hints: by name of a mutant, the seed that is tried first.
        survey: which of the seeds can show which mutant; without one all are played.
        scenarios: whether the scenarios are played too.
        seconds_max: after so much processor time a mutant's process is ended.
        playing: the mutants that are searched now.
    """

    def __init__(
        self,
        seeds: range,
        *,
        hints: Mapping[str, int] | None = None,
        survey: Survey | None = None,
        scenarios: bool = False,
        seconds_max: float | None = None,
    ) -> None:
        self.seeds = seeds
        self.hints = hints or {}
        self.survey = survey
        self.scenarios = scenarios
        self.seconds_max = seconds_max or max(SECONDS_MIN, SECONDS_PER_SEED_MAX * len(seeds))
        self.playing: dict[str, None] = {}
        self._children = Children()

    def seeds_of(self, name: str) -> list[int]:
        """Return the seeds that can show a mutant, in the order in which they are tried."""
        seeds = self.survey.seeds_of(name, self.seeds) if self.survey else self.seeds
        return in_order(seeds, self.hints.get(name))

    def expected_seeds(self, name: str) -> int:
        """Return how many seeds a mutant takes if its hint is right, or if it survives."""
        seeds = self.seeds_of(name)
        return 1 if self.hints.get(name) in seeds else len(seeds)

    def look(self, *, jobs: int) -> Iterator[list[Surveyed]]:
        """
        Yield which mutants are reached by the seeds that the survey lacks; an exception ends the children.

        Raises:
            MutantError: the core as it is cannot be played.
            WorkerLostError: a child was ended from outside.
        """
        assert self.survey is not None, "no survey to look for"
        waiting = [seed for seed in self.seeds if seed not in self.survey.done]
        chunks = [waiting[at : at + CHUNK_SEEDS] for at in range(0, len(waiting), CHUNK_SEEDS)]
        places, unknown = places_of(MUTANTS.values())

        def survey(seeds: Sequence[int]) -> list[Surveyed]:
            question = {"name": SURVEY, "seeds": seeds, "places": places}
            return surveyed_in(seeds, unknown, self._children.ask("survey", question, self.seconds_max))

        yield from self._each(survey, chunks, jobs)

    def run(self, mutants: Sequence[Mutant], *, jobs: int) -> Iterator[Found]:
        """
        Yield what is found of each mutant, in the order in which they end; an exception ends the children.

        Those that a hint is known of begin, as they end at once.

        Raises:
            WorkerLostError: a child was ended from outside.
        """
        waiting = sorted(mutants, key=lambda mutant: self.expected_seeds(mutant.name) > 1)
        yield from self._each(self.search, [mutant.name for mutant in waiting], jobs)

    def search(self, name: str = UNCHANGED) -> Found:
        """
        Search one mutant, or the core as it is, in a process of its own.

        Raises:
            WorkerLostError: the process was ended from outside.
        """
        question = {"name": name, "seeds": self.seeds_of(name), "scenarios": self.scenarios}
        self.playing[name] = None
        try:
            answer = self._children.ask(f"mutant {name}", question, self.seconds_max)
        finally:
            self.playing.pop(name, None)
        return found_in(name, answer)

    def _each(self, work: Callable[[A], B], items: Sequence[A], jobs: int) -> Iterator[B]:
        with ThreadPoolExecutor(jobs) as pool:
            try:
                futures: list[Future[B]] = [pool.submit(work, item) for item in items]
                for done in as_completed(futures):
                    yield done.result()
            except BaseException:
                self._children.end()
                raise
            finally:
                pool.shutdown(cancel_futures=True)


def found_in(name: str, answer: Answer) -> Found:
    """Read what a child says of a mutant."""
    last = answer.lines[-1] if answer.lines else {}
    played = sum(isinstance(line.get("begins"), int) for line in answer.lines)
    if answer.late or answer.error:
        return Found(
            name=name,
            outcome=Outcome.TOO_LONG if answer.late else Outcome.CRASHED,
            seed=last.get("begins"),
            kinds=(),
            sentence=(answer.late or answer.error)[:TOLD_CHARACTERS_MAX],
            played=played,
        )
    return Found(
        name=name,
        outcome=Outcome.SURVIVED if last["seed"] is None else Outcome.FOUND,
        seed=last["seed"],
        kinds=tuple(last["kinds"]),
        sentence=last["sentence"][:TOLD_CHARACTERS_MAX],
        scenarios=tuple(last["scenarios"]),
        played=played,
        cpu_s=last["cpu_s"],
    )
