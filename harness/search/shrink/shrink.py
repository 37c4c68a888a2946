"""Shrink a schedule that shows a violation, and say what is left of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.model import FencepostError
from harness.run.result import RunResult
from harness.scenario.file import Scenario
from harness.search.random_runs import is_written
from harness.search.shrink.candidates import acts_of, with_acts
from harness.search.shrink.minimal import Ended, Minimiser
from harness.search.shrink.printed import scenario_text
from harness.search.shrink.reducers import REDUCERS
from harness.search.shrink.signature import Signature
from harness.search.shrink.steady import steadied, steadiness
from harness.search.shrink.subject import Subject, play_there, pool_of
from harness.search.shrink.trials import SpentError, Trials


class NotShownError(FencepostError):
    """The schedule shows no violation in the simulator; the message says what it shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """
    How much a shrinking may take.

    Attributes:
        jobs: processes that play candidates; the result does not depend on it.
        tries: runs that are played.
        seconds: None for no limit.
        steady: whether steps may be added to the smallest schedule, so that it holds on slower machines.
    """

    jobs: int
    tries: int
    seconds: float | None = None
    steady: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """
    A schedule that was shrunk.

    Attributes:
        text: the file of the smallest schedule that shows the violation.
        scenario: that schedule.
        signature: what it had to show.
        result: the result of its run.
        again: the command that plays the file.
        steps_before, tries, seconds: figures.
        ended: why nothing smaller was found.
        steady: of a written form, in how many of RUNS slowed runs it ends the same; None if that is not known.
    """

    text: str
    scenario: Scenario
    signature: Signature
    result: RunResult
    again: str
    steps_before: int
    tries: int
    seconds: float
    ended: Ended
    steady: int | None


def shrink(
    scenario: Scenario,
    subject: Subject,
    bounds: Bounds,
    output: Path,
    on_try: Callable[[int, Scenario], None] = lambda _tries, _best: None,
) -> Shrunk:
    """
    Return the smallest schedule that shows what this one shows; the same arguments always return the same one.

    Args:
        output: the file that it is meant for; `subject` has its stem as name.
        on_try: called after each try, with the number of tries and the smallest schedule so far.

    Raises:
        NotShownError: the schedule shows no violation and no hang.
    """
    titled = replace(
        scenario, title=f"The schedule of seed {subject.seed}, shrunk", sources=(_source_of(subject),)
    )
    start = with_acts(titled, acts_of(titled))
    first, _ = subject.run(start)
    signature = Signature.of(first)
    if signature is None or not signature.shown_by(first.anomalies, written=is_written(start)):
        raise NotShownError(
            f"seed {subject.seed} of {subject.variant} shows no violation in the simulator: "
            f"{first.verdict.name.lower()}, found {first.found}{_why(first)}; expected a violation or a hang"
        )
    subject = subject.referring(start)
    trials = Trials(
        play=partial(subject.outcome, signature),
        play_there=play_there,
        make_pool=partial(pool_of, subject, signature),
        jobs=bounds.jobs,
        tries_max=bounds.tries,
        seconds=bounds.seconds,
        on_try=lambda: on_try(trials.tries, minimiser.best),
    )
    # A written scenario ends as soon as all logs end alike, a random run when all replicas are in the ISR: only a
    # reference shows that what a written one shows at its end is not merely early.
    try_written = subject.reference is not None and not signature.needs_oracles
    minimiser = Minimiser(best=start, trials=trials, reducers=REDUCERS, try_written=try_written)
    try:
        ended = minimiser.run()
        best, steady = minimiser.best, None
        if ended is Ended.MINIMAL and is_written(best):
            try:
                steady = steadiness(best, trials)
                if bounds.steady:
                    best, steady = steadied(best, steady, trials)
            except SpentError:
                ended = Ended.SPENT
            except KeyboardInterrupt:
                ended = Ended.INTERRUPTED
    finally:
        trials.close()
    spec = subject.spec(best)
    return Shrunk(
        text=scenario_text(best, subject, replace(spec, schedule=output.name).command, steady),
        scenario=best,
        signature=signature,
        result=subject.run(best)[0],
        again=replace(spec, schedule=str(output)).command,
        steps_before=len(scenario.steps),
        tries=trials.tries,
        seconds=trials.seconds_taken,
        ended=ended,
        steady=steady,
    )


def _why(result: RunResult) -> str:
    return f" ({result.vacuous or result.reason})" if result.vacuous or result.reason else ""


def _source_of(subject: Subject) -> str:
    return f"search, seed {subject.seed} of {subject.variant}"
