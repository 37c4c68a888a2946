"""Folded rows are the same whatever the order of rows, and whatever is folded first."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from checkers.spark import fold as module
from checkers.spark.fold import COLUMNS, LANDED, by_part, each, fold, folds, mark, merged, together
from checkers.spark.sought import Sought
from harness.tables.schema import SCHEMAS

SHIFT = 3
TEXTS = ("none", "gzip")


def _value(field: pa.Field, rng: random.Random) -> Any:
    if field.nullable and rng.random() < 0.3:
        return None
    if pa.types.is_string(field.type):
        return rng.choice(TEXTS if field.name == "codec" else ("ok", "info", "fail"))
    if pa.types.is_boolean(field.type):
        return rng.random() < 0.5
    if field.name in ("hash", "digest"):
        return rng.randrange(-(2**63), 2**63)
    return rng.randrange(3) if field.name in ("part", "log", "read", "acks", "stretch") else rng.randrange(100)


def _rows(name: str, count: int, seed: int) -> pa.Table:
    rng = random.Random(seed)
    fields = [SCHEMAS[name].field(column) for column in COLUMNS[name]]
    rows = [{field.name: _value(field, rng) for field in fields} for _ in range(count)]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _sorted(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("seed", range(5))
def test_order_and_pieces_of_rows_change_nothing(name: str, seed: int) -> None:
    rows = _rows(name, 200, seed)
    expected = _sorted(fold(name, rows, SHIFT))
    backwards = rows.take(pa.array(range(199, -1, -1)))
    assert expected == _sorted(fold(name, backwards, SHIFT))
    in_order = rows.sort_by([(column, "ascending") for column in COLUMNS[name]])
    assert expected == _sorted(fold(name, in_order, SHIFT))
    found = folds(name, (rows.slice(first, 30) for first in range(0, 200, 30)), SHIFT)
    assert found is not None and expected == _sorted(found)
    assert 200 == sum(row["n"] for row in expected)


def test_rows_of_one_bucket_become_one() -> None:
    rows = pa.table(
        {"part": [0, 0, 0], "log": [1, 1, 1], "offset": [3, 0, 8], "hash": [5, 6, 7], "digest": [1] * 3}
    )
    found = fold("records", rows, SHIFT).to_pylist()
    full = [int(mark(mark(np.array([o]), np.array([h])), np.array([1]))[0]) for o, h in ((3, 5), (0, 6), (8, 7))]
    assert [(0, 2, full[0] ^ full[1]), (1, 1, full[2])] == [
        (row["bucket"], row["n"], row["full"]) for row in found
    ]


def test_two_records_in_each_others_places_are_another_mark() -> None:
    offsets, hashes = np.array([1, 2]), np.array([70, 71])
    one = np.bitwise_xor.reduce(mark(offsets, hashes))
    assert one != np.bitwise_xor.reduce(mark(offsets, hashes[::-1]))


def test_keys_that_are_too_far_apart_for_one_number_stay_apart() -> None:
    far = [-(2**62), 2**62, -(2**62), 2**62]
    rows = {
        "part": [0] * 4,
        "log": [0, 1, 0, 1],
        "offset": [8 * each for each in (far[0] // 8, 1, 2, far[1] // 8)],
    }
    table = pa.table({**rows, "hash": far, "digest": far})
    assert 4 == len(fold("records", table, SHIFT))
    assert 2 == len(fold("records", pa.concat_tables([table.slice(1, 1)] * 3 + [table.slice(2, 1)]), SHIFT))


def test_nothing_is_folded_to_nothing() -> None:
    for name in COLUMNS:
        assert 0 == len(fold(name, _rows(name, 0, 0), SHIFT))
        assert 0 == len(merged(name, [fold(name, _rows(name, 0, 0), SHIFT)] * 2))
    assert folds("records", (), SHIFT) is None
    assert [] == [*by_part(None)]


def test_folded_and_single_rows_of_all_tables_stand_together_with_what_they_come_from() -> None:
    claims = pa.table({"part": [0], "offset": [4], "hash": [9], "digest": pa.array([None], pa.int64())})
    tables = [
        *(rows for name in COLUMNS for _, rows in by_part(fold(name, _rows(name, 20, 1), SHIFT), name)),
        *(rows for _, rows in by_part(fold(LANDED, claims, SHIFT), LANDED)),
    ]
    found = together(tables, single=False)
    assert {*COLUMNS, LANDED} == {*found.column("who").to_pylist()}
    assert module.FOLD_SCHEMA.equals(found.schema)
    alone = [rows for name in COLUMNS for _, rows in by_part(each(name, _rows(name, 20, 1)), name)]
    assert 80 == len(together(alone, single=True))


def test_sought_numbers_are_found_among_many_and_no_others() -> None:
    rng = np.random.default_rng(1)
    all_numbers = rng.integers(-(2**63), 2**63, 10_000, dtype=np.int64)
    wanted = np.unique(all_numbers[::7])
    there, place = Sought(wanted).within(all_numbers)
    assert np.flatnonzero(np.isin(all_numbers, wanted)).tolist() == there.tolist()
    assert all_numbers[there].tolist() == wanted[place].tolist()
    assert [0, 0] == [len(each) for each in Sought(np.empty(0, dtype=np.int64)).within(all_numbers)]
