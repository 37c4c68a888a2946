"""A multi of writes is what kazoo's own transaction is, byte by byte, and its answer is read alike."""

from __future__ import annotations

import struct

import pytest
from kazoo.exceptions import BadVersionError, RolledBackError, RuntimeInconsistency
from kazoo.protocol.serialization import CheckVersion, Create, Delete, SetData, Transaction
from kazoo.security import OPEN_ACL_UNSAFE

from targets.broker.coordination.multi_write import MultiWrite
from targets.broker.core.zookeeper import ZkCheck, ZkCreate, ZkDelete, ZkSet

WRITES = (
    ZkCheck(path="/controller_epoch", version=7),
    ZkCreate(path="/brokers/topics/tö/0"),
    ZkCreate(path="/brokers/ids/1", data=b"{}", ephemeral=True),
    ZkSet(path="/brokers/topics/t/0/leaderAndISR", data=b'{"leader": 1}', version=3),
    ZkDelete(path="/admin/elections", version=-1),
)
HEADER = struct.Struct(">i?i")


def test_request_is_that_of_kazoos_transaction() -> None:
    theirs = Transaction(
        [
            CheckVersion("/c/controller_epoch", 7),
            Create("/c/brokers/topics/tö/0", b"", OPEN_ACL_UNSAFE, 0),
            Create("/c/brokers/ids/1", b"{}", OPEN_ACL_UNSAFE, 1),
            SetData("/c/brokers/topics/t/0/leaderAndISR", b'{"leader": 1}', 3),
            Delete("/c/admin/elections", -1),
        ]
    )
    assert Transaction.type == MultiWrite.type
    assert bytes(theirs.serialize()) == MultiWrite("/c", WRITES).serialize()


def test_answer_has_one_result_for_each_write() -> None:
    answer = b"head" + b"".join(
        (
            HEADER.pack(13, False, 0),
            HEADER.pack(1, False, 0) + struct.pack(">i", 2) + b"/a",
            HEADER.pack(1, False, 0) + struct.pack(">i", -1),
            HEADER.pack(5, False, 0) + bytes(68),
            HEADER.pack(2, False, 0),
            HEADER.pack(-1, True, -1),
        )
    )
    assert [None] * 5 == MultiWrite.deserialize(answer, 4)


def test_answer_of_a_refused_multi_says_which_write_was_refused() -> None:
    errors = (0, -103, -2)
    answer = b"".join(HEADER.pack(-1, False, code) + struct.pack(">i", code) for code in errors)
    found = MultiWrite.deserialize(answer + HEADER.pack(-1, True, -1), 0)
    assert [RolledBackError, BadVersionError, RuntimeInconsistency] == [type(each) for each in found]


@pytest.mark.parametrize("answer", [b"", HEADER.pack(5, False, 0)[:-1], HEADER.pack(9, False, 0)])
def test_answer_that_is_none_is_an_error(answer: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        MultiWrite.deserialize(answer, 0)
