"""
Executes the produce steps of a scenario: awaited, refused, or under way while the scenario continues.

harness/scenario/steps.py defines the step.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError, UsageError
from harness.scenario.offsets import RecordOffsets
from harness.scenario.steps import MEANWHILE, REFUSED, Produce
from harness.target.clients import Client, Underway


class Produces:
    """The produce steps of one run."""

    def __init__(self, cluster: Cluster, client: Client, record_offsets: RecordOffsets) -> None:
        self._cluster = cluster
        self._client = client
        self._record_offsets = record_offsets
        self._underway: dict[str, Underway] = {}

    def act(self, step: Produce) -> None:
        """Execute a produce step."""
        name, options = step.group, self._options(step)
        refused = step.outcome == REFUSED
        topic, partition = step.place or (self._cluster.topic, self._cluster.partition)
        values = self._record_offsets.values(name)
        if step.outcome == MEANWHILE:
            leader = self._cluster.leader()
            if step.place is None:
                self._record_offsets.expected(name, max(0, self._cluster.log_end(leader)) if leader else 0)
            self._underway[name] = self._client.begin_produce(topic, partition, name, values, **options)
            return
        try:
            offsets = self._client.produce(topic, partition, name, values, **options)
        except PreconditionError:
            if refused:
                return
            raise
        if refused:
            raise PreconditionError(f"{step}: acknowledged at {offsets}; expected no acknowledgement")
        if step.place is None:
            self._record_offsets.acknowledged(name, offsets)

    def _options(self, step: Produce) -> dict[str, Any]:
        """Return the client's options; an option that the step does not set keeps the client's default."""
        found: dict[str, Any] = {"acks": step.acks}
        if step.singly:
            found["singly"] = True
        if step.codec is not None:
            found["codec"] = step.codec
        if step.via is not None:
            found["via"] = self._cluster.address_of(step.via)
        if step.within_ms is not None:
            found["timeout_s"] = float(step.within_ms) / 1000
        if step.age_ms is not None:
            found["age_ms"] = int(step.age_ms)
        return found

    def acked(self, name: str) -> bool:
        """
        Return True if every record of a group produced `meanwhile` was acknowledged.

        Raises:
            PreconditionError: the produce has ended, and a record was not acknowledged.
            UsageError: the group was not produced `meanwhile`.
        """
        if name not in self._underway:
            raise UsageError(f"acked {name}: not produced meanwhile; expected one of {sorted(self._underway)}")
        if not self._underway[name].done:
            return False
        self._record_offsets.acknowledged(name, self._underway[name].result())
        return True

    def end(self) -> None:
        """Wait until every produce under way has its outcome, and the history has it."""
        with suppress(PreconditionError):  # the history also has what was not acknowledged
            self._cluster.await_(self._ended, lambda: f"the outcome of {', '.join(self._underway)}")
        self._underway.clear()

    def _ended(self) -> bool:
        return all(underway.done for underway in self._underway.values())
