"""Every queue, retry and wait of the harness has its limit here, unit last."""

from __future__ import annotations

from typing import Final

# How long the runner waits for a condition of a scenario before it calls the cell unknown. Generous: a
# condition is normally met in milliseconds, and a busy machine must not make a cell red.
CONDITION_WAIT_S_MAX: Final = 40.0
CONDITION_POLL_S: Final = 0.005

PROCESS_START_S_MAX: Final = 30.0
PROCESS_END_S_MAX: Final = 10.0
ZOOKEEPER_START_S_MAX: Final = 30.0
ZOOKEEPER_SOCKET_S_MAX: Final = 10.0
CLIENT_OPERATION_S_MAX: Final = 20.0

# Loop filesystems: size of one broker's disk. Sparse, so that only what is written costs space.
DISK_BYTES: Final = 48 * 1024 * 1024
# What a suite wants free before it starts.
FREE_BYTES_MIN: Final = 1024 * 1024 * 1024

# Ports for local nodes: below the kernel's ephemeral range, so that no outgoing connection takes them.
PORT_FIRST: Final = 18000
PORT_LAST: Final = 31999
