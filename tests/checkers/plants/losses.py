"""Lost and committed records: what excuses a loss, and what does not."""

from __future__ import annotations

from harness.model import Kind
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant


@plant("loss-both-disks-lawful", "local-kip101-2", Kind.PERMITTED)
def both_disks(edit: Edit) -> None:
    """Change nothing: both members of the ISR lose the record with their power."""
