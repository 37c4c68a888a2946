"""A partition is a stream and a stream is a partition; a member's id is the one that servers compute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.nats.streams import peer_of, place_of, stream_of

TOPICS = st.text(st.characters(exclude_characters=" \t\r\n.*>/\\", exclude_categories=("Cs", "Cc")), min_size=1)


@given(TOPICS, st.integers(0, 999_999_999))
def test_place_is_found_again_by_its_stream(topic: str, partition: int) -> None:
    assert (topic, partition) == place_of(stream_of(topic, partition))


@pytest.mark.parametrize(
    ("stream", "place"),
    [
        ("log-0", ("log", 0)),
        ("log-12", ("log", 12)),
        ("a-1-2", ("a-1", 2)),
        ("log--1", ("log-", 1)),
        ("log", ("log", 0)),
        ("log-", ("log-", 0)),
        ("-0", ("-0", 0)),
        ("log-01", ("log-01", 0)),
        ("log-1x", ("log-1x", 0)),
        ("log-\u0661", ("log-\u0661", 0)),
        ("log-1000000000", ("log-1000000000", 0)),
        ("KV_bucket", ("KV_bucket", 0)),
        ("", ("", 0)),
    ],
)
def test_stream_of_somebody_else_is_a_topic_of_one_partition(stream: str, place: tuple[str, int]) -> None:
    assert place == place_of(stream)


def test_id_of_a_member_is_what_servers_print_of_themselves() -> None:
    """As in the line "Node:" of a log of 2.15.3."""
    assert "NUmM6cRx" == peer_of("A")


def test_ids_of_members_are_their_own() -> None:
    names = [chr(ord("A") + number) for number in range(26)]
    assert len(names) == len({peer_of(name) for name in names})
