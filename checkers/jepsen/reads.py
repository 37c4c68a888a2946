"""Rules about what was polled, and what should have been. Source: jepsen.tests.kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from checkers.jepsen.facts import Facts
from checkers.jepsen.finding import Finding
from checkers.jepsen.history import OK, CheckerCrashError, Key, Op, Value
from checkers.jepsen.offsets import in_order
from checkers.jepsen.order import must_have_committed


def lost_write(facts: Facts) -> Iterator[Finding]:
    """
    Yield each value that must have been polled, since a later one was, and that no `ok` operation polled.

    The last index of such a value is at or below the highest index that an `ok` operation polled, where each
    polled value counts with its first index; and its sender must have committed.

    Raises:
        CheckerCrashError: no offset is known of anything that `ok` operations polled of a key.
    """
    found: dict[Key, tuple[int, list[Value]]] = {}
    for key, polled in facts.ok_polled.items():
        log = facts.log(key)
        bound = max((log.first[value] for value in polled if value in log.first), default=-1)
        if bound < 0:
            raise CheckerCrashError(
                "no-known-offset", f"key {key!r} was polled, and no offset is known of what was polled of it"
            )
        if len(polled) < len(log.last) or not polled >= log.last.keys():
            lost = [value for value, last in log.last.items() if last <= bound and value not in polled]
            lost = [value for value in lost if must_have_committed(facts.writer(key, value), facts.ok_polled)]
            if lost:
                found[key] = (bound, sorted(lost, key=lambda each: log.last[each]))
    ahead = _first_polls(facts, {key: {*facts.log(key).at(bound)} for key, (bound, _) in found.items()})
    for key, (bound, lost) in found.items():
        log = facts.log(key)
        for value in lost:
            yield Finding(
                kind="lost-write",
                key=key,
                values=(value,),
                offsets=(log.offsets[log.last[value]], log.offsets[bound]),
                ops=(facts.writer(key, value), ahead[key]),
                more={"index": log.first[value], "max-read-index": bound},
            )


def _first_polls(facts: Facts, wanted: Mapping[Key, set[Value]]) -> dict[Key, Op]:
    """Return of each key the first `ok` operation that polled one of the values; there is one."""
    found: dict[Key, Op] = {}
    for op in facts.transactions if wanted else ():
        if op.type == OK:
            for key in op.polls:
                if key in wanted and key not in found and not wanted[key].isdisjoint(op.polled(key)):
                    found[key] = op
    return found


def unseen(facts: Facts) -> Iterator[Finding]:
    """
    Yield the values of `ok` sends that no `ok` operation polled, as one finding that counts for all of them.

    A quirk is kept: what the last `ok` operation polled counts too, of a key that no `ok` operation sent to and
    none polled before.

    Raises:
        CheckerCrashError: Jepsen sorts the keys and the values, and they are of two sorts.
    """
    left = {key: sent - facts.ok_polled.get(key, set()) for key, sent in facts.ok_sent.items()}
    left |= _polled_at_last(facts)
    found = {key: values for key, values in left.items() if values}
    if not found:
        return
    last = next(op for op in reversed(facts.transactions) if op.type == OK)
    keys: list[Any] = in_order([*found], "among the keys that have unseen values")
    messages = {key: in_order(found[key], f"unseen of key {key!r}") for key in keys}
    yield Finding(
        kind="unseen",
        ops=(last,),
        count=sum(map(len, found.values())),
        more={"messages": messages},
    )


def _polled_at_last(facts: Facts) -> dict[Key, set[Value]]:
    last = next((op for op in reversed(facts.transactions) if op.type == OK), None)
    if last is None:
        return {}
    found = {key: set(last.polled(key)) for key in last.polls if key not in facts.ok_sent}
    if found:
        for op in facts.transactions:
            if op.type == OK and op is not last:
                for key in op.polls:
                    found.pop(key, None)
    return found


def aborted_read(facts: Facts) -> Iterator[Finding]:
    """Yield each poll, by an `ok` operation, of a value whose send failed: G1a."""
    if not facts.failed:
        return
    for op in facts.transactions:
        if op.type != OK:
            continue
        for key in op.polls:
            failed = facts.failed.get(key, ())
            for value in op.polled(key) if failed else ():
                if value in failed:
                    yield Finding(kind="G1a", key=key, values=(value,), ops=(facts.writer_of[key][value], op))


def precommitted_read(facts: Facts) -> Iterator[Finding]:
    """Yield each operation, whatever became of it, that polled a value which it sent itself."""
    for op in facts.ops:
        for key in op.sends if op.polls else ():
            polled = set(op.polled(key))
            own = next((value for value in op.sent(key) if value in polled), None)
            if own is not None:
                yield Finding(kind="precommitted-read", key=key, values=(own,), ops=(op,))
                break
