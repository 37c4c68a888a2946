"""The kinds of faults that a long run has: those that were chosen and that its host can inject."""

from __future__ import annotations

from collections.abc import Mapping

from harness.cluster.fault import Fault
from harness.model import UsageError
from harness.random_schedule.chaos import LINK_MOVES, kinds_of
from harness.random_schedule.profile import ALL
from harness.run.environment import Environment


def possible(
    names: tuple[str, ...], environment: Environment, faults: Mapping[str, Fault]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """
    Return the kinds of moves that chosen nemeses mean and the host can do, and why it cannot do the others.

    Raises:
        UsageError: a fault was chosen by name, and the host cannot inject it; or nothing is left.
    """
    kinds = kinds_of(names, faults)
    lacking = {name: reason for name in kinds if (reason := _why_not(faults.get(name), environment))}
    if lacking and ALL not in names:
        name, reason = next(iter(lacking.items()))
        raise UsageError(f"fault {name}: {reason}")
    left = tuple(name for name in kinds if name not in lacking)
    if not set(left) - set(LINK_MOVES):
        raise UsageError(
            f"host {environment.name}: it can inject none of {', '.join(kinds)}; expected one at least"
        )
    return left, lacking


def _why_not(fault: Fault | None, environment: Environment) -> str:
    return next(filter(None, map(environment.lacks, fault.needs)), "") if fault is not None else ""
