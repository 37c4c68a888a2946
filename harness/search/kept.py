"""`KeptFindings`: the first findings of a search in the simulator, each in files as soon as it is found."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from checkers.judge import failure_in
from harness.model import FencepostError
from harness.run.failure import reason_of
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.store import Run, SuiteDir, create_suite
from harness.search.findings import keep_simulated
from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player


@dataclass(slots=True, kw_only=True)
class KeptFindings:
    """
    What a search has found, on the disk: whatever ends the search later loses none of it.

    Attributes:
        seed: the first seed of the search, for the folder's name.
        most: how many are kept; the others can be played again from their seeds.
        folder: where they are, None before the first.
        runs_of: seed -> the run that is kept.
        problems: why some are not kept, or not whole, each once.
    """

    runs: RandomRuns
    results: Path
    seed: int
    most: int
    folder: SuiteDir | None = None
    runs_of: dict[int, Run] = field(default_factory=dict)
    problems: dict[str, None] = field(default_factory=dict)
    _tried: int = 0
    _player: Player | None = None

    def keep(self, result: RunResult) -> None:
        """Play a finding again, into files, unless enough are kept; what fails is in `problems`."""
        if self._tried == self.most:
            return
        self._tried += 1
        try:
            run = self._keep(result.seed)
        except (FencepostError, OSError, MemoryError) as error:
            self.problems[f"not kept: {reason_of(error)}"] = None
            return
        self.runs_of[result.seed] = run
        if run.failure and not failure_in(result.anomalies):
            self.problems[f"not kept whole: {run.failure}"] = None

    def _keep(self, seed: int) -> Run:
        self.folder = self.folder or create_suite(
            self.results, f"{datetime.now(UTC):%Y%m%dT%H%M%S}-search-{self.seed}"
        )
        self._player = self._player or sim_player(self.runs.load_target())
        return keep_simulated(self._player, self.runs.spec(seed), self.folder)
