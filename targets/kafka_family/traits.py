"""The traits that our broker and Apache Kafka to 3.9 have under all rules."""

from __future__ import annotations

from typing import Final

from harness.target.traits import Traits

OURS: Final = Traits(metadata="ZooKeeper", emits_events=True)
KAFKA: Final = Traits(metadata="ZooKeeper", deletes_later=True, refuses_old_membership=True)
