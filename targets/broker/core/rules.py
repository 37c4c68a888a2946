"""
Every decision of the replication protocol that a release of Kafka changed, as one frozen value.

A protocol is a named set of rules, a mutant is a protocol with one rule changed (`with_rule`). What KIP-101
changed is the difference between `hw` and `kip101` below, and nowhere else: the core looks rules up and never
asks which protocol it runs.
Source:  KIP-98, KIP-101, KIP-227, KIP-279, KIP-320, KIP-380, KIP-516, KIP-534, KIP-570; Kafka Replication Design
         V3; KAFKA-4545, 6361, 6857, 6880, 7128, 7164, 7415, 7786, 9338, 13194.
Length:  one field for each rule, with what docs/rules.md prints of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import Any, Final, get_type_hints

from targets.broker.core.log_port import LeoAfterCut


class TruncateTo(StrEnum):
    """Where a new follower truncates its log."""

    HIGH_WATERMARK = "high_watermark"
    FIRST_FETCH = "first_fetch"
    ONE_ANSWER = "one_answer"
    EPOCH_WALK = "epoch_walk"


class UnknownEpoch(StrEnum):
    """What a leader answers for an epoch that it does not know, between two that it does."""

    NEXT_START = "next_start"
    UNDEFINED = "undefined"


class UndefinedQuery(StrEnum):
    """What a leader with an empty epoch cache answers to a follower that knows no epoch."""

    LOG_END = "log_end"
    UNDEFINED = "undefined"


class BelowFirst(StrEnum):
    """What a leader answers for an epoch before its first one."""

    UNDEFINED = "undefined"
    FIRST_START = "first_start"


class ReturningLeader(StrEnum):
    """What a starting broker does if ZooKeeper names it as leader."""

    RESUMES = "resumes"
    AWAITS = "awaits"


class EpochCut(StrEnum):
    """Which epochs are removed when a log is truncated (KIP-101 4.4) or found shorter after a crash."""

    AT_OR_PAST = "at_or_past"
    PAST = "past"


class EpochTrim(StrEnum):
    """Which epochs are removed when the oldest records of a log are deleted."""

    FOLDED = "folded"
    UP_TO_START = "up_to_start"


class EpochsFlushed(StrEnum):
    """When the epoch checkpoint becomes durable: KIP-101 step 3, or its footnote."""

    ON_CHANGE = "on_change"
    WITH_SEGMENT = "with_segment"


class FetchSessions(StrEnum):
    """What a fetch and its answer name: all partitions, or those with something new (KIP-227)."""

    NONE = "none"
    EPOCH_BLIND = "epoch_blind"
    FENCED = "fenced"


def _doc(doc: str, *, source: str, **values: str) -> dict[str, Any]:
    """Return a field's metadata: what the rule decides, its source, and what each of its values means."""
    return {"doc": doc, "source": source, "values": values}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """
    One value for each rule; docs/rules.md is printed from these fields and their metadata.

    A rule that a protocol cannot reach (an epoch rule under `hw`) has the value of the oldest release.
    """

    epochs: bool = field(
        metadata=_doc(
            "Whether batches carry the leader epoch, and a checkpoint keeps (epoch, start offset).",
            source="KIP-101, steps 1 to 3",
            no="batches have epoch -1 and no epoch checkpoint is written",
            yes="a leader stamps its epoch on every batch",
        )
    )
    truncate_to: TruncateTo = field(
        metadata=_doc(
            "Where a new follower truncates its log.",
            source="Kafka Replication Design V3, C; KIP-101, steps 4.2 to 4.5 and Rejected Alternatives; KIP-279",
            high_watermark="at its own high watermark, without asking (V3, becomeFollower)",
            first_fetch="at its own high watermark, but only when its first fetch returns (rejected by KIP-101)",
            one_answer="where its leader says that its last epoch ends",
            epoch_walk="where the last epoch ends that both know: it asks again, epoch by epoch (KIP-279)",
        )
    )
    unknown_epoch: UnknownEpoch = field(
        metadata=_doc(
            "What a leader answers for an epoch that it does not know, between two that it does.",
            source="KIP-101, step 4.3; KAFKA-6361",
            next_start="the start of the next epoch that it knows",
            undefined="that it cannot say, so that the follower falls back to its high watermark (KAFKA-6361's "
            "first suggestion, not taken)",
        )
    )
    undefined_query: UndefinedQuery = field(
        metadata=_doc(
            "What a leader with an empty epoch cache answers to a follower that knows no epoch.",
            source="KAFKA-6857",
            log_end="its log end, so that the follower keeps a tail that may diverge (0.11 to 1.1.1)",
            undefined="that it cannot say, so that the follower falls back to its high watermark",
        )
    )
    below_first_epoch: BelowFirst = field(
        metadata=_doc(
            "What a leader answers for an epoch before its first one.",
            source="KAFKA-7415",
            undefined="that it cannot say (to 2.0.0)",
            first_start="the start of its first epoch",
        )
    )
    epoch_assigned_on_lead: bool = field(
        metadata=_doc(
            "When a new leader records its epoch.",
            source="KIP-101, step 3; KAFKA-7415",
            no="with the first record that it appends, as shipped to 2.0.0",
            yes="on becoming leader, as the KIP says",
        )
    )
    newest_epoch_wins: bool = field(
        metadata=_doc(
            "Which epoch entry wins when a new one contradicts those before it.",
            source="Kafka's LeaderEpochFileCache, release by release",
            no="the old ones; the new one is ignored (up to 2.0.0)",
            yes="the new one; the entries that it contradicts are removed",
        )
    )
    truncate_when_leader_unchanged: bool = field(
        metadata=_doc(
            "Whether a follower that gets a newer epoch of the same leader asks and truncates again.",
            source="Kafka Replication Design V3, C 2.2; KAFKA-7164",
            no="it continues to fetch (up to 2.0.0)",
            yes="it does: that leader may itself have truncated meanwhile",
        )
    )
    join_isr_past_epoch_start: bool = field(
        metadata=_doc(
            "What a follower must have reached to join the ISR.",
            source="KAFKA-7128",
            no="the high watermark, which at a new leader may lag behind what is committed (to 2.0.0)",
            yes="the high watermark and the start of the leader's epoch",
        )
    )
    drop_stale_answer: bool = field(
        metadata=_doc(
            "What a follower does with an answer to a truncation question of an older epoch.",
            source="KAFKA-7786",
            no="it truncates to it",
            yes="it drops it and asks again",
        )
    )
    fence_truncation_query: bool = field(
        metadata=_doc(
            "Whether a follower's question carries its epoch, and only a leader of that epoch answers.",
            source="KIP-320; OffsetForLeaderEpoch from v2 on",
            no="a leader of any epoch answers, and may itself truncate afterwards (up to 2.0)",
            yes="a leader of an older or newer epoch refuses",
        )
    )
    fence_fetch: bool = field(
        metadata=_doc(
            "Whether a follower's fetch carries its epoch, and only a leader of that epoch serves it.",
            source="KIP-320; KAFKA-6880; Fetch from v9 on",
            no="a follower that missed elections continues to fetch (up to 2.0)",
            yes="a leader of an older or newer epoch refuses",
        )
    )
    fence_high_watermark: bool = field(
        metadata=_doc(
            "Whether a fetch must have passed the fence to move the high watermark.",
            source="KIP-320; KAFKA-8400",
            no="a fetch from another epoch counts as an acknowledgement",
            yes="it does not",
        )
    )
    fence_isr_join: bool = field(
        metadata=_doc(
            "Whether a fetch must have passed the fence to let its follower into the ISR.",
            source="KIP-320; KAFKA-8400",
            no="a follower in another epoch may join",
            yes="it may not",
        )
    )
    fetch_sessions: FetchSessions = field(
        metadata=_doc(
            "What a fetch and its answer name: all partitions, or those with something new.",
            source="KIP-227; KAFKA-9338",
            none="all of them, every time (to 1.0)",
            epoch_blind="in a session, what is new; a leader checks the epochs of the fetch that begins it, and "
            "keeps none of them (1.1 to 2.4.0)",
            fenced="in a session, what is new; a leader keeps each partition's epoch, and checks it every time",
        )
    )
    forget_follower_ends: bool = field(
        metadata=_doc(
            "What a new leader knows of its followers' log ends.",
            source="Kafka Replication Design V3, which leaves it open",
            no="the ends from its last leadership, which may commit records that no follower has",
            yes="nothing, until they fetch",
        )
    )
    returning_leader: ReturningLeader = field(
        metadata=_doc(
            "What a starting broker does if ZooKeeper names it as leader.",
            source="Kafka Replication Design V3, E.3.2; KIP-101, returning leaders",
            resumes="it leads again in its old epoch",
            awaits="it waits for a newer epoch, which the controller assigns after every new registration",
        )
    )
    fence_broker_epoch: bool = field(
        metadata=_doc(
            "Whether the controller distinguishes a registration from the one that it replaced.",
            source="KAFKA-1120; KIP-380",
            no="it compares broker ids alone: a bounce between two of its readings is unseen",
            yes="it compares registrations: a replaced one is a broker that failed and came back; and a broker "
            "refuses commands to any other registration than its own, an older or a later one",
        )
    )
    delete_past_high_watermark: bool = field(
        metadata=_doc(
            "Whether retention deletes records above the high watermark.",
            source="KAFKA-5634",
            no="a file stays until all of it is committed",
            yes="it deletes whole files by age and size alone, so that what was never replicated may be gone "
            "before a follower could copy it (up to 0.11.0.0)",
        )
    )
    clean_past_high_watermark: bool = field(
        metadata=_doc(
            "Whether compaction lets a record take the place of an older one before it is committed.",
            source="KAFKA-13194",
            no="files are compacted once all of them is committed",
            yes="any closed file is, so that a record that is truncated later may have removed a committed one "
            "(up to 3.0.0)",
        )
    )
    tombstone_horizon: bool = field(
        metadata=_doc(
            "From when on the delay counts after which compaction removes a tombstone.",
            source="KIP-534; KAFKA-4545, KAFKA-8522; from 3.1 on",
            no="from the time of the tombstone's file, until that of the newest file that is clean: a reader may "
            "have seen an older record just before, and miss the tombstone",
            yes="from the first cleaning that keeps it, which writes into its batch when the delay is over",
        )
    )
    start_inside_batch: bool = field(
        metadata=_doc(
            "What a follower that lacks all of its leader's log does when that starts inside a batch.",
            source="KAFKA-6975; DeleteRecords of KIP-107",
            no="it is stuck: the batch that it is sent begins before its own log ends (to 1.1.1)",
            yes="its log begins where that batch does",
        )
    )
    topic_identity: bool = field(
        metadata=_doc(
            "Whether a topic that was deleted and created again is distinguished from its predecessor.",
            source="Kafka Replication Design V3, discussion 5; KIP-516, KIP-570",
            no="topics are compared by name: what was meant for the old one counts for the new one",
            yes="by an id that states, commands, questions and logs carry: a log of an older topic is deleted, "
            "and what names an older topic is refused",
        )
    )
    idempotence: bool = field(
        metadata=_doc(
            "Whether a leader tells a batch that its producer sends again from a new one.",
            source="KIP-98, KIP-360; from 0.11 on",
            no="a producer's id and sequences mean nothing: what is sent again is appended again",
            yes="a batch that is in the log is acknowledged and not appended, and one out of sequence is refused",
        )
    )
    epochs_flushed: EpochsFlushed = field(
        metadata=_doc(
            "When the epoch checkpoint becomes durable.",
            source="KIP-101, step 3 and its footnote",
            on_change="with every change of it",
            with_segment="with the log, when that is flushed; recovery rebuilds missing entries",
        )
    )
    epoch_cut: EpochCut = field(
        metadata=_doc(
            "Which epochs are removed when a log is truncated, or shorter after an unclean shutdown.",
            source="KIP-101, step 4.4 and Unclean Shutdown, against Kafka's code",
            at_or_past="those that start at the new end or later (Kafka's code)",
            past="those that start after it; after an answer the last one is reset to it (the KIP's letter)",
        )
    )
    epoch_trim: EpochTrim = field(
        metadata=_doc(
            "Which epochs are removed when the oldest records of a log are deleted.",
            source="KIP-101, Maintaining the LeaderEpochSequenceFile, against Kafka's code",
            folded="all that start at the log's new start or before it become one, the last of them, which starts "
            "there (Kafka's code)",
            up_to_start="all of them (the KIP's letter): the first records that are left have no epoch, and where "
            "nothing else is known, no follower can be told where it ends",
        )
    )
    leo_after_cut: LeoAfterCut = field(
        metadata=_doc(
            "Where a log ends after truncation inside a batch, which removes the whole batch.",
            source="KAFKA-6361",
            target="at the requested offset, as in Kafka: the next append leaves a hole",
            physical="where its last batch ends",
        )
    )


