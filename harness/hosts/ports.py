"""Choose ports that no other harness uses: a claim is a lock on one byte of a shared file."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import struct
import threading
from itertools import chain
from typing import Final

from harness import limits
from harness.cleanup.state import state_dir
from harness.model import UsageError

# struct flock of 64-bit Linux: type, whence, start, length, pid (0, as open-file-description locks require).
FLOCK: Final = "@hhqqi4x"


class PortClaims:
    """The ports of one host object; other host objects and processes of this user never get the same ports."""

    def __init__(self, ports: range | None = None, address: str = "127.0.0.1") -> None:
        """
        Open the shared file; claims end with `close` or this process.

        Args:
            ports: What may be claimed; None: the default range of limits.py.
            address: The address on which nodes will listen.
        """
        self._listens_on = address
        self._ports = ports if ports is not None else range(limits.PORT_FIRST, limits.PORT_LAST + 1)
        path = state_dir("ports") / "claims"
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._claimed: set[int] = set()
        self._mutex = threading.Lock()

    def claim(self) -> int:
        """
        Claim and return a port of the range that is unclaimed and on which no process listens.

        Raises:
            UsageError: There is none.
        """
        ports = self._ports
        # Two harnesses that begin at the same port would collide at every port.
        first = random.SystemRandom().randrange(len(ports))  # noqa: TID251
        for port in chain(ports[first:], ports[:first]):
            if self._take(port):
                return port
        raise UsageError(
            f"ports {ports[0]} to {ports[-1]} on {self._listens_on}: all taken; expected a free one; "
            "end what listens there (`ss -ltnp`) or another Fencepost of yours, or name others (--ports)"
        )

    def close(self) -> None:
        """Release all claims; safe to call twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _take(self, port: int) -> bool:
        """Lock the port's byte; keep the lock only if a node can listen on the port."""
        with self._mutex:
            # The kernel grants a lock again that we already hold.
            if port in self._claimed or not self._set_lock(port, fcntl.F_WRLCK):
                return False
            if not _can_listen(self._listens_on, port):
                self._set_lock(port, fcntl.F_UNLCK)
                return False
            self._claimed.add(port)
            return True

    def _set_lock(self, port: int, kind: int) -> bool:
        try:
            fcntl.fcntl(self._handle, fcntl.F_OFD_SETLK, struct.pack(FLOCK, kind, 0, port, 1, 0))
        except (BlockingIOError, PermissionError):
            return False
        return True


def _can_listen(address: str, port: int) -> bool:
    """Return True if a node could listen on the port now; connections in TIME_WAIT do not prevent it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen()
        except OSError:
            return False
    return True
