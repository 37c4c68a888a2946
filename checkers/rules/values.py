"""Values that no event has: words not listed in docs/history.md, negative offsets, unknown files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, TypeAlias

from checkers.facts.view import REASONS, at, traits
from harness.events.runner import POWER_TIERS
from harness.model import PartOps, Source

_Lack: TypeAlias = tuple[str, tuple[int, ...]]

# (source, f, field) -> the words that it may be, where docs/history.md lists them.
_WORDS: Final[Mapping[tuple[Source, str, str], frozenset[object]]] = {
    (Source.BROKER, "append", "role"): frozenset({"leader", "follower"}),
    (Source.BROKER, "truncate", "reason"): frozenset(REASONS),
    (Source.BROKER, "log-start", "reason"): frozenset(
        {"leader", "delete-records", "retention-time", "retention-size"}
    ),
    (Source.BROKER, "format", "to"): frozenset({1, 2}),
    (Source.BROKER, "checkpoint", "what"): frozenset({"epochs"}),
    (Source.BROKER, "printed", "what"): frozenset(
        {"truncate", "stuck", "fenced", "format", "exiting", "failed", "skip"}
    ),
    (Source.RUNNER, "setup", "power_tier"): frozenset(POWER_TIERS),
    (Source.RUNNER, "setup", "message_format"): frozenset({"with_epochs", "without_epochs", None}),
    (Source.FABRIC, "hold", "direction"): frozenset({"request", "answer"}),
    (Source.CLIENT, "produce", "codec"): frozenset({"none", "gzip", "snappy", "lz4", "zstd"}),
    (Source.LOG, "batch", "codec"): frozenset({"none", "gzip", "snappy", "lz4", "zstd"}),
    (Source.LOG, "batch", "magic"): frozenset({0, 1, 2}),
}

# The rules of a protocol and their values, as docs/rules.md lists them; other targets record other words.
_YES_NO: Final = frozenset({"yes", "no"})
RULES: Final[Mapping[str, frozenset[str]]] = {
    "epochs": _YES_NO,
    "truncate_to": frozenset({"high_watermark", "first_fetch", "one_answer", "epoch_walk"}),
    "unknown_epoch": frozenset({"next_start", "undefined"}),
    "undefined_query": frozenset({"log_end", "undefined"}),
    "below_first_epoch": frozenset({"undefined", "first_start"}),
    "epoch_assigned_on_lead": _YES_NO,
    "newest_epoch_wins": _YES_NO,
    "truncate_when_leader_unchanged": _YES_NO,
    "join_isr_past_epoch_start": _YES_NO,
    "drop_stale_answer": _YES_NO,
    "fence_truncation_query": _YES_NO,
    "fence_fetch": _YES_NO,
    "fence_high_watermark": _YES_NO,
    "fence_isr_join": _YES_NO,
    "fetch_sessions": frozenset({"none", "epoch_blind", "fenced"}),
    "forget_follower_ends": _YES_NO,
    "returning_leader": frozenset({"resumes", "awaits"}),
    "fence_broker_epoch": _YES_NO,
    "delete_past_high_watermark": _YES_NO,
    "clean_past_high_watermark": _YES_NO,
    "tombstone_horizon": _YES_NO,
    "start_inside_batch": _YES_NO,
    "topic_identity": _YES_NO,
    "idempotence": _YES_NO,
    "epochs_flushed": frozenset({"on_change", "with_segment"}),
    "epoch_cut": frozenset({"at_or_past", "past"}),
    "epoch_trim": frozenset({"folded", "up_to_start"}),
    "leo_after_cut": frozenset({"target", "physical"}),
}

# What recovery found; a word for each checkpoint that could not be read may follow, after `+`.
_FOUND: Final = re.compile(r"(clean|torn|zeros|length|magic|crc|disorder|below-log-start)(\+.+)?")
_TEXTS: Final[Mapping[tuple[Source, str], tuple[str, re.Pattern[str]]]] = {
    (Source.BROKER, "recovered"): ("reason", _FOUND),
}

# (source, f) -> the offsets and lengths in it, which are never negative.
_COUNTS: Final[Mapping[tuple[Source, str], Callable[[Any], Iterable[int]]]] = {
    (Source.BROKER, "leader"): attrgetter("log_end_offset", "high_watermark"),
    (Source.BROKER, "follower"): attrgetter("log_end_offset", "high_watermark"),
    (Source.BROKER, "truncate"): attrgetter("start", "to", "end"),
    (Source.BROKER, "log-start"): attrgetter("start", "to"),
    (Source.BROKER, "cleaned"): attrgetter("upto", "size"),
    (Source.BROKER, "recovered"): attrgetter("log_end_offset", "high_watermark", "cut_bytes"),
    (Source.BROKER, "append"): attrgetter("base", "end"),
    (Source.BROKER, "flush"): lambda flushed: (flushed.length,),
    (Source.BROKER, "checkpoint"): lambda written: (number for entry in written.content for number in entry),
    (Source.FABRIC, "fetch"): lambda fetch: (fetch.offset,),
}


def strange_values(ops: PartOps) -> Iterator[_Lack]:
    """Yield values that no event has: what they mean is not known, as with an unknown event."""
    for (source, f, name), known in _WORDS.items():
        of = attrgetter(name)
        for op in ops.by_key.get((source, f), ()):
            if of(op.event) not in known:
                expected = ", ".join(sorted(map(str, known)))
                text = f"{source} {f!r} at {at(op)} has {name} {of(op.event)!r}; expected {expected}"
                yield text, (op.index,)
    for op in ops.by_key.get((Source.RUNNER, "setup"), ()):
        for rule, value in getattr(op.event, "rules", {}).items():
            if value not in RULES.get(rule, (value,)):
                yield (
                    f"the set-up has rule {rule}={value}; expected {' or '.join(sorted(RULES[rule]))}",
                    (op.index,),
                )
    files = {(Source.BROKER, "flush"): ("path", re.compile(traits(ops).flushed_files or ".*"))}
    for (source, f), (name, pattern) in {**_TEXTS, **files}.items():
        of = attrgetter(name)
        for op in ops.by_key.get((source, f), ()):
            if pattern.fullmatch(of(op.event)) is None:
                yield f"{source} {f!r} at {at(op)} has {name} {of(op.event)!r}, which no broker has", (op.index,)
    for (source, f), numbers in _COUNTS.items():
        for op in ops.by_key.get((source, f), ()):
            if min(numbers(op.event), default=0) < 0:
                yield f"{source} {f!r} at {at(op)} has {min(numbers(op.event))}; expected 0 or more", (op.index,)
