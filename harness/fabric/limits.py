"""Limits of the fabric, unit last; harness/limits.py has those of the whole harness."""

from __future__ import annotations

from typing import Final

# No frame of a system that anybody runs is larger (Kafka's socket.request.max.bytes is 100 MiB).
FRAME_BYTES_MAX: Final = 128 * 1024 * 1024

# Frames up to this size are collected whole before they are forwarded; larger ones are streamed.
WHOLE_BYTES_MAX: Final = 256 * 1024
# The first bytes of a streamed frame are collected: room for the longest header (of Kafka's, with a client id of
# 32 KiB). In so many bytes a wire must find where a frame ends.
HEAD_BYTES: Final = 64 * 1024

# Bytes that may wait behind a held frame, for one connection and direction; beyond it the source is not read.
HELD_BYTES_MAX: Final = 8 * 1024 * 1024
# Answers to doubled requests that one connection waits for; beyond it no request is doubled.
DOUBLED_ANSWERS_MAX: Final = 10_000

# How long a call of a target's wire may last, in seconds: reading the largest frame takes some milliseconds.
WIRE_CALL_S_MAX: Final = 5.0
# So many connections may end within their first frame before the first frame of all.
UNSPLIT_CONNECTIONS_MAX: Final = 4
# What one frame may say: of a fetch session with all partitions of a large cluster, no more.
OFFSETS_OF_FRAME_MAX: Final = 100_000
EVENTS_OF_FRAME_MAX: Final = 100_000
# Kinds of frames that could not be read, in the history once each.
UNREADABLE_KINDS_MAX: Final = 1000

# Kinds of frames that passed a hold, kept for its error message when it stopped none.
PASSED_KINDS_MAX: Final = 24

CONNECT_S_MAX: Final = 10.0
CLOSE_S_MAX: Final = 10.0
CALL_S_MAX: Final = 20.0
LISTEN_BACKLOG: Final = 128
READ_BYTES: Final = 256 * 1024
