"""
Reads a history of Jepsen's Kafka workload: one JSON object a line, in the order in which things happened.

A line that cannot be used is named with its file, its number, what it has and what was expected. Reading goes on,
so that one look shows what is wrong; but a history with such a line proves nothing. docs/checkers.md has the form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from checkers.jepsen.history import (
    ASSIGN,
    FUNCTIONS,
    INFO,
    NOTHING,
    POLL,
    SEND,
    SUBSCRIBE,
    TRANSACTIONS,
    TYPES,
    JepsenHistory,
    Key,
    Op,
    pieces,
    poll_key,
)
from checkers.jepsen.pause import collector_paused
from harness.limits import JEPSEN_LINE_BYTES_MAX, JEPSEN_LINES_MAX

PROBLEMS_MAX: Final = 20
_SHOWN_CHARACTERS_MAX: Final = 60
_DIGITS_MAX: Final = 18


class _LineError(ValueError):
    """A line is not what the form asks for; the text says what it has, and what was expected."""


def read(name: str, lines: Iterable[tuple[int, bytes]]) -> JepsenHistory:
    """
    Return what a file's lines say, and the problems of those that cannot be used.

    Args:
        name: the file's, for problems.
        lines: each line with its number, from 1; empty ones are skipped, and one that is longer than
            JEPSEN_LINE_BYTES_MAX may be cut there.
    """
    with collector_paused():
        return _read(name, lines)


def _read(name: str, lines: Iterable[tuple[int, bytes]]) -> JepsenHistory:
    ops: list[Op] = []
    causes: dict[str, Any] = {}
    problems: list[str] = []
    left_out = 0
    expected = 0
    for number, line in lines:
        if not line.strip():
            continue
        if expected >= JEPSEN_LINES_MAX:
            problems.append(f"{name}:{number}: more than {JEPSEN_LINES_MAX:,} lines; expected a shorter history")
            break
        try:
            raw = _object(line)
            op = _op(raw, number, expected)
            if op is not None:
                ops.append(op)
            if raw.get("type") == INFO and raw.get("f") in TRANSACTIONS:
                cause = raw.get("error")
                causes.setdefault(json.dumps(cause, sort_keys=True), cause)
        except (_LineError, RecursionError) as error:
            if len(problems) < PROBLEMS_MAX:
                problems.append(f"{name}:{number}: {error}")
            else:
                left_out += 1
        expected += 1
    if not ops and not problems:
        problems.append(f"{name}: no operation of a client; expected a history, one JSON object a line")
    return JepsenHistory(ops=ops, info_causes=[*causes.values()], problems=problems, problems_left_out=left_out)


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > JEPSEN_LINE_BYTES_MAX:
        raise _LineError(f"a line of more than {JEPSEN_LINE_BYTES_MAX:,} bytes; expected one operation")
    try:
        raw = _DECODER.decode(line.decode("utf-8"))
    except _LineError:
        raise
    except UnicodeDecodeError as error:
        raise _LineError(f"byte 0x{line[error.start]:02x} is not UTF-8; expected JSON in UTF-8") from error
    except RecursionError as error:
        raise _LineError("lists or objects too deep within each other; expected an operation") from error
    # A JSON error, or an integer of thousands of digits.
    except ValueError as error:
        raise _LineError(f"no JSON ({error}); expected one object, an operation") from error
    if type(raw) is not dict:
        raise _LineError(f"{_shown(raw)}; expected one JSON object, an operation")
    return raw


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; of a name that is there twice, JSON would silently drop the first."""
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _LineError(f"{_shown(twice)} is there twice in one object; expected it once")
    return made


def _no_number(word: str) -> Any:
    raise _LineError(f"{word} is no JSON; expected a number")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number)


def _op(raw: Mapping[str, Any], line: int, expected: int) -> Op | None:
    """Return the operation of a line, None if it is no client's."""
    index = raw.get("index")
    if index != expected or type(index) is not int:
        raise _LineError(f"index {_shown(index)}; expected {expected}: 0, 1, 2, … without gaps")
    process = raw.get("process")
    if type(process) is not int:
        return None
    type_, f, time = raw.get("type"), raw.get("f"), raw.get("time")
    if type_ not in TYPES:
        raise _LineError(f"type {_shown(type_)}; expected one of {', '.join(TYPES)}")
    if f not in FUNCTIONS:
        raise _LineError(f"f {_shown(f)}; expected one of {', '.join(FUNCTIONS)}")
    if type(time) is not int or time < 0:
        raise _LineError(f"time {_shown(time)}; expected whole nanoseconds from 0")
    value = raw.get("value")
    op = Op(index, line, time, process, type_, f, value)
    if f in TRANSACTIONS:
        _add_transaction(op, value)
    elif f in (ASSIGN, SUBSCRIBE):
        _check_keys(f"value of {f}", value)
    if "rebalance-log" in raw:
        op.rebalanced = _rebalanced(raw["rebalance-log"])
    return op


