"""Kafka's wire protocol, as much of it as this broker speaks: bytes to the core's messages and back."""

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