_HW: Final = Rules(
    epochs=False,
    truncate_to=TruncateTo.HIGH_WATERMARK,
    unknown_epoch=UnknownEpoch.NEXT_START,
    undefined_query=UndefinedQuery.LOG_END,
    below_first_epoch=BelowFirst.UNDEFINED,
    epoch_assigned_on_lead=False,
    newest_epoch_wins=False,
    truncate_when_leader_unchanged=False,
    join_isr_past_epoch_start=False,
    drop_stale_answer=False,
    fence_truncation_query=False,
    fence_fetch=False,
    fence_high_watermark=False,
    fence_isr_join=False,
    fetch_sessions=FetchSessions.NONE,
    forget_follower_ends=True,
    returning_leader=ReturningLeader.RESUMES,
    fence_broker_epoch=False,
    delete_past_high_watermark=True,
    clean_past_high_watermark=True,
    tombstone_horizon=False,
    start_inside_batch=False,
    topic_identity=False,
    idempotence=False,
    epochs_flushed=EpochsFlushed.ON_CHANGE,
    epoch_cut=EpochCut.AT_OR_PAST,
    epoch_trim=EpochTrim.FOLDED,
    leo_after_cut=LeoAfterCut.TARGET,
)
_KIP101: Final = replace(
    _HW,
    epochs=True,
    truncate_to=TruncateTo.ONE_ANSWER,
    returning_leader=ReturningLeader.AWAITS,
    delete_past_high_watermark=False,  # from 0.11.0.1 on
    idempotence=True,
)
_KIP279: Final = replace(
    _KIP101,
    truncate_to=TruncateTo.EPOCH_WALK,
    undefined_query=UndefinedQuery.UNDEFINED,
    drop_stale_answer=True,
    start_inside_batch=True,  # also in 1.0.3 and 1.1.2
    fetch_sessions=FetchSessions.EPOCH_BLIND,  # from 1.1 on
)
# With the fixes of KAFKA-7128, 7164 and 7415, and without fencing.
_KIP279_FIXED: Final = replace(
    _KIP279,
    below_first_epoch=BelowFirst.FIRST_START,
    epoch_assigned_on_lead=True,
    newest_epoch_wins=True,
    truncate_when_leader_unchanged=True,
    join_isr_past_epoch_start=True,
)
_KIP320: Final = replace(
    _KIP279_FIXED,
    fence_truncation_query=True,
    fence_fetch=True,
    fence_high_watermark=True,
    fence_isr_join=True,
)

