"""The table of faults: one file and one line each; harness/cluster/fault.py defines what a fault needs."""

from __future__ import annotations

from typing import Final

from harness.cluster.fault import Fault
from nemesis import (
    bit_rot_active,
    bit_rot_checkpoint,
    bit_rot_closed,
    delete_active_segment,
    depose_controller,
    disk_full,
    elect,
    expire,
    flush,
    flush_error,
    kill,
    lose_disk,
    pause,
    power_loss,
    restart,
    resume,
    return_,
    stop,
    zombie,
)

NEMESES: Final[dict[str, Fault]] = {
    "kill": kill.FAULT,
    "restart": restart.FAULT,
    "pause": pause.FAULT,
    "resume": resume.FAULT,
    "expire": expire.FAULT,
    "zombie": zombie.FAULT,
    "return": return_.FAULT,
    "elect": elect.FAULT,
    "depose-controller": depose_controller.FAULT,
    "flush": flush.FAULT,
    "power-loss": power_loss.FAULT,
    "delete-active-segment": delete_active_segment.FAULT,
    "stop": stop.FAULT,
    "disk-full": disk_full.FAULT,
    "flush-error": flush_error.FAULT,
    "lose-disk": lose_disk.FAULT,
    "bit-rot-closed": bit_rot_closed.FAULT,
    "bit-rot-active": bit_rot_active.FAULT,
    "bit-rot-checkpoint": bit_rot_checkpoint.FAULT,
}
