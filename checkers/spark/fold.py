"""
Fold rows into buckets of offsets: how many there are, and the exclusive or of their marks.

Equal numbers mean equal rows, whatever their order. Buckets are small beside records: a row for each 4,096 offsets
of a log, of what was acknowledged, of a read. So no record leaves the executor that reads it;
checkers/spark/compare.py compares the buckets. This module imports nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.spark.rows import Bools, Ints, Rows

# Produces without an answer whose value the leader's log has: (offset, hash, digest).
LANDED: Final = "landed"
WHO: Final = "who"

_INT: Final = pa.int64()
_TEXT: Final = pa.string()
_NAME: Final = pa.dictionary(pa.int8(), _TEXT)
_BOOL: Final = pa.bool_()
# Of folded rows, and of single ones; each table has some of the columns.
FOLD_SCHEMA: Final = pa.schema(
    [
        (WHO, _NAME),
        *((name, _TEXT) for name in ("codec", "outcome")),
        *((name, _BOOL) for name in ("told", "rising", "odd")),
        *((name, _INT) for name in ("bucket", "n", "plain", "full", "log", "read", "acks", "stretch", "late")),
        *((name, _INT) for name in ("invoked", "invoked_last", "base", "number", "index", "time_ns", "epoch")),
        *((name, _INT) for name in ("magic", "last", "first", "hash", "before")),
    ]
)
# What is read of each table to fold it, and to look at its single rows.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "records": ("part", "log", "offset", "hash", "digest"),
    "produces": (
        *("part", "offset", "hash", "digest", "floor", "behind"),
        *("acks", "codec", "outcome", "rising", "invoked"),
    ),
    "batches": (
        *("part", "log", "base", "last", "epoch", "magic", "crc", "codec"),
        *("stretch", "number", "index", "time_ns", "odd", "before"),
    ),
    "reads": ("part", "read", "offset", "hash"),
}
# Of each table: the keys of a bucket, and how each column that is kept of it is reduced.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "records": ("part", "log", "bucket"),
    "produces": ("part", "bucket", "acks", "codec", "outcome"),
    LANDED: ("part", "bucket"),
    # A stretch has one epoch, format and codec.
    "batches": ("part", "log", "bucket", "stretch", "codec"),
    "reads": ("part", "read", "bucket"),
}
_XOR: Final = {"n": "sum", "plain": "xor", "full": "xor"}
_KEPT: Final[Mapping[str, Mapping[str, str]]] = {
    "records": _XOR,
    "produces": {
        **_XOR,
        **{"told": "all", "rising": "all", "late": "max", "invoked": "min", "invoked_last": "max"},
    },
    LANDED: {**_XOR, "told": "all"},
    "batches": {
        **{"n": "sum", "full": "xor", "last": "max", "odd": "any"},
        **dict.fromkeys(("base", "number", "index", "time_ns", "epoch", "magic"), "min"),
    },
    "reads": {"n": "sum", "plain": "xor", "first": "min"},
}
# What remains of single rows; each table has some of it.
_OF_EACH: Final = frozenset(
    {
        "part",
        "log",
        "read",
        "bucket",
        "n",
        "hash",
        "plain",
        "full",
        "told",
        "late",
        "base",
        "last",
        "before",
        "odd",
    }
)

_SINGLE_SCHEMA: Final = pa.schema([field for field in FOLD_SCHEMA if field.name in {WHO, *_OF_EACH}])

_Columns: TypeAlias = dict[str, Any]
_Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]


def fold(name: str, rows: pa.Table, shift: int) -> pa.Table:
    """
    Return the rows of a table folded into buckets.

    Args:
        name: of the table, or LANDED.
        rows: its rows, or some of them, with COLUMNS of it.
        shift: of offsets, to the number of their bucket.
    """
    marked = _MARKED[name](Rows(rows))
    marked["bucket"] = _shifted(marked["bucket"], shift)
    return _reduced(name, pa.table(marked))


def folds(name: str, tables: Iterable[pa.Table], shift: int) -> pa.Table | None:
    """Return the rows of several tables folded into buckets, None if there are no tables."""
    found = [fold(name, rows, shift) for rows in tables]
    return merged(name, found) if found else None


def merged(name: str, tables: Sequence[pa.Table]) -> pa.Table:
    """Return folded rows of a table, those of one bucket as one."""
    return tables[0] if len(tables) == 1 else _reduced(name, pa.concat_tables(tables))


def each(name: str, rows: pa.Table) -> pa.Table:
    """Return the rows of a table as if each were folded alone, with what the last look needs beside it."""
    marked = _MARKED[name](Rows(rows))
    return pa.table({column: values for column, values in marked.items() if column in _OF_EACH})


def by_part(rows: pa.Table | None, who: str = "") -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each partition with its place, with the name of what they come from if there is one."""
    if rows is None or not len(rows):
        return
    for part, found in Rows(rows).each("part"):
        mine = found.table.drop_columns(["part"])
        yield part, mine.append_column(WHO, _names(who, len(mine))) if who else mine


