"""
What each anomaly of Jepsen's checker is, in one sentence, when it makes a history invalid, and what ours are.

docs/checkers.md is printed from this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from harness.model import Kind


class Bad(StrEnum):
    """When an anomaly makes a history invalid."""

    ALWAYS = "always"
    UNLESS_SUBSCRIBE = "unless `subscribe`"
    WITHOUT_WW = "without ww edges only"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class JepsenAnomaly:
    """
    An anomaly of Jepsen's checker.

    Attributes:
        words: its definition, in one sentence.
        bad: when it makes a history invalid.
        kinds: the kinds of ours that come closest.
        ours: where ours differs, or why there is none.
    """

    words: str
    bad: Bad
    kinds: tuple[Kind, ...] = ()
    ours: str = ""


_SKIP: Final = "readers' rules: what a reader skips of the final log or of what was acknowledged"
_BACK: Final = "readers' rules: offsets that do not rise, within a read and from one read of a client to the next"
_NO_TRANSACTIONS: Final = "none: our clients send no transactions"

ANOMALIES: Final[dict[str, JepsenAnomaly]] = {
    "inconsistent-offsets": JepsenAnomaly(
        words="Two values were seen at one offset of a key.",
        bad=Bad.ALWAYS,
        kinds=(Kind.DIVERGED, Kind.LOST, Kind.WRONG_READ),
        ours="judged by replicas' logs too, not by clients alone",
    ),
    "duplicate": JepsenAnomaly(
        words="One value was seen at two offsets of a key.",
        bad=Bad.ALWAYS,
        kinds=(Kind.DUPLICATE,),
        ours="in final logs, unless the network delivered the request twice",
    ),
    "lost-write": JepsenAnomaly(
        words="No `ok` operation polled a value, although one polled an index at or above the value's last index, "
        "and the value's sender is `ok`, or is `info` and something that it sent was polled.",
        bad=Bad.ALWAYS,
        kinds=(Kind.LOST, Kind.COMMITTED_LOST),
        ours="judged by final logs; a loss that a fault permits is no violation",
    ),
    "unseen": JepsenAnomaly(
        words="No `ok` operation polled a value of an `ok` send, wherever it is in the log.",
        bad=Bad.ALWAYS,
        kinds=(Kind.LOST, Kind.WRONG_READ),
        ours="a record that no client reads is not lost, as long as the final logs hold it",
    ),
    "G1a": JepsenAnomaly(
        words="An `ok` operation polled a value whose sender is `fail`.",
        bad=Bad.ALWAYS,
        kinds=(Kind.PHANTOM,),
        ours="a record in a final log whose produce failed for certain",
    ),
    "precommitted-read": JepsenAnomaly(
        words="An operation, whatever became of it, polled a value which it sent itself.",
        bad=Bad.ALWAYS,
        kinds=(Kind.WRONG_READ,),
        ours="readers' rules: a read at or above the high watermark",
    ),
    "poll-skip": JepsenAnomaly(
        words="In one process, the first value polled of a key lies more than one index past the last value that "
        "its previous `ok` operation polled of it.",
        bad=Bad.UNLESS_SUBSCRIBE,
        kinds=(Kind.WRONG_READ,),
        ours=_SKIP,
    ),
    "nonmonotonic-poll": JepsenAnomaly(
        words="As poll-skip, but the first value lies at or before that last one.",
        bad=Bad.UNLESS_SUBSCRIBE,
        kinds=(Kind.WRONG_READ,),
        ours=_BACK,
    ),
    "int-poll-skip": JepsenAnomaly(
        words="Within one operation, whatever became of it, neighbours among the values polled of a key lie more "
        "than one index apart, and its `rebalance-log` does not name the key.",
        bad=Bad.ALWAYS,
        kinds=(Kind.WRONG_READ,),
        ours=_SKIP,
    ),
    "int-nonmonotonic-poll": JepsenAnomaly(
        words="As int-poll-skip, but the later lies at or before the earlier.",
        bad=Bad.ALWAYS,
        kinds=(Kind.WRONG_READ,),
        ours=_BACK,
    ),
    "nonmonotonic-send": JepsenAnomaly(
        words="In one process, the first value that an `ok` or `info` operation sent to a key lies at or before "
        "the last value that the one before it sent there.",
        bad=Bad.ALWAYS,
        kinds=(Kind.REORDERED,),
        ours="also across processes, where one send was acknowledged before another began",
    ),
    "int-nonmonotonic-send": JepsenAnomaly(
        words="Within one operation, whatever became of it, a send to a key lies at or before the send before it.",
        bad=Bad.ALWAYS,
        kinds=(Kind.REORDERED, Kind.DISORDER),
    ),
    "int-send-skip": JepsenAnomaly(
        words="Within one operation, neighbouring sends to a key lie more than one index apart.",
        bad=Bad.NEVER,
        ours="none: other clients may send in between",
    ),
    "G0": JepsenAnomaly(
        words="A cycle of ww edges: each sender's value is followed, in the log of some key, by the next one's.",
        bad=Bad.NEVER,
        ours=_NO_TRANSACTIONS,
    ),
    "PL-1-cycle-exists": JepsenAnomaly(words="A component has a G0.", bad=Bad.NEVER, ours=_NO_TRANSACTIONS),
    "G0-realtime": JepsenAnomaly(
        words="A cycle of ww and real-time edges: a value lies above one that was sent after it was acknowledged.",
        bad=Bad.NEVER,
        kinds=(Kind.REORDERED,),
    ),
    "strong-PL-1-cycle-exists": JepsenAnomaly(
        words="A component has a cycle of ww and real-time edges, and no G0.",
        bad=Bad.NEVER,
        kinds=(Kind.REORDERED,),
    ),
    "G1c": JepsenAnomaly(
        words="A cycle of ww and wr edges with a wr at least: operations that read from each other in a circle.",
        bad=Bad.WITHOUT_WW,
        ours=_NO_TRANSACTIONS,
    ),
    "PL-2-cycle-exists": JepsenAnomaly(
        words="A component has a G1c, and no G0.", bad=Bad.WITHOUT_WW, ours=_NO_TRANSACTIONS
    ),
    "G1c-realtime": JepsenAnomaly(
        words="A cycle of ww, wr and real-time edges, such as a poll that ended before the send began.",
        bad=Bad.WITHOUT_WW,
        kinds=(Kind.PHANTOM, Kind.WRONG_READ),
        ours="a read of a record before it was sent",
    ),
    "strong-PL-2-cycle-exists": JepsenAnomaly(
        words="A component has a cycle of ww, wr and real-time edges, and none of the others.",
        bad=Bad.WITHOUT_WW,
        kinds=(Kind.PHANTOM, Kind.WRONG_READ),
    ),
    "empty-transaction-graph": JepsenAnomaly(
        words="No operation depends on another: none polls what another sent, and none follows an `ok` one.",
        bad=Bad.ALWAYS,
        kinds=(Kind.VACUOUS,),
        ours="a run that proves nothing is unknown, not invalid",
    ),
}

# What Jepsen does that its own descriptions do not say, or that surprises.
QUIRKS: Final = (
    "A key's *version order* is its log without holes. Where an offset has several values, Jepsen keeps the first "
    "by Clojure's hashes; where a value has several offsets, its last index counts. So once a key has "
    "`inconsistent-offsets` or `duplicate`, its skips, nonmonotonic findings and cycles may be artefacts.",
    "Polls are believed whatever became of their operation. A send is believed if its operation is `ok`, or "
    "`info` and an `ok` operation polled something that it sent.",
    "`unseen` also counts what the last `ok` operation polled, of a key that no `ok` operation sent to and none "
    "polled before.",
    "Assigning the same key again keeps the position of its process; assigning without it forgets the position, "
    "and the last send to it too.",
    'An empty list in a poll (`{"0": []}`) counts as having read the key, and forgets the position.',
    "A value without a known index is taken to follow directly.",
    "Of a component only the weakest levels broken are named. So with ww edges, a G0, which is allowed, hides a "
    "G1c, and a history may be valid with ww edges and invalid without.",
    "There are no rw edges. The docstring of Jepsen's checker speaks of them; its code has them commented out.",
    "Elle gives up on a component after a second, and reports `cycle-search-timeout`. This checker needs no "
    "limit, and never reports it.",
)

# What makes Jepsen's checker throw, so that it has no verdict.
CRASHES: Final[dict[str, str]] = {
    "no-writer-of-value": "A value was polled, and no send of it has a completion.",
    "no-known-offset": "An `ok` operation polled a key, and of nothing that was polled of it an offset is known.",
    "double-invoke": "A process invokes an operation while another of its own is running.",
    "double-complete": "A process completes an operation while none of its own is running.",
    "mixed-values": "Values that Jepsen sorts are integers and strings: those at one offset, those unseen of one "
    "key, or the keys that have unseen values.",
}
