"""Open and close environments: what is missing at the start ends the command, what stays at the end does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness.cluster.fault import Fault
from harness.model import UsageError
from harness.run.environment import Environment
from harness.run.failure import reason_of
from harness.run.spec import RunSpec
from harness.suite.interrupts import INTERRUPTS, apart
from harness.target.found import target as target_of


def open_environment(environment: Environment, folder: Path) -> None:
    """
    Open the environment apart from this thread, with its files in the folder.

    Raises:
        UsageError: the machine lacks something, such as space on the disk.
    """
    try:
        apart(lambda: environment.open(folder), "environment")
    except OSError as error:
        raise UsageError(
            f"{folder}: {reason_of(error)}; expected a machine on which {environment.name} can be opened"
        ) from error


def require_abilities(environment: Environment, faults: Mapping[str, Fault], names: Iterable[str]) -> None:
    """
    Check that an open environment can inject each of these faults; other names, as of moves, need nothing.

    Raises:
        UsageError: its machines cannot do what one of them needs; the text says why.
    """
    for name in names:
        for need in faults[name].needs if name in faults else ():
            if reason := environment.lacks(need):
                raise UsageError(f"fault {name}: {reason}")


def require_clients(specs: Iterable[RunSpec]) -> None:
    """Raise UsageError if the library of a run's own client is not installed; asked before anything is opened."""
    for spec in specs:
        target = target_of(spec.target)
        target.clients.require(target.clients.own(spec.rules))


@contextmanager
def closing(close: Callable[[], None], note: Callable[[str], None]) -> Iterator[None]:
    """
    Close an environment or a host after the block.

    What cannot be taken down stays in its ledger, and the next run undoes it: it is noted, and ends no command.
    """
    try:
        yield
    finally:
        with INTERRUPTS.shielded():
            try:
                close()
            except Exception as error:
                note(f"not taken down: {reason_of(error)}")