def _names(who: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int8), [who])


def together(tables: Sequence[pa.Table], *, single: bool) -> pa.Table:
    """Return folded or single rows of several tables, with all columns that such rows have."""
    schema = _SINGLE_SCHEMA if single else FOLD_SCHEMA
    return pa.concat_tables(
        [schema.empty_table(), *(_whole(rows, schema) for rows in tables)]
    ).unify_dictionaries()


def _whole(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    there = {*rows.column_names}
    columns = [
        rows.column(field.name).cast(field.type) if field.name in there else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


# --- marks of rows ---------------------------------------------------------------------------------------------
def _records(rows: Rows) -> _Columns:
    plain = mark(rows["offset"], rows["hash"])
    full = mark(plain, rows["digest"])
    return {**_taken(rows, "part", "log", "hash"), **_one(rows["offset"]), "plain": plain, "full": full}


def _produces(rows: Rows) -> _Columns:
    offset = rows["offset"]
    # An acknowledgement with acks=0 has no offset, or -1.
    answered = rows.known("offset") & (offset >= 0) & rows.equal("outcome", "ok")
    # The offset after the highest that was acknowledged before it was sent, or to its process.
    late = np.maximum(rows["floor"], rows["behind"])
    found = _claims(rows)
    found |= _taken(rows, "acks", "codec", "outcome", "rising", "invoked")
    found["bucket"] = _where(answered, offset)
    found["late"] = _where(answered & (offset < late), late + 1)
    found["invoked_last"] = found["invoked"]
    return found


def _claims(rows: Rows) -> _Columns:
    plain = mark(rows["offset"], rows["hash"])
    return {
        **_taken(rows, "part", "hash"),
        **_one(rows["offset"]),
        "plain": plain,
        "full": mark(plain, rows["digest"]),
        "told": rows.known("digest"),
    }


def _batches(rows: Rows) -> _Columns:
    # What of a batch must be the same in every log.
    full = mark(rows["base"], rows["last"])
    for name in ("epoch", "magic", "crc"):
        full = mark(full, rows[name])
    full = mark(full, rows.hashes("codec"))
    kept = (
        "part",
        "log",
        "codec",
        "base",
        "last",
        "stretch",
        "number",
        "index",
        "time_ns",
        "epoch",
        "magic",
        "odd",
    )
    return {**_taken(rows, *kept, "before"), **_one(rows["base"]), "full": full}


def _reads(rows: Rows) -> _Columns:
    offset = rows["offset"]
    return {
        **_taken(rows, "part", "read", "hash"),
        **_one(offset),
        "plain": mark(offset, rows["hash"]),
        "first": offset,
    }


_MARKED: Final[Mapping[str, Callable[[Rows], _Columns]]] = {
    "records": _records,
    "produces": _produces,
    LANDED: _claims,
    "batches": _batches,
    "reads": _reads,
}


def mark(one: Ints, other: Ints) -> Ints:
    """Return a number for each pair of numbers, which depends on their order (splitmix64's last steps)."""
    word: _Words = one.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word += other.view(np.uint64)
    spare = np.empty_like(word)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        np.right_shift(word, np.uint64(shift), out=spare)
        word ^= spare
        word *= np.uint64(factor)
    np.right_shift(word, np.uint64(31), out=spare)
    word ^= spare
    return word.view(np.int64)


def _taken(rows: Rows, *names: str) -> _Columns:
    return {name: rows.table.column(name) for name in names}


def _one(offset: Ints) -> _Columns:
    """Return what a row is until it is folded with others."""
    return {"bucket": offset, "n": np.ones(len(offset), dtype=np.int64)}


def _where(there: Bools, numbers: Ints) -> pa.Array:
    """Return the numbers, null where they are not there."""
    return pa.array(numbers, mask=~there)


def _shifted(offset: Any, shift: int) -> Any:
    return offset >> shift if isinstance(offset, np.ndarray) else pc.shift_right(offset, shift)


# --- reduction -------------------------------------------------------------------------------------------------
# Rows with equal keys that follow each other, at least, if they are not worth being sorted first.
_RUN_LENGTH: Final = 4
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
# How a column is reduced: what stands for null, and the function.
_REDUCE: Final[Mapping[str, tuple[Any, Any]]] = {
    "sum": (0, np.add),
    "xor": (0, np.bitwise_xor),
    "min": (_MOST, np.minimum),
    "max": (_LEAST, np.maximum),
    "all": (True, np.logical_and),
    "any": (False, np.logical_or),
}


def _reduced(name: str, rows: pa.Table) -> pa.Table:
    """Return the rows of which all keys are equal as one."""
    keys = _KEYS[name]
    if not len(rows):
        return rows.select([*keys, *_KEPT[name]])
    codes = _codes([rows.column(key) for key in keys])
    first = _firsts(codes)
    is_rising = (codes[1:] >= codes[:-1]).all()
    order = None
    if not is_rising and len(first) > len(codes) // _RUN_LENGTH:
        order = np.argsort(codes)
        first = _firsts(codes[order])
    of_key = rows.select(keys).take(pa.array(first if order is None else order[first]))
    found: _Columns = {key: of_key.column(key) for key in keys}
    for column, how in _KEPT[name].items():
        null, function = _REDUCE[how]
        values = pc.fill_null(rows.column(column), null).to_numpy()
        reduced = function.reduceat(values if order is None else values[order], first)
        found[column] = pa.array(reduced, mask=reduced == null) if how in ("min", "max") else reduced
    # Rows that nearly are in order become few without sorting them.
    return pa.table(found) if is_rising or order is not None else _reduced(name, pa.table(found))


def _firsts(codes: Ints) -> Ints:
    """Return where numbers differ from those before."""
    return np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))


def _codes(keys: Sequence[pa.ChunkedArray]) -> Ints:
    """Return one number for each row, equal for those rows of which all keys are equal."""
    codes, range_of = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys:
        numbers, low, width = _numbers(key)
        if range_of * width >= _MOST:
            unique, codes = np.unique(codes, return_inverse=True)
            range_of = len(unique)
        if range_of * width >= _MOST:
            unique, numbers = np.unique(numbers, return_inverse=True)
            low, width = 0, len(unique)
        codes = codes * width + (numbers - low)
        range_of *= width
    return codes


def _numbers(key: pa.ChunkedArray) -> tuple[Ints, int, int]:
    """Return a column as numbers, the lowest of them, and how far they reach."""
    if pa.types.is_dictionary(key.type) or pa.types.is_string(key.type):
        key = key.combine_chunks().dictionary_encode().indices
    low, high = pc.min_max(key).as_py().values()
    if low is None:
        return np.zeros(len(key), dtype=np.int64), 0, 1
    null = low - 1 if key.null_count else low
    numbers: Ints = pc.fill_null(key.cast(_INT), null).to_numpy(zero_copy_only=False)
    return numbers, null, high - null + 1
