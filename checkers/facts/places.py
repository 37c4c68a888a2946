"""Where final logs hold each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from checkers.facts.fact import fact
from checkers.facts.view import final_logs
from harness.model import Op


class Place(NamedTuple):
    """Where a final log holds a record, and the index of its batch's op."""

    node: str
    offset: int
    digest: str
    magic: int
    batch: int


@fact
def places_of(ops: Sequence[Op]) -> dict[str | None, list[Place]]:
    """Return where final logs hold each value that is no marker of a transaction, in the order of nodes."""
    found: dict[str | None, list[Place]] = {}
    for node, log in final_logs(ops).items():
        for index, batch in log.batches:
            magic = batch.magic
            for offset, digest, value in batch.records:
                if offset < log.start:
                    continue  # retention or DeleteRecords removed it
                if not batch.control or value is None or not value.endswith(" marker"):
                    found.setdefault(value, []).append(Place(node, offset, digest, magic, index))
    return found
