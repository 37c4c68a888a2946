"""The part of Kafka's wire protocol that this broker uses: bytes to the core's messages and back."""

from __future__ import annotations

from targets.broker.wire.codec import (
    Incoming,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from targets.broker.wire.frames import FrameSplitter, correlation_of
from targets.broker.wire.scalars import WireError
from targets.broker.wire.versions import client_rows, peer_rows

__all__ = [
    "FrameSplitter",
    "Incoming",
    "WireError",
    "client_rows",
    "correlation_of",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "peer_rows",
]
