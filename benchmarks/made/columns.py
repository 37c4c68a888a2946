"""The columns of one stretch of a made partition, as arrays; every value is a function of its number alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array: TypeAlias = Any

NODES: Final = ("A", "B", "C")


@dataclass(slots=True, kw_only=True)
class Sent:
    """
    What a client sent, in the order in which it was sent; sends of one batch are invoked, then answered together.

    Attributes:
        number: what the value ends with; each is sent once.
        offset: where it was acknowledged, -1 for none.
        outcome: 0 for ok, 1 for info.
    """

    number: Array
    digest: Array
    offset: Array
    outcome: Array
    invoked: Array
    done: Array


@dataclass(slots=True, kw_only=True)
class Held:
    """
    What one replica's log holds.

    Attributes:
        epochs: the epoch of each batch.
        crcs: the CRC of each batch.
        bases: the first offset of each batch.
        lasts: the last offset of each batch.
        counts: how many records each batch has.
    """

    offset: Array
    number: Array
    digest: Array
    bases: Array
    lasts: Array
    counts: Array
    epochs: Array
    crcs: Array


def mixed(numbers: Array, salt: int = 0) -> Array:
    """Return 64 bits for each number, which look like chance (splitmix64)."""
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64) + np.uint64((0x9E3779B97F4A7C15 * (salt + 1)) % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (x ^ (x >> np.uint64(31))).view(np.int64)


def texts(prefix: str, numbers: Array) -> pa.Array:
    """Return the values with these numbers: `w0-17`."""
    return pc.binary_join_element_wise(f"{prefix}-", pc.cast(pa.array(numbers), pa.string()), "")


def words(choices: tuple[str, ...], picked: Array) -> pa.Array:
    """Return a word for each number."""
    return pa.array(choices, pa.string()).take(pa.array(picked))


def highest_before(values: Array, start: int) -> Array:
    """Return the highest of the values before each, and of `start`."""
    return np.maximum.accumulate(np.concatenate(([start], values)))[:-1]
