"""
The table of faults: one file and one line each; harness/cluster/fault.py defines what a fault needs.

A target adds faults of its own (`Target.faults`). Random schedules draw by a fault's position, so each has a fixed
one: a known seed must draw what it always drew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from harness.cluster.fault import Fault
from harness.model import UsageError
from harness.target.target import Target
from nemesis import (
    bit_rot_active,
    bit_rot_checkpoint,
    bit_rot_closed,
    client_crash,
    clock_back,
    clock_fast,
    clock_forward,
    clock_freeze,
    clock_right,
    clock_slow,
    clock_strobe,
    cut_from_metadata,
    delete_active_segment,
    depose_controller,
    disk_full,
    disk_read_only,
    disk_slow,
    drop_packets,
    elect,
    expire,
    flush,
    flush_error,
    jam,
    kill,
    lose_disk,
    lossy_link,
    lossy_packets,
    mend_disk,
    move_away,
    move_back,
    partition_brokers,
    partition_clients,
    partition_halves,
    partition_isolate,
    partition_one_way,
    partition_ring,
    pass_packets,
    pause,
    power_loss,
    power_loss_torn,
    read_error,
    reconnect,
    restart,
    resume,
    return_,
    slow_link,
    stop,
    suspend,
    throttle,
    wake,
    write_error,
    zombie,
)

_FIRST: Final[dict[str, Fault]] = {
    "kill": kill.FAULT,
    "restart": restart.FAULT,
    "pause": pause.FAULT,
    "resume": resume.FAULT,
    "expire": expire.FAULT,
    "zombie": zombie.FAULT,
    "return": return_.FAULT,
    "elect": elect.FAULT,
    "move-away": move_away.FAULT,
    "move-back": move_back.FAULT,
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
    "partition-halves": partition_halves.FAULT,
    "partition-isolate": partition_isolate.FAULT,
    "partition-ring": partition_ring.FAULT,
    "partition-one-way": partition_one_way.FAULT,
    "partition-brokers": partition_brokers.FAULT,
    "partition-clients": partition_clients.FAULT,
    "jam": jam.FAULT,
    "slow-link": slow_link.FAULT,
    "lossy-link": lossy_link.FAULT,
    "reconnect": reconnect.FAULT,
    "drop-packets": drop_packets.FAULT,
    "throttle": throttle.FAULT,
    "lossy-packets": lossy_packets.FAULT,
    "pass-packets": pass_packets.FAULT,
}
_OF_METADATA: Final[dict[str, Fault]] = {"cut-from-metadata": cut_from_metadata.FAULT}
_LAST: Final[dict[str, Fault]] = {
    "client-crash": client_crash.FAULT,
    "bit-rot-closed": bit_rot_closed.FAULT,
    "bit-rot-active": bit_rot_active.FAULT,
    "bit-rot-checkpoint": bit_rot_checkpoint.FAULT,
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

NEMESES: Final[dict[str, Fault]] = {**_FIRST, **_OF_METADATA, **_LAST}


def faults_of(*targets: Target) -> dict[str, Fault]:
    """
    Return the common faults with those of one target, or of several, in the order in which schedules are drawn.

    Raises:
        UsageError: what a target has as a fault is none, or has the name of a common one.
    """
    own = dict(_own_faults(targets))
    undoing = {name: fault for name, fault in own.items() if fault.heals}
    inflicting = {name: fault for name, fault in own.items() if not fault.heals}
    return {**_FIRST, **inflicting, **_OF_METADATA, **undoing, **_LAST}


def _own_faults(targets: Iterable[Target]) -> Iterable[tuple[str, Fault]]:
    for target in targets:
        for name, fault in target.faults.items():
            if not isinstance(fault, Fault):
                raise UsageError(f"target {target.name}: fault {name!r} is {fault!r}; expected a Fault")
            if name in NEMESES:
                raise UsageError(
                    f"target {target.name}: fault {name!r}: a common one has that name; expected another"
                )
            yield name, fault
