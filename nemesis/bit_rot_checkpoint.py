"""
Flip a byte of a checkpoint: that of a replica's epochs or, where there is none, that of the high watermarks.

Checkpoints have no checksum. This flip makes a letter of a digit, so that the file cannot be read; a digit that
becomes another digit is seen by nobody. A broker reads the file at its next start alone, and may replace it
before.
Source:  Kafka, CheckpointFile; KAFKA-16541.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.bit_rot import Where
from harness.cluster.cluster import Cluster
from harness.cluster.damage import flip, watch
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Flip the byte; the probe is a reader of the files that cannot read the checkpoint."""
    return flip(cluster, name, Where.CHECKPOINT)


FAULT = Fault(
    name="bit-rot-checkpoint",
    doc="make a letter of a digit in the epoch checkpoint, or else in that of high watermarks; the node goes on",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.BIT_ROT,
    band=Band.MARK,
    weight=0.0,
    needs=(Ability.BIT_ROT,),
)