# In the order of the ladder: the order of every table of results.
PROTOCOLS: Final[dict[str, Rules]] = {
    "hw": _HW,  # 0.8 to 0.10.2
    "kip101": _KIP101,  # as 0.11.0 to 1.1.1 shipped it
    "kip101-text": replace(  # to the letter
        _KIP101, epoch_assigned_on_lead=True, epoch_cut=EpochCut.PAST, epoch_trim=EpochTrim.UP_TO_START
    ),
    "kip279": _KIP279,  # as 2.0.0 shipped it
    "kip279-2.0.1": _KIP279_FIXED,
    "kip320": _KIP320,  # 2.1
    # From 2.2 on; sessions with epochs from 2.3.2 on, ids from 2.8 on, compaction as from 3.1 on.
    "kip380": replace(
        _KIP320,
        fence_broker_epoch=True,
        topic_identity=True,
        fetch_sessions=FetchSessions.FENCED,
        clean_past_high_watermark=False,
        tombstone_horizon=True,
    ),
}


def with_rule(rules: Rules, text: str) -> Rules:
    """
    Return the rules with one of them changed: `with_rule(kip101, "truncate_to=high_watermark")`.

    Raises:
        ValueError: names the rule, its values and the value that was passed.
    """
    name, _, value = text.partition("=")
    kinds = _kinds()
    if name not in kinds:
        raise ValueError(
            f"rule {name!r}: no such rule; expected one of {', '.join(sorted(kinds))}{_near(name, kinds)}"
        )
    return replace(rules, **{name: _value(name, kinds[name], value)})


