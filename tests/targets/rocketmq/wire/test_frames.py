"""A frame of the remoting protocol is read as what it is, or it is said why it cannot be."""

from __future__ import annotations

import json
import struct

import pytest

from harness.target.wire import Word, words_of
from targets.rocketmq.wire.frames import (
    HEAD,
    HEAD_BYTES_MAX,
    Code,
    Frame,
    Unreadable,
    length_of,
    read,
    word_of,
    written,
)
from targets.rocketmq.wire.wire import WIRE
from tests.targets.rocketmq.server import answer, frame

# As a broker of 5.5.0 asks a controller.
REAL = frame(
    b'{"code":1003,"extFields":{"brokerAddress":"a:10911","brokerId":"1","brokerName":"brokers",'
    b'"clusterName":"fencepost"},"flag":0,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":503}'
)


# --- requests and answers --------------------------------------------------------------------------------------
@pytest.mark.parametrize("body", [b"", b"value", bytes(range(256)) * 300])
@pytest.mark.parametrize("number", [0, 1, 2**31 - 1, -1])
def test_request_that_is_written_is_read(body: bytes, number: int) -> None:
    sent = written(Code.SendMessage, number, {"topic": "log", "queueId": 3, "batch": "false"}, body)
    fields = {"topic": "log", "queueId": "3", "batch": "false"}
    assert Frame(code=10, number=number, fields=fields, body=body) == read(sent)
    assert len(sent) - 4 == length_of(sent)


def test_request_has_the_head_that_a_broker_reads() -> None:
    sent = written(Code.PullMessage, 5, {"queueOffset": 0})
    length, size = HEAD.unpack_from(sent)
    assert (len(sent) - 4, len(sent) - 8) == (length, size)
    head = json.loads(sent[8:])
    assert {"code": 11, "opaque": 5, "flag": 0, "language": "JAVA", "extFields": {"queueOffset": "0"}} == {
        key: value for key, value in head.items() if key != "version"
    }
    # Brokers compare it with their own, which is a number.
    assert isinstance(head["version"], int)


def test_request_of_a_broker_is_read() -> None:
    found = read(REAL)
    assert (Code.RegisterToController, 7, False, b"", "") == (
        found.code,
        found.number,
        found.answers,
        found.body,
        found.remark,
    )
    assert {"brokerAddress", "brokerId", "brokerName", "clusterName"} == {*found.fields}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (answer(4), Frame(code=0, number=4, answers=True)),
        (answer(4, 1, remark="not enough"), Frame(code=1, number=4, answers=True, remark="not enough")),
        (
            answer(4, fields={"a": "b"}, body=b"x"),
            Frame(code=0, number=4, answers=True, fields={"a": "b"}, body=b"x"),
        ),
        # A head may lack what it does not need. Bit 1 says that nobody waits for an answer.
        (frame({"code": 10, "opaque": 4}), Frame(code=10, number=4)),
        (frame({"code": 10, "opaque": 4, "flag": 2}), Frame(code=10, number=4)),
        (frame({"code": 10, "opaque": 4, "flag": 3}), Frame(code=10, number=4, answers=True)),
        (frame({"code": 10, "opaque": 4, "extFields": {}}, b"{}"), Frame(code=10, number=4, body=b"{}")),
    ],
)
def test_answer_is_told_from_a_request_by_its_flag(sent: bytes, expected: Frame) -> None:
    assert expected == read(sent)


# --- words -----------------------------------------------------------------------------------------------------
def test_notice_of_roles_has_the_general_word_and_every_other_code_its_name() -> None:
    assert Word.COMMAND.value == word_of(1008) == word_of(Code.NotifyRoleChanged)
    others = [code for code in Code if code is not Code.NotifyRoleChanged]
    assert [code.name for code in others] == [word_of(int(code)) for code in others]


def test_word_of_every_known_code_is_known_to_rules_once() -> None:
    words = words_of(WIRE)
    assert {word_of(code) for code in Code} <= {*words}
    assert len({*words}) == len(words)


