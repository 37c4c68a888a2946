"""The table of faults: one file and one line each; harness/cluster/fault.py defines what a fault needs."""

from __future__ import annotations

from typing import Final

from harness.cluster.fault import Fault
from nemesis import (
    clock_back,
    clock_fast,
    clock_forward,
    clock_freeze,
    clock_right,
    clock_slow,
    clock_strobe,
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
    suspend,
    wake,
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
    "clock-freeze": clock_freeze.FAULT,
    "clock-forward": clock_forward.FAULT,
    "clock-back": clock_back.FAULT,
    "clock-strobe": clock_strobe.FAULT,
    "clock-fast": clock_fast.FAULT,
    "clock-slow": clock_slow.FAULT,
    "clock-right": clock_right.FAULT,
    "suspend": suspend.FAULT,
    "wake": wake.FAULT,
}
