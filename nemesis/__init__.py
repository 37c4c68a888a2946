"""The table of faults: one file and one line each; harness/cluster/fault.py defines what a fault needs."""

from __future__ import annotations

from typing import Final

from harness.cluster.fault import Fault
from nemesis import (
    delete_active_segment,
    depose_controller,
    disk_full,
    disk_read_only,
    disk_slow,
    elect,
    expire,
    flush,
    flush_error,
    kill,
    lose_disk,
    mend_disk,
    pause,
    power_loss,
    power_loss_torn,
    read_error,
    restart,
    resume,
    return_,
    stop,
    write_error,
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
    "write-error": write_error.FAULT,
    "read-error": read_error.FAULT,
    "disk-read-only": disk_read_only.FAULT,
    "disk-slow": disk_slow.FAULT,
    "mend-disk": mend_disk.FAULT,
    "power-loss-torn": power_loss_torn.FAULT,
}