@pytest.mark.parametrize("code", [-1, 0, 12, 999, 2**31 - 1])
def test_code_without_a_name_has_its_number(code: int) -> None:
    assert f"request-{code}" == word_of(code)
    assert word_of(code) not in words_of(WIRE)


# --- what is no frame ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", range(8))
def test_frame_without_its_first_eight_bytes_is_unreadable(size: int) -> None:
    with pytest.raises(Unreadable, match=f"^a frame of {size} bytes; expected one with a head$"):
        read(REAL[:size])


@pytest.mark.parametrize("size", [0, len(REAL) - 8 + 1, HEAD_BYTES_MAX + 1, 0xFFFFFF])
def test_head_of_a_length_that_none_has_is_unreadable(size: int) -> None:
    lying = REAL[:4] + struct.pack(">I", size) + REAL[8:]
    with pytest.raises(Unreadable, match=f"^a head of {size} bytes, spelled in way 0; expected JSON within"):
        read(lying)


def test_head_that_is_longer_than_any_is_unreadable_although_it_is_there() -> None:
    head = json.dumps({"code": 10, "opaque": 1, "remark": "x" * HEAD_BYTES_MAX}).encode()
    with pytest.raises(Unreadable, match=f"a head of {len(head)} bytes"):
        read(frame(head))


@pytest.mark.parametrize("spelling", [1, 2, 127, 255])
def test_head_in_another_spelling_is_unreadable(spelling: int) -> None:
    """1 is RocketMQ's own, binary."""
    other = REAL[:4] + bytes((spelling,)) + REAL[5:]
    with pytest.raises(Unreadable, match=f"spelled in way {spelling}; expected JSON"):
        read(other)


@pytest.mark.parametrize(
    "head",
    [
        *(b"no JSON", b"{", b"\xff\xfe", b"null", b"7", b"[]", b'"x"', b"{}", b"[1, 2]", b"\0" * 20),
        *(b'{"code": 10}', b'{"opaque": 1}', b'{"code": null, "opaque": 1}', b'{"code": "x", "opaque": 1}'),
        *(b'{"code": [], "opaque": 1}', b'{"code": NaN, "opaque": 1}', b'{"code": 10, "opaque": {}}'),
        *(b'{"code": 10, "opaque": 1, "flag": "x"}', b'{"code": 10, "opaque": 1, "flag": null}'),
        *(b'{"code": 10, "opaque": 1, "extFields": 7}', b'{"code": 10, "opaque": 1, "extFields": [1]}'),
        *(b'{"code": 10, "opaque": 1, "extFields": "abc"}', b'{"code": ' + b"9" * 5000 + b', "opaque": 1}'),
        b"[" * 100_000,
        b'{"code": ' + b"[" * 50_000 + b"]" * 50_000 + b', "opaque": 1}',
        b'{"code": 10, "opaque": 1, "extFields": ' + b'{"a": ' * 20_000 + b"1" + b"}" * 20_000 + b"}",
    ],
)
def test_head_that_is_no_command_is_unreadable_in_one_line(head: bytes) -> None:
    with pytest.raises(Unreadable, match=r"^head b['\"].*; expected JSON of a remoting command$") as raised:
        read(frame(head))
    assert len(str(raised.value)) < 600
    assert 1 == len(str(raised.value).splitlines())


@pytest.mark.parametrize(
    "head",
    [
        b'{"code": Infinity, "opaque": 1}',
        b'{"code": 1e999, "opaque": 1}',
        b'{"code": 10, "opaque": -Infinity}',
        b'{"code": 10, "opaque": 1, "flag": 1e999}',
    ],
)
def test_number_without_an_end_is_unreadable(head: bytes) -> None:
    with pytest.raises(Unreadable, match="expected JSON of a remoting command"):
        read(frame(head))


def test_frame_that_is_cut_is_read_once_its_head_is_there() -> None:
    sent = written(Code.SendMessage, 4, {"topic": "log"}, b"value")
    begins = len(sent) - len(b"value")
    for cut in range(begins):
        with pytest.raises(Unreadable):
            read(sent[:cut])
    for cut in range(begins, len(sent)):
        found = read(sent[:cut])
        assert (10, 4, b"value"[: cut - begins]) == (found.code, found.number, found.body)
