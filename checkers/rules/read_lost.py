"""A record that a consumer was shown stays where it was, until a fault that permits its loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers.definition import Definition
from checkers.rules.lost import anomalies_of
from checkers.rules.read_loss import read_losses
from harness.model import Anomaly, Kind, Op

KINDS: Final = (
    Definition(
        kind=Kind.READ_LOST,
        formula="ok(poll P), (o, r) in P, log(final leader)[o] != r, not proof(r), and neither lost(r) nor "
        "committed-lost(r) nor read-uncommitted(r) nor wrong-read(r)",
        words="A record that a consumer was shown is gone, and the proof of a permitted loss does not hold. It "
        "was below a high watermark, so that it was promised, whatever its acks. If the proof holds, the "
        "kind is that of the permitted loss.",
        evidence="client: poll, produce; log; metadata: state; broker: append, truncate, recovered, "
        "leader, follower, high-watermark; nemesis; fabric: fetch, hold, held, release, delay, learned",
        unchecked="Where brokers emit no events, a record is promised to the ISR if the node that showed it was "
        "the leader in the metadata from before the poll until after its answer, or if nothing may have taken a "
        "record until then; if neither, and a fault may have taken records later, the loss is unchecked. The same "
        "if no broker reported the copy that was shown, or the client did not tell which node showed it, and no "
        "leader committed another record there. Where a quorum commits, a majority had what anybody was shown.",
        source="KIP-101, Motivation: consumers see what is later truncated; Jepsen: kafka, lost-write",
    ),
)


def read_lost(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find records that polls showed and that the last leader's final log does not hold at their offset.

    Args:
        ops: the ops of one partition and the global ones, in index order.

    Returns:
        One anomaly for all records of one name that were lost in the same way, of the kind that judges the loss;
        none for those that another rule reports.

    Source:  KIP-101, Motivation; Jepsen's checks of Kafka.
    """
    return anomalies_of(ops, [each.loss for each in read_losses(ops).values() if not each.told])
