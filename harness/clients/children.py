"""The processes of a workload's clients: children of the run, each in its ledger before it is forked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.cleanup.ledger import Ledger
from harness.hosts.node import NodeProcess, child_environment

ROOT: Final = Path(__file__).resolve().parents[2]
# In the run's folder, what each client's processes print: next to nothing, unless one fails.
FOLDER: Final = "clients"


@dataclass(frozen=True, slots=True, kw_only=True)
class Children:
    """
    Starts the processes of a run's clients.

    Attributes:
        ledger: the run's; once it is closed, each process is gone.
        folder: where each client's processes print.
    """

    ledger: Ledger
    folder: Path

    @staticmethod
    def of(ledger: Ledger, history: Path) -> Children:
        """Return those of the run that has this history."""
        return Children(ledger=ledger, folder=history.parent / FOLDER)

    def start(self, name: str, argv: Sequence[str], handles: Sequence[int]) -> NodeProcess:
        """
        Start a client's process, which has these handles of ours.

        Raises:
            UsageError: it does not run, or the run is being taken down.
        """
        self.folder.mkdir(exist_ok=True)
        child = NodeProcess(name=f"client {name}", ledger=self.ledger, log=self.folder / f"{name}.txt")
        child.start(argv, env=child_environment({}, ROOT), cwd=self.folder, pass_fds=handles)
        return child
