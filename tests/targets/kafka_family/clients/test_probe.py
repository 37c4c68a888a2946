"""The probe asks a node, here over a pair of connected sockets."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from targets.kafka_family.clients import probe

Node = Callable[..., None]

ADDRESS = "127.0.0.1:1"


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """Answer the questions of the next connection with these bodies, the bytes together cut off after so many."""

    def answering(*bodies: bytes, cut: int | None = None) -> None:
        ours, theirs = socket.socketpair()
        answers = b"".join(framed(body, number) for number, body in enumerate(bodies, start=1))
        theirs.sendall(answers[:cut])
        theirs.shutdown(socket.SHUT_WR)
        both.extend((ours, theirs))
        monkeypatch.setattr(socket, "create_connection", lambda address, timeout: ours)

    both: list[socket.socket] = []
    yield answering
    for each in both:
        each.close()


def framed(body: bytes, number: int) -> bytes:
    return struct.pack(">ii", len(body) + 4, number) + body


def list_offsets(error: int) -> bytes:
    return struct.pack(">ih3siihqq", 1, 3, b"log", 1, 0, error, -1, 0)


def metadata(leader: int, *partitions: int) -> bytes:
    """Return metadata of brokers 7 (at ADDRESS) and 8, and of a topic whose partitions have this leader."""
    brokers = struct.pack(">iih9sih", 2, 7, 9, b"127.0.0.1", 1, -1) + struct.pack(
        ">ih9sih1s", 8, 9, b"127.0.0.1", 2, 1, b"r"
    )
    topic = struct.pack(">iihh3s?i", 7, 1, 0, 3, b"log", False, len(partitions))
    return brokers + topic + b"".join(struct.pack(">hiiiiiii", 0, p, leader, 2, 7, 8, 1, 7) for p in partitions)


@pytest.mark.parametrize(("error", "expected"), [(0, True), (6, False), (3, False)])
def test_node_leads_when_it_gives_the_partition_s_offset(node: Node, error: int, expected: bool) -> None:
    node(list_offsets(error), metadata(7, 0))
    assert expected is probe.leads(ADDRESS, "log", 0)


@pytest.mark.parametrize("named", [metadata(8, 0), metadata(-1, 0), metadata(7, 1), metadata(7)])
def test_node_that_does_not_name_itself_does_not_lead_yet(node: Node, named: bytes) -> None:
    node(list_offsets(0), named)
    assert not probe.leads(ADDRESS, "log", 0)


@pytest.mark.parametrize(("leader", "expected"), [(7, ADDRESS), (8, "127.0.0.1:2"), (9, "")])
def test_node_names_the_leader_of_a_partition_among_others(node: Node, leader: int, expected: str) -> None:
    node(metadata(leader, 2, 1, 0))
    assert expected == probe.named_leader(ADDRESS, "log", 0)


@pytest.mark.parametrize("cut", range(8 + len(metadata(7, 0))))
def test_node_names_nobody_when_its_answer_is_cut_short(node: Node, cut: int) -> None:
    node(metadata(7, 0), cut=cut)
    assert "" == probe.named_leader(ADDRESS, "log", 0)


@pytest.mark.parametrize(("answer", "expected"), [(b"\0\0\0\0\0\0", True), (b"\0\x23", False)])
def test_node_serves_when_it_answers_without_an_error(node: Node, answer: bytes, expected: bool) -> None:
    node(answer)
    assert expected is probe.serves("127.0.0.1:1")


@pytest.mark.parametrize("cut", range(8 + len(list_offsets(0))))
def test_node_does_not_lead_when_its_answer_is_cut_short(node: Node, cut: int) -> None:
    node(list_offsets(0), metadata(7, 0), cut=cut)
    assert not probe.leads("127.0.0.1:1", "log", 0)


def test_node_that_cannot_be_reached_neither_serves_nor_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(address: object, timeout: float) -> socket.socket:
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refused)
    assert not probe.serves("127.0.0.1:1")
    assert not probe.leads("127.0.0.1:1", "log", 0)
