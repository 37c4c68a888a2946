"""Every limit of the fabric, unit last; harness/limits.py has those of the harness as a whole."""

from __future__ import annotations

from typing import Final

# A length beyond this is no frame of Kafka's or ZooKeeper's (Kafka's socket.request.max.bytes is 100 MiB):
# TLS, a four-letter word, or noise. Such a connection passes without being read.
FRAME_BYTES_MAX: Final = 128 * 1024 * 1024

# Frames up to this size are gathered whole before they go on; larger ones stream through as they come.
WHOLE_BYTES_MAX: Final = 256 * 1024
# Of a frame that streams, so much is gathered first: room for the longest header (a client id of 32 KiB).
HEAD_BYTES: Final = 64 * 1024

# Bytes that wait behind a held frame, for one connection and direction, before its source is no longer read.
HELD_BYTES_MAX: Final = 8 * 1024 * 1024
# Requests that wait for an answer on one connection; the oldest is forgotten beyond this.
PENDING_REQUESTS_MAX: Final = 10_000
# Answers to doubled requests that one connection waits for; no further request is doubled beyond this.
DOUBLED_ANSWERS_MAX: Final = 10_000

# What a hold remembers of the frames that passed it by, to say so when nothing was held.
PASSED_KINDS_MAX: Final = 24

CONNECT_S_MAX: Final = 10.0
CLOSE_S_MAX: Final = 10.0
CALL_S_MAX: Final = 20.0
LISTEN_BACKLOG: Final = 128
READ_BYTES: Final = 256 * 1024
