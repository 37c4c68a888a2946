"""Memory of messages that went is kept for those that come."""

from __future__ import annotations

import ctypes

# mallopt(3): how much free memory at the heap's end goes back to the kernel, the size from which on a block lies
# outside the heap, and the number of heaps; then their values. A message of the usual size lies in the heap; a
# larger one would leave a hole there, and each thread's own heap would keep its own holes.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_TRIM_BYTES, _MMAP_BYTES, _ARENAS = 64 * 1024 * 1024, 4 * 1024 * 1024, 1


def keep_freed_memory() -> bool:
    """
    Let the C library keep freed memory for the next message; return False if it has no such option.

    Otherwise the kernel maps and zeroes fresh pages for every message of a megabyte, which takes longer than all
    other work on that message.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    wanted = ((_M_TRIM_THRESHOLD, _TRIM_BYTES), (_M_MMAP_THRESHOLD, _MMAP_BYTES), (_M_ARENA_MAX, _ARENAS))
    return all(mallopt(name, value) == 1 for name, value in wanted)
