"""
The window of an upgrade from a version without epochs, in which KIP-101 allows the losses of that version.

A follower falls back to its high watermark as long as it or its leader is such a version, and as long as what it
cuts has no epoch, since such a version wrote it: the high watermark is late, so that a member of the ISR lacks for a
moment what is committed. A run has this window if its own protocol has epochs, and nodes were set back: where the
version without epochs is itself what is tested, nothing is allowed to it.
Source:  KIP-101, step 4.3, and Compatibility, Deprecation, and Migration Plan; KAFKA-7897.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from checkers.facts.fact import fact
from checkers.facts.replica_log import Change
from checkers.facts.view import rules_of, run_setup_of
from harness.events import Append, Installed, Truncate
from harness.model import Op, events_of

_RULE: Final = "epochs"
# How brokers say that they fell back to the high watermark.
_FALLEN_BACK: Final = frozenset({"high-watermark", "no-epoch-information"})


@fact
def has_window(ops: Sequence[Op]) -> bool:
    """Return True if the run's own protocol has epochs, and nodes were set back to one that has none."""
    setup = run_setup_of(ops)
    own = setup is not None and setup.rules.get(_RULE) == "yes"
    return own and any(each.rules.get(_RULE) == "no" for _, each in events_of(ops, Installed))


def in_window(ops: Sequence[Op], change: Change, origin: int) -> bool:
    """
    Return True if a follower may have cut a record away, though nothing else took it.

    Args:
        change: the cut.
        origin: the index of the op with which a leader appended the record.
    """
    event, index = change.op.event, change.op.index
    if not isinstance(event, Truncate) or event.reason not in _FALLEN_BACK or not has_window(ops):
        return False
    speakers = [(change.node, index), *([(change.leader, index)] if change.leader else ())]
    if writer := _writers(ops).get(origin):
        speakers.append((writer, origin))
    return any(rules_of(ops, node, at).get(_RULE) == "no" for node, at in speakers)


@fact
def _writers(ops: Sequence[Op]) -> Mapping[int, str]:
    return {op.index: op.process for op, append in events_of(ops, Append) if append.role == "leader"}
