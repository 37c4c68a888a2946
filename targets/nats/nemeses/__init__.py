"""The faults that NATS adds to the common ones."""

from __future__ import annotations

from typing import Final

from harness.cluster.fault import Fault
from targets.nats.nemeses import (
    bit_rot_state,
    peer_remove,
    power_loss_after_snapshot,
    scale_down,
    stepdown_storm,
)

FAULTS: Final[dict[str, Fault]] = {
    "peer-remove": peer_remove.FAULT,
    "scale-down": scale_down.FAULT,
    "stepdown-storm": stepdown_storm.FAULT,
    "power-loss-after-snapshot": power_loss_after_snapshot.FAULT,
    "bit-rot-term": bit_rot_state.TERM,
    "bit-rot-members": bit_rot_state.MEMBERS,
    "bit-rot-snapshot": bit_rot_state.SNAPSHOT,
    "bit-rot-index": bit_rot_state.INDEX,
    "bit-rot-meta": bit_rot_state.META,
}
