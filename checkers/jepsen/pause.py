"""Work without Python's cyclic garbage collector, where nothing that is made has cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """
    Pause the collector of cyclic garbage.

    It looks through all objects again and again while their number grows. A history has millions, none of them
    garbage, and would be read three times as slowly.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
