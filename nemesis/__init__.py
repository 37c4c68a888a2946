"""The table of faults: one file and one line each; harness/cluster/fault.py defines what a fault needs."""

from __future__ import annotations

from typing import Final

from harness.cluster.fault import Fault
from nemesis import (
    delete_active_segment,
    depose_controller,
    disk_full,
    elect,
    expire,
    flush,
    flush_error,
    jam,
    kill,
    lose_disk,
    lossy_link,
    partition_brokers,
    partition_halves,
    partition_isolate,
    partition_one_way,
    partition_ring,
    pause,
    power_loss,
    reconnect,
    restart,
    resume,
    return_,
    slow_link,
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
    "partition-halves": partition_halves.FAULT,
    "partition-isolate": partition_isolate.FAULT,
    "partition-ring": partition_ring.FAULT,
    "partition-one-way": partition_one_way.FAULT,
    "partition-brokers": partition_brokers.FAULT,
    "jam": jam.FAULT,
    "slow-link": slow_link.FAULT,
    "lossy-link": lossy_link.FAULT,
    "reconnect": reconnect.FAULT,
}
