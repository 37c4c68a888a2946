"""
A suite: the results of many runs, as plain data in results/SUITE/suite.json.

A report can be rebuilt from it and the runs' histories.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from harness import limits
from harness.input_file import read_text
from harness.model import UsageError
from harness.run.result import RunResult, check_texts_and_numbers
from harness.scenario.variant import RENAMED_RULES

# The key of the results in suite.json, the same in all versions.
_SIMULATOR: Final = "sim"
_RESULTS: Final = "cells"


@dataclass(frozen=True, kw_only=True)
class Suite:
    """
    Results in the order of the table: by scenario, then by protocol from the oldest to the newest.

    Attributes:
        unplayed: scenario -> protocol -> why it was not played there: what the target, or the host, lacks.
    """

    name: str
    started: str
    commit: str
    host: str
    target: str
    power_tier: str
    seed: int
    rules: Mapping[str, str]
    results: tuple[RunResult, ...]
    seconds: float
    version: str = ""  # of Fencepost; older suites have none
    unplayed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        """Whether its runs were played in the simulator, whose clock is virtual."""
        return self.host == _SIMULATOR

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The names of the scenarios, in order of first appearance; those that were not played are the last."""
        return tuple(dict.fromkeys((*(result.scenario for result in self.results), *self.unplayed)))

    @property
    def protocols(self) -> tuple[str, ...]:
        """The names of the protocols, in order of first appearance."""
        return tuple(dict.fromkeys(result.protocol for result in self.results))

    def result(self, scenario: str, protocol: str) -> RunResult | None:
        """Return the result of that scenario under that protocol, None if it was not played."""
        return self._by_name.get((scenario, protocol))

    def why_not(self, scenario: str, protocol: str) -> str:
        """Return why that scenario was not played under that protocol, "" if nothing kept it from it."""
        return self.unplayed.get(scenario, {}).get(protocol, "")

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], RunResult]:
        # Of two of one name the first counts, as in the table.
        return {(each.scenario, each.protocol): each for each in reversed(self.results)}

    def write(self, path: Path) -> None:
        """Write the suite as JSON; on a full disk, leave no part of it."""
        raw = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "results"}
        raw["rules"] = dict(self.rules)
        if not self.unplayed:
            del raw["unplayed"]
        raw[_RESULTS] = [result.to_dict() for result in self.results]
        partial = path.with_suffix(".partial")
        try:
            partial.write_text(json.dumps(raw, indent=1), encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    @staticmethod
    def read(path: Path) -> Suite:
        """
        Read what `write` wrote.

        Raises:
            UsageError: the file is missing, or is nothing that `write` wrote; the message names the file.
        """
        text = read_text(path, "a suite's table, such as results/latest/suite.json", limits.SUITE_BYTES_MAX)
        return Suite.parse(text, str(path))

    @staticmethod
    def parse(text: str, where: str) -> Suite:
        """Return the suite in a text that `write` wrote; raise UsageError with the place if it is none."""
        try:
            raw: dict[str, Any] = json.loads(text)
            rules = {RENAMED_RULES.get(name, name): value for name, value in raw.pop("rules").items()}
            suite = Suite(results=tuple(map(RunResult.from_dict, raw.pop(_RESULTS))), rules=rules, **raw)
            check_texts_and_numbers(suite)
        # RecursionError: lists within lists, too deep for the reader of JSON.
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError) as error:
            raise UsageError(
                f"{where}: {type(error).__name__}: {error}; expected a suite's table as Fencepost writes it; play "
                "the suite again"
            ) from error
        return suite