@cache
def _kinds() -> Mapping[str, type[Any]]:
    """Return the type of each rule, by name."""
    return get_type_hints(Rules)


def _value(name: str, kind: type[Any], text: str) -> Any:
    allowed = values_of(kind)
    if text not in allowed:
        raise ValueError(f"rule {name}={text!r}: expected one of {', '.join(allowed)}{_near(text, allowed)}")
    return text == "yes" if kind is bool else kind(text)


def _near(word: str, words: Iterable[str]) -> str:
    near = get_close_matches(word, words, n=1)
    return f". Did you mean {near[0]!r}?" if near else ""


def values_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the values of a rule of this type, as written on a command line."""
    return ("no", "yes") if kind is bool else tuple(member.value for member in kind)


def as_text(rules: Rules) -> dict[str, str]:
    """Return every rule and its value as written on a command line, in the order of the fields."""
    found: dict[str, str] = {}
    for rule in fields(rules):
        value = getattr(rules, rule.name)
        found[rule.name] = ("yes" if value else "no") if isinstance(value, bool) else str(value.value)
    return found


def from_text(values: Mapping[str, str]) -> Rules:
    """Parse the result of as_text; raise ValueError if a rule is missing, unknown or has no such value."""
    kinds = _kinds()
    if set(values) != set(kinds):
        raise ValueError(f"rules {sorted(values)}: expected exactly {sorted(kinds)}")
    return Rules(**{name: _value(name, kinds[name], text) for name, text in values.items()})
