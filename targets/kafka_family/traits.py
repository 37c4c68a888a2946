"""The traits that our broker and Apache Kafka to 3.9 have under all rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from harness.target.traits import Traits

# Of a replica's folder, and of the data directory.
_OF_REPLICA: Final = r"leader-epoch-checkpoint|partition\.metadata|\d{20}\.(log|index|timeindex)"
_OF_NODE: Final = (
    r"\.kafka_cleanshutdown|(replication-offset|recovery-point-offset|log-start-offset|cleaner-offset)-checkpoint"
)
_BOTH: Final = Traits(
    metadata="ZooKeeper",
    epochs_file="leader-epoch-checkpoint",
    marks_file="replication-offset-checkpoint",
    clean_file=".kafka_cleanshutdown",
    flushed_files=rf"[^/]+-\d+/({_OF_REPLICA})|{_OF_NODE}",
)
OURS: Final = replace(_BOTH, emits_events=True)
KAFKA: Final = replace(_BOTH, deletes_later=True, refuses_old_membership=True)
