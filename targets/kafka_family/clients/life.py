"""
The process of one client: `python -m MODULE HANDLE`, with a socket to the run as that handle.

It does what the client would do in a thread of the run; harness/clients/lives.py starts, kills and restarts it.
"""

from __future__ import annotations

import socket
import sys

from harness.clients.wire import Wire
from targets.kafka_family.clients.beginning import work_of


def main(handle: int) -> None:
    """Be the client that the run names, until it lets the client end."""
    # The end of the process closes it, and not before: the thread that listens would believe that the run is gone.
    wire = Wire(socket.socket(fileno=handle))
    role = wire.role()
    work = work_of(
        role.plan,
        role.seed,
        own=role.library,
        process=role.process,
        history=wire,
        nodes=role.nodes,
        life=role.life,
    )
    work(wire.leave)


if __name__ == "__main__":
    main(int(sys.argv[1]))
