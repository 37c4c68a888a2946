"""Tables are numbered by their names, made by znodes, and read from what a coordinator writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import TargetError, UsageError
from harness.target.metadata import PartitionTruth
from targets.fluss import tables

PRINTABLE = st.characters(min_codepoint=0x20, max_codepoint=0x7E)


@given(st.text(PRINTABLE, min_size=1, max_size=7))
def test_name_is_found_again_by_its_number(topic: str) -> None:
    number = tables.number_of(topic)
    assert 0 < number < 2**63
    assert topic == tables.topic_of(number)


@given(st.text(PRINTABLE, min_size=1, max_size=7), st.text(PRINTABLE, min_size=1, max_size=7))
def test_two_tables_have_one_number_only_if_they_have_one_name(one: str, other: str) -> None:
    assert (one == other) == (tables.number_of(one) == tables.number_of(other))


def test_number_is_what_servers_print_of_the_topic_of_scenarios() -> None:
    assert 7106407 == tables.number_of("log")


@pytest.mark.parametrize("topic", ["", "eight888", "ü", "日本", "\0log", "a\x00b" * 3])
def test_name_that_has_no_number_is_refused(topic: str) -> None:
    with pytest.raises(UsageError) as raised:
        tables.number_of(topic)
    assert f"topic {topic!r}: expected 1 to 7 printable ASCII characters on Apache Fluss" == str(raised.value)


@pytest.mark.parametrize("number", [-1, -(2**63), 0, 1, 10, 0x7F, 0x80, 0xFF00, 2**56, 2**63 - 1, 2**64])
def test_number_of_no_name_is_a_table_of_somebody_else(number: int) -> None:
    assert f"table-{number}" == tables.topic_of(number)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_number_has_a_name(number: int) -> None:
    topic = tables.topic_of(number)
    assert f"table-{number}" == topic or number == tables.number_of(topic)


# --- the znodes of a table -------------------------------------------------------------------------------------
def test_table_is_written_columns_first_and_itself_last() -> None:
    written = tables.znodes_of("log", [[1, 2, 3], [3, 1]], 17)
    assert [
        "/metadata/databases/fencepost/tables/log/schemas/1",
        "/tabletservers/tables/7106407",
        "/metadata/databases/fencepost/tables/log",
    ] == [path for path, _ in written]
    columns, replicas, table = (json.loads(data) for _, data in written)
    assert [("v", "STRING")] == [(each["name"], each["data_type"]["type"]) for each in columns["columns"]]
    assert {"version": 1, "buckets": {"0": [1, 2, 3], "1": [3, 1]}} == replicas
    assert (7106407, 2, {"table.replication.factor": "3"}, 17) == (
        table["table_id"],
        table["bucket_count"],
        table["properties"],
        table["created_time"],
    )
    assert {0: (1, 2, 3), 1: (3, 1)} == tables.assignment(written[1][1])


def test_state_of_a_bucket_is_below_its_table_s_replicas() -> None:
    assert "/tabletservers/tables/7106407/buckets/2/leader_isr" == tables.state_path("log", 2)


# --- what a coordinator wrote ----------------------------------------------------------------------------------
def state(**more: Any) -> bytes:
    told = {"version": 1, "leader": 1, "leader_epoch": 4, "isr": [2, 1], "coordinator_epoch": 0, "bucket_epoch": 9}
    return json.dumps({**told, **more}).encode()


def test_state_has_names_and_the_znode_s_version() -> None:
    names = {1: "A", 2: "B"}
    assert PartitionTruth(leader="A", epoch=4, in_sync=("B", "A"), version=6) == tables.state(state(), 6, names)
    none = tables.state(state(leader=-1, isr=[2, 9]), 7, names)
    assert PartitionTruth(leader=None, epoch=4, in_sync=("B", None), version=7) == none


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"\xff\xfe", b"null", b"[]", b"7", b'"leader"', b"{}", b'{"leader": 1}'),
        *(state(leader=None), state(leader="A"), state(leader_epoch={}), state(isr=7), state(isr=[None])),
        state(isr=None),
    ],
)
def test_nonsense_in_a_state_is_an_error_that_shows_it(data: bytes) -> None:
    with pytest.raises(TargetError) as raised:
        tables.state(data, 0, {})
    assert f"a bucket's state: {data[:120]!r}; expected JSON as a coordinator writes it" == str(raised.value)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}", b"[]", b"\xff", b'{"buckets": []}', b'{"buckets": {"x": [1]}}', b'{"buckets": {"0": 1}}'),
        *(b'{"buckets": {"0": ["A"]}}', b'{"buckets": {"0": [null]}}', b'{"buckets": null}', b"x" * 500),
    ],
)
def test_nonsense_in_a_table_s_replicas_is_an_error_that_shows_it(data: bytes) -> None:
    with pytest.raises(TargetError) as raised:
        tables.assignment(data)
    assert f"a table's replicas: {data[:120]!r}; expected JSON as a coordinator writes it" == str(raised.value)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_whatever_stands_there_nothing_else_is_raised(data: bytes) -> None:
    for read in (tables.assignment, lambda found: tables.state(found, 0, {})):
        with pytest.raises(TargetError):
            read(data)
