"""
HighwayHash-64 of many records at once: the checksum of a store's records.

The hash takes packets of 32 bytes, one after another, into a state of four times four numbers of 64 bits. Python
is too slow for that record by record, so the records of a batch go through it side by side, the longest first:
at each step those that have a packet left are the first ones. The cost is that of the longest record's steps, so
a batch is best as large as memory allows.

A store's key is the SHA-256 of its name and the block's number: `orders-0-1` for block 1 of the stream `orders-0`,
`S-R3F-KMUcprGm-1` for one of a Raft group's log. The account is no part of it.

Source:  minio/highwayhash 1.0.4, highwayhash_generic.go; nats-server 2.15.3, filestore.go, hashKeyForBlock; the
         same in 2.12.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.uint64]
_Bytes: TypeAlias = NDArray[np.uint8]

KEY_BYTES: Final = 32
_PACKET: Final = 32
# How a packet's four numbers are at the beginning, before the key: digits of pi.
_INIT0: Final = np.array(
    [0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3], dtype=np.uint64
)
_INIT1: Final = np.array(
    [0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377], dtype=np.uint64
)
_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
# Which byte of a pair of numbers stands where after the "zipper merge", for both pairs of a state.
_ZIP: Final = np.array([3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7], dtype=np.intp)
_ZIPPED: Final = np.concatenate([_ZIP, _ZIP + 16])
# The two pairs of numbers change places, and the halves of each number too.
_PERMUTED: Final = np.array([5, 4, 7, 6, 1, 0, 3, 2], dtype=np.intp)
_FINAL_ROUNDS: Final = 4


def block_key(name: str, block: int) -> bytes:
    """Return the key of a store's block."""
    return hashlib.sha256(f"{name}-{block}".encode("utf-8", "surrogateescape")).digest()


def highway(key: bytes, message: bytes) -> int:
    """Return the hash of one message."""
    return int(highways(key, [message])[0])


def highways(key: bytes, messages: Sequence[bytes]) -> Numbers:
    """Return the hashes of messages, in their order."""
    assert len(key) == KEY_BYTES, f"a key of {len(key)} bytes; expected {KEY_BYTES}"
    lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
    packets = lengths // _PACKET
    order = np.argsort(-packets, kind="stable")
    longest_first = [messages[each] for each in order.tolist()]
    state = _State(key, len(messages))
    # How many messages have a packet at each step; those are the first ones in the order.
    counts = np.searchsorted(-packets[order], -np.arange(int(packets.max(initial=0))), side="left")
    for step, count in enumerate(counts.tolist()):
        at = step * _PACKET
        taken = b"".join([each[at : at + _PACKET] for each in longest_first[:count]])
        state.take(np.frombuffer(taken, dtype=np.uint64).reshape(-1, 4))
    _take_rest(state, longest_first, lengths[order] % _PACKET)
    hashes = np.empty(len(messages), dtype=np.uint64)
    hashes[order] = state.finish()
    return hashes


class _State:
    """The states of many hashes; numbers have one row for each."""

    def __init__(self, key: bytes, count: int) -> None:
        numbers = np.frombuffer(key, dtype="<u8").astype(np.uint64)
        turned = (numbers >> _HALF) | (numbers << _HALF)
        self.v0, self.v1, self.mul0, self.mul1 = (
            np.tile(each, (count, 1)) for each in (_INIT0 ^ numbers, _INIT1 ^ turned, _INIT0, _INIT1)
        )

    def take(self, packets: Numbers) -> None:
        """Take one packet into each of the first states."""
        count = len(packets)
        v0, v1, mul0, mul1 = self.v0[:count], self.v1[:count], self.mul0[:count], self.mul1[:count]
        v1 += packets
        v1 += mul0
        mul0 ^= (v1 & _LOW) * (v0 >> _HALF)
        v0 += mul1
        mul1 ^= (v0 & _LOW) * (v1 >> _HALF)
        v0 += _zipped(v1)
        v1 += _zipped(v0)

    def finish(self) -> Numbers:
        """Return the hashes; the states are used up."""
        for _ in range(_FINAL_ROUNDS):
            self.take(np.take(self.v0.view(np.uint32), _PERMUTED, axis=1).view(np.uint64))
        found: Numbers = self.v0[:, 0] + self.v1[:, 0] + self.mul0[:, 0] + self.mul1[:, 0]
        return found


def _zipped(numbers: Numbers) -> Numbers:
    found: Numbers = np.take(numbers.view(np.uint8), _ZIPPED, axis=1).view(np.uint64)
    return found


def _take_rest(state: _State, messages: Sequence[bytes], rests: NDArray[np.int64]) -> None:
    """Take what is left of each message, which is less than a packet, into its state."""
    chosen = np.flatnonzero(rests)
    if not len(chosen):
        return
    rest = rests[chosen]
    tails = b"".join([messages[each][-int(rests[each]) :].ljust(_PACKET, b"\0") for each in chosen.tolist()])
    part = _State.__new__(_State)
    part.v0, part.v1, part.mul0, part.mul1 = (
        each[chosen] for each in (state.v0, state.v1, state.mul0, state.mul1)
    )
    by = rest.astype(np.uint64)[:, None]
    part.v0 += (by << _HALF) + by
    low, high = part.v1 & _LOW, part.v1 >> _HALF
    low, high = (((half << by) | (half >> (_HALF - by))) & _LOW for half in (low, high))
    part.v1 = (high << _HALF) | low
    part.take(_last_packets(np.frombuffer(tails, dtype=np.uint8).reshape(-1, _PACKET), rest))
    state.v0[chosen], state.v1[chosen] = part.v0, part.v1
    state.mul0[chosen], state.mul1[chosen] = part.mul0, part.mul1


def _last_packets(tails: _Bytes, rest: NDArray[np.int64]) -> Numbers:
    """Return the packets that stand for rests of 1 to 31 bytes: whole words first, then the last bytes."""
    rows = np.arange(len(tails))
    over = rest & 3
    whole = rest - over
    packets = np.where(np.arange(_PACKET) < whole[:, None], tails, np.uint8(0))
    for each in range(4):
        many = rest >= 16
        packets[many, 28 + each] = tails[rows[many], rest[many] - 4 + each]
    few = (rest < 16) & (over > 0)
    for at, place in ((16, whole), (17, whole + (over >> 1)), (18, rest - 1)):
        packets[few, at] = tails[rows[few], place[few]]
    found: Numbers = np.ascontiguousarray(packets).view(np.uint64)
    return found
