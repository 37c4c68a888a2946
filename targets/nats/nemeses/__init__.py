"""The faults that NATS adds to the common ones."""

from __future__ import annotations

from typing import Final

from harness.cluster.fault import Fault
from targets.nats.nemeses import power_loss_after_snapshot, stepdown_storm

FAULTS: Final[dict[str, Fault]] = {
    "stepdown-storm": stepdown_storm.FAULT,
    "power-loss-after-snapshot": power_loss_after_snapshot.FAULT,
}
