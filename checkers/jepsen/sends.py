"""Rules about the order in which a process sends. Skips between operations are not looked for: others may send.

Source: jepsen.tests.kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.jepsen.facts import Facts
from checkers.jepsen.finding import Finding
from checkers.jepsen.history import ASSIGN, INFO, INVOKE, OK, SEND, SUBSCRIBE, TXN, Key, Op
from checkers.jepsen.positions import keep_named, neighbours


def between_sends(facts: Facts) -> Iterator[Finding]:
    """
    Yield each nonmonotonic-send.

    In one process, the first value that an `ok` or `info` operation sent to a key lies at or before the last value
    that the operation before sent to it. An assignment forgets the last sends to keys that it does not name.
    """
    sends: dict[int, dict[Key, Op]] = {}
    for op in facts.ops:
        if op.type not in (OK, INFO):
            continue
        if op.f in (SEND, TXN):
            if op.sends:
                mine = sends.setdefault(op.process, {})
                for key in op.sends:
                    if (before := mine.get(key)) is not None:
                        yield from _went_back(facts, key, before, op)
                    mine[key] = op
        elif op.f in (ASSIGN, SUBSCRIBE):
            keep_named(sends, op)


def within_sends(facts: Facts) -> Iterator[Finding]:
    """
    Yield each int-send-skip and int-nonmonotonic-send.

    Within one operation, whatever became of it, neighbouring sends to a key lie more than one index apart (skip),
    or the later lies at or before the earlier (nonmonotonic).
    """
    for op in facts.ops:
        if op.type != INVOKE:
            for key, pairs in op.sends.items():
                if len(pairs) > 1:
                    yield from neighbours(facts.log(key), key, op, op.sent(key), "send")


def _went_back(facts: Facts, key: Key, before: Op, op: Op) -> Iterator[Finding]:
    log = facts.log(key)
    last, first = before.sends[key][-1][1], op.sends[key][0][1]
    delta = log.delta(last, first)
    if delta < 1:
        yield Finding(
            kind="nonmonotonic-send",
            key=key,
            values=(last, first),
            offsets=(log.offsets[log.index[last]], log.offsets[log.index[first]]),
            ops=(before, op),
            delta=delta,
        )
