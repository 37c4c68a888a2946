"""What watches the links reads the versions that carry a topic's id, and skips the id."""

from __future__ import annotations

from targets.broker.wire import encode_request, encode_response, versions
from targets.kafka_family.wire.bodies import epoch_answers, epoch_questions, fetch_body
from tests.broker.wire.kio_side import body_of, incoming
from tests.broker.wire.samples import A0, B7, PEER

# A frame's length, and the fixed part of a header with a client id of one character.
HEADER_BYTES = 4 + 11


def test_fetch_with_a_topics_id() -> None:
    request, _ = PEER[versions.FETCH]
    frame = bytes(encode_request(request, version=12, correlation_id=9, client_id="x"))
    found, size = fetch_body(frame, HEADER_BYTES, 12)
    places = (((A0.topic, A0.partition), 9), (("a", 1), 9), ((B7.topic, B7.partition), 9))
    assert (3, True, places, ()) == (found.replica_id, found.full, found.offsets, found.forgotten)
    assert HEADER_BYTES + size == len(frame) - len(b"\x01\x00")  # the rack id and the last tagged fields


def test_epoch_question_with_a_topics_id_and_its_answer() -> None:
    request, response = PEER[versions.OFFSET_FOR_LEADER_EPOCH]
    frame = bytes(encode_request(request, version=4, correlation_id=9, client_id="x"))
    asked, _ = epoch_questions(frame, HEADER_BYTES, 4)
    assert [(A0.topic, 0, 4), (B7.topic, 1, 0)] == [
        (each.topic, each.leader_epoch, each.current_leader_epoch) for each in asked
    ]
    body = body_of(encode_response(incoming(versions.OFFSET_FOR_LEADER_EPOCH, 4), response))
    told, _ = epoch_answers(body, 4, 4)
    assert [(0, 0, 21), (3, -1, -1)] == [(each.error, each.leader_epoch, each.end_offset) for each in told]