def _add_transaction(op: Op, mops: Any) -> None:
    if type(mops) is not list:
        raise _LineError(f"value {_shown(mops)}; expected a list of micro-operations")
    for mop in mops:
        _check_mop(mop)
    sends, polls = pieces(mops)
    if (op.f == SEND and polls) or (op.f == POLL and sends):
        op.strays = (sends, polls)
    op.sends = sends if sends and op.f != POLL else NOTHING
    op.polls = polls if polls and op.f != SEND else NOTHING


def _check_mop(mop: Any) -> None:
    if type(mop) is list and mop:
        if mop[0] == POLL and len(mop) <= 2:
            if len(mop) == 2 and mop[1] is not None:
                _check_polled(mop[1])
            return
        if mop[0] == SEND and len(mop) == 3:
            _check_sent(mop[1], mop[2])
            return
    raise _LineError(
        f'micro-operation {_shown(mop)}; expected ["send", KEY, VALUE], ["send", KEY, [OFFSET, VALUE]], '
        '["poll"] or ["poll", {"KEY": [[OFFSET, VALUE], …]}]'
    )


def _check_sent(key: Any, value: Any) -> None:
    if type(key) is not int and type(key) is not str:
        raise _LineError(f"key {_shown(key)} of a send; expected an integer or a string")
    if type(value) is list:
        _check_pair(value)
    elif type(value) is not int and type(value) is not str:
        raise _LineError(f"value {_shown(value)} of a send; expected an integer, a string or [OFFSET, VALUE]")


def _check_polled(polled: Any) -> None:
    if type(polled) is not dict:
        raise _LineError(f'{_shown(polled)} of a poll; expected {{"KEY": [[OFFSET, VALUE], …]}}')
    for name, pairs in polled.items():
        if len(name) > _DIGITS_MAX and name.removeprefix("-").isdigit():
            raise _LineError(f"key {_shown(name)} of a poll; expected an integer of up to {_DIGITS_MAX} digits")
        if type(pairs) is not list:
            raise _LineError(f"{_shown(pairs)} of key {_shown(name)} in a poll; expected [[OFFSET, VALUE], …]")
        # Most pairs are sound, and there are millions: a call of each would take half of the time of reading.
        for pair in pairs:
            if type(pair) is list and len(pair) == 2 and type(pair[0]) is int and pair[0] >= 0:
                if type(pair[1]) is not int:
                    _check_pair(pair)
            else:
                _check_pair(pair)
    if len(polled) > 1 and len({poll_key(name) for name in polled}) != len(polled):
        raise _LineError(f"two names of one key in the poll of {_shown([*polled])}; expected each key once")


def _check_pair(pair: Any) -> None:
    if type(pair) is not list or len(pair) != 2:
        raise _LineError(f"{_shown(pair)}; expected [OFFSET, VALUE]")
    offset, value = pair
    if offset is not None and (type(offset) is not int or offset < 0):
        raise _LineError(f"offset {_shown(offset)}; expected a whole number from 0, or null")
    if type(value) is not int and type(value) is not str:
        raise _LineError(f"value {_shown(value)} at offset {_shown(offset)}; expected an integer or a string")


def _check_keys(what: str, keys: Any) -> None:
    if type(keys) is not list or not all(type(key) in (int, str) for key in keys):
        raise _LineError(f"{what} {_shown(keys)}; expected a list of keys")


def _rebalanced(log: Any) -> frozenset[Key]:
    if log is None:
        return frozenset()
    if type(log) is not list or not all(type(each) is dict for each in log):
        raise _LineError(f'rebalance-log {_shown(log)}; expected [{{"keys": [KEY, …]}}, …]')
    found: set[Key] = set()
    for each in log:
        keys = each.get("keys")
        if keys is not None:
            _check_keys("keys of rebalance-log", keys)
            found.update(keys)
    return frozenset(found)


def _shown(value: Any) -> str:
    text = json.dumps(value) if type(value) is not str else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS_MAX else f"{text[:_SHOWN_CHARACTERS_MAX]}…"
