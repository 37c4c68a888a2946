"""
The rules of the live check: what each sees, what it needs to be sure, and what the checkers then find.

Each is a case that no later op can excuse, so that it may end a schedule; docs/checkers.md is printed from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness.model import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRule:
    """
    One rule of the live check.

    Attributes:
        formula: the exact condition, in the notation of docs/checkers.md.
        words: what it means.
        found: the kinds of violations by which the checkers call such a run invalid.
        unseen: what it does not see, though the checkers may.
        source: the document that states it.
    """

    formula: str
    words: str
    found: tuple[Kind, ...]
    unseen: str
    source: str


TWICE: Final = "acknowledged-twice"
ANOTHER: Final = "read-as-another"
HIGH_WATERMARK: Final = "high-watermark-falls"
BACK: Final = "read-goes-back"
GONE: Final = "committed-is-gone"

_CALM: Final = "no power loss, deleted segment or lost disk since both were asked for, and unclean election is off"

RULES: Final[dict[str, LiveRule]] = {
    TWICE: LiveRule(
        formula=f"ok(produce r, acks=all, o), ok(produce s, acks=all, o), r != s; {_CALM}",
        words="Two records were acknowledged with acks=all at one offset, so one of them is lost, and no fault "
        "excuses it.",
        found=(Kind.LOST, Kind.FALSE_ACK),
        unseen="acks 0 and 1 promise nothing: a change of leader may lawfully end such a record.",
        source="KIP-101, Scenario 1; Kafka's acks",
    ),
    ANOTHER: LiveRule(
        formula=f"ok(produce r, acks=all, o) or ok(read R) with R[o] = r; ok(read S) with S[o] != r; {_CALM}",
        words="A read shows another record than was acknowledged with acks=all at its offset, or than another "
        "read showed there.",
        found=(Kind.WRONG_READ, Kind.LOST),
        unseen="A record that no client was told of, and a read that failed.",
        source="KIP-101, Motivation: consumers see what is later truncated",
    ),
    HIGH_WATERMARK: LiveRule(
        formula="high-watermark(n, to) or leader(n, to) while n leads: to < its high watermark before; or "
        "read(h), read(k), k < h, no election and no fault between",
        words="A leader's high watermark fell while it led, or a client was told a lower one than before "
        "although nothing may have changed it.",
        found=(Kind.WRONG_HIGH_WATERMARK,),
        unseen="Without broker events only what reads were told is compared. A new leader's may be lower.",
        source="Kafka Replication Design V3, F and G",
    ),
    BACK: LiveRule(
        formula="ok(read R, high watermark h): offsets of R that do not rise, or an offset of R at or above h; or "
        "an offset between R's first and h that R lacks, and ok(produce r, acks=all, o) or a read had it, "
        f"{_CALM}; or ok(produce r, acks=all, o) before R began, h <= o, no election and no fault since r was "
        "asked for",
        words="A read goes back, shows what is not committed, skips what was committed, or ends below it.",
        found=(Kind.WRONG_READ, Kind.LOST),
        unseen="What lies below the first record that the read shows: the log may begin there. Each read begins "
        "anew, so the positions of two reads are not compared.",
        source="Jepsen's checks of Kafka",
    ),
    GONE: LiveRule(
        formula="commit(r, o), n in the ISR and truncate(n) to o or below while the leader that it follows, if "
        "any, has r; or, in a simulated run, n joins the ISR without r, and its leader has it; r was appended "
        "since the last power loss, deleted segment or lost disk, and unclean election is off",
        words="A replica that may be elected truncated what a leader's high watermark had passed, or joined the "
        "ISR without it.",
        found=(Kind.NOT_REPLICATED, Kind.LOST, Kind.COMMITTED_LOST),
        unseen="Brokers that emit no events; a replica that joins without it on real machines, where events race.",
        source="hachikuji/kafka-specification, StrongIsr",
    ),
}
