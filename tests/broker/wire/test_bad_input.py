"""Any input that is not a valid request raises WireError or is answered with an error."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.broker.core.rules import PROTOCOLS
from targets.broker.log import split_produced, split_stored
from targets.broker.wire import WireError, decode_request, decode_response, encode_response, peer_rows
from tests.broker.log.batches import drawn
from tests.broker.wire.kio_side import ALL_VERSIONS, PEER_VERSIONS, a_frame, body_of, incoming
from tests.broker.wire.samples import PEER


class TestBadInput:
    @pytest.mark.parametrize(("key", "version"), ALL_VERSIONS)
    def test_request_cut_at_any_byte_or_with_a_tail_is_a_wire_error(self, key: int, version: int) -> None:
        frame = a_frame(key, version)
        whole = decode_request(frame, split_batches=split_produced)
        assert (whole.request is None) == (whole.answer is not None)
        for cut in range(len(frame)):
            with pytest.raises(WireError):
                decode_request(frame[:cut], split_batches=split_produced)
        with pytest.raises(WireError, match="1 bytes after its end"):
            decode_request(frame + b"\x00", split_batches=split_produced)

    @pytest.mark.parametrize(("key", "version"), PEER_VERSIONS)
    def test_response_cut_at_any_byte_or_with_a_tail_is_a_wire_error(self, key: int, version: int) -> None:
        request, response = PEER[key]
        frame = body_of(encode_response(incoming(key, version), response))
        for bad in (*(frame[:cut] for cut in range(len(frame))), frame + b"\x00"):
            with pytest.raises(WireError):
                decode_response(bad, request, version=version, correlation_id=77, split_batches=split_stored)

    @pytest.mark.parametrize(
        ("key", "version", "words"),
        [
            (0, 2, "produce v2; expected v3 to v8"),
            (1, 13, "fetch v13; expected v4 to v12"),
            (23, 5, "offset_for_leader_epoch v5; expected v0 to v4"),
            (24, 0, "api key 24; expected one of 0, 1, 2"),
            (-1, 0, "api key -1"),
        ],
    )
    def test_what_is_not_served_is_a_wire_error(self, key: int, version: int, words: str) -> None:
        with pytest.raises(WireError, match=words):
            decode_request(struct.pack(">hhih", key, version, 1, -1), split_batches=split_produced)

    def test_what_the_protocol_does_not_know_is_a_wire_error(self) -> None:
        """Source: Kafka: a broker closes a connection on which it receives an unknown API version."""
        for protocol, words in (
            ("hw", "api key 23; expected one of 0, 1, 2"),
            ("kip101", "v1; expected v0 to v0"),
        ):
            rows = peer_rows(protocol, PROTOCOLS[protocol])
            with pytest.raises(WireError, match=words):
                decode_request(struct.pack(">hhih", 23, 1, 1, -1), split_batches=split_produced, rows=rows)

    @drawn
    @given(st.data())
    def test_damaged_request_gives_a_message_or_a_wire_error(self, data: st.DataObject) -> None:
        key, version = data.draw(st.sampled_from(ALL_VERSIONS))
        frame = damaged(data.draw, a_frame(key, version), first=8)
        try:
            found = decode_request(frame, split_batches=split_produced)
        except WireError:
            return
        assert key == found.api_key

    @drawn
    @given(st.data())
    def test_damaged_response_gives_a_message_or_a_wire_error(self, data: st.DataObject) -> None:
        key, version = data.draw(st.sampled_from(PEER_VERSIONS))
        request, response = PEER[key]
        frame = damaged(data.draw, body_of(encode_response(incoming(key, version), response)), first=4)
        try:
            found = decode_response(frame, request, version=version, correlation_id=77, split_batches=split_stored)
        except WireError:
            return
        assert type(response) is type(found)

    @drawn
    @given(st.sampled_from(ALL_VERSIONS), st.binary(max_size=80))
    def test_any_bytes_after_a_header_give_a_message_or_a_wire_error(
        self, served: tuple[int, int], tail: bytes
    ) -> None:
        frame = struct.pack(">hhih", *served, 1, -1) + tail
        try:
            found = decode_request(frame, split_batches=split_produced)
        except WireError:
            return
        assert served == (found.api_key, found.api_version)

    @drawn
    @given(st.binary(max_size=60).filter(lambda frame: frame[:2] != b"\x00\x12"))
    def test_any_bytes_give_a_wire_error(self, frame: bytes) -> None:
        """Drawn bytes are never a valid request, except for ApiVersions (18), which is answered in any version."""
        with pytest.raises(WireError, match="expected"):
            decode_request(frame, split_batches=split_produced)

    def test_tagged_field_that_nobody_knows_is_a_wire_error(self) -> None:
        """kio cannot skip unknown tagged fields, and no client that this broker serves sends any."""
        frame = struct.pack(">hhih", 18, 3, 1, -1) + b"\x01\x00\x00"
        with pytest.raises(WireError, match="Unknown tagged field"):
            decode_request(frame, split_batches=split_produced)

    def test_null_where_the_schema_has_an_array_is_a_wire_error(self) -> None:
        frame = struct.pack(">hhihhhii", 0, 3, 1, -1, -1, 1, 0, -1)
        with pytest.raises(WireError, match="topic_data: null; expected an array"):
            decode_request(frame, split_batches=split_produced)


def damaged(draw: Callable[[Any], Any], frame: bytes, *, first: int) -> bytes:
    """Change a few bytes at or after `first`; values that make odd lengths and nulls are drawn more often."""
    changed = bytearray(frame)
    for _ in range(draw(st.integers(min_value=1, max_value=4))):
        at = draw(st.integers(min_value=first, max_value=len(frame) - 1))
        changed[at] = draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFF)) | st.integers(0, 255))
    return bytes(changed)
