"""The records that a random run sends after healing, to show that the cluster works again."""

from __future__ import annotations

from typing import Final

# One acknowledged record is enough; the others are sent if the leader changes once more.
FINAL_RECORDS: Final = ("last1", "last2", "last3", "last4")
