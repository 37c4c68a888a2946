"""
Facts that rules look up in a partition's ops: names, final logs, final leader; and the wording of sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from checkers.facts.fact import fact
from harness.events import (
    AlterTopic,
    Assigned,
    Batch,
    Follower,
    Installed,
    Leader,
    MetadataState,
    Setup,
    Snapshot,
    Started,
)
from harness.model import Anomaly, HistoryError, Kind, Op, Source, events_of
from harness.target.settings import FORMAT_SETTING
from harness.target.traits import Traits, traits_of

NO_KEY: Final = ("", -1)
# The setting of a run whose batches need have no epochs.
WITHOUT_EPOCHS: Final = "without_epochs"

# How a sentence says why a replica truncated its log.
REASONS: Final[dict[str, str]] = {
    "high-watermark": "its high watermark",
    "epoch-answer": "the leader's answer for its epoch",
    "no-epoch-information": "its high watermark, as the leader had no epoch information",
    "out-of-range": "the leader's log end, as its fetch was out of range",
    "full": "nothing, to copy the leader's log anew",
    "corrupt": "a damaged batch, to copy it again",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a final log, with the op of the batch that holds it."""

    offset: int
    digest: str
    value: str
    epoch: int
    index: int


@dataclass(frozen=True, kw_only=True)  # no slots: cached_property stores its value in the instance's dictionary
class FinalLog:
    """
    One replica's log, read from its own files at the end of the run.

    Attributes:
        index: the index of the snapshot's op.
        batches: the batches in the order of the files, each with the index of its op.
    """

    node: str
    index: int
    snapshot: Snapshot
    batches: tuple[tuple[int, Batch], ...]

    @property
    def start(self) -> int:
        """The first offset."""
        return self.snapshot.log_start_offset

    @property
    def end(self) -> int:
        """The offset after the last one."""
        return self.snapshot.log_end_offset

    @cached_property
    def records(self) -> Mapping[int, Record]:
        """The record at each offset; the last one if a corrupt log has two."""
        return {
            offset: Record(offset=offset, digest=digest, value=str(value), epoch=batch.epoch, index=index)
            for index, batch in self.batches
            for offset, digest, value in batch.records
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """The last known leader; node is None if the partition has no leader."""

    node: str | None
    epoch: int
    index: int


@fact
def key_of(ops: Sequence[Op]) -> tuple[str, int]:
    """Return the (topic, partition) of the ops, else of the set-up, else ("", -1)."""
    try:
        setup = run_setup_of(ops)
    except HistoryError:
        setup = None  # checker `whole` names it
    return _own_place(ops) or ((setup.topic, setup.partition) if setup else NO_KEY)


@fact
def _own_place(ops: Sequence[Op]) -> tuple[str, int] | None:
    about = (op.place for op in ops if op.source not in (Source.RUNNER, Source.NEMESIS))
    return next((place for place in about if place is not None), None)


@fact
def run_setup_of(ops: Sequence[Op]) -> Setup | None:
    """Return the run's set-up as recorded, None if the history has none."""
    return next((setup for _, setup in events_of(ops, Setup)), None)


@fact
def changes_format(ops: Sequence[Op]) -> bool:
    """Return True if a client has asked for another message format of a topic."""
    return any(event.setting == FORMAT_SETTING for _, event in events_of(ops, AlterTopic))


@fact
def traits(ops: Sequence[Op]) -> Traits:
    """Return what is true of the system that was played, as the set-up has it; the defaults without a set-up."""
    setup = run_setup_of(ops)
    return Traits() if setup is None else traits_of(setup)


@fact
def noun(ops: Sequence[Op]) -> str:
    """Return how sentences name what holds the metadata."""
    return traits(ops).metadata


@fact
def setup_of(ops: Sequence[Op]) -> Setup | None:
    """
    Return the set-up of the ops' partition, with its own replicas; None if the history has none.

    Of the rules, those that all nodes had all the time: nothing is certain by a rule that an upgrade changed.
    Where a client has changed a topic's message format, that without epochs: then nothing is certain by epochs.
    """
    setup, place = _agreed_setup_of(ops), _own_place(ops)
    if setup is None or place is None or not (setup.further or setup.churned):
        return setup
    topic, partition = place
    if _comes_and_goes(setup, topic, partition):
        # Each generation has replicas of its own.
        nodes = tuple(setup.nodes)
        return replace(setup, topic=topic, partition=partition, partitions=1, replicas=nodes, records={})
    replicas = (setup.further or {}).get(f"{topic}-{partition}")
    if replicas is None:
        return setup
    # No group of records of the schedule is sent to it.
    return replace(setup, topic=topic, partition=partition, partitions=1, replicas=replicas, records={})


@fact
def _agreed_setup_of(ops: Sequence[Op]) -> Setup | None:
    setup = run_setup_of(ops)
    later = [installed.rules for _, installed in events_of(ops, Installed)]
    if setup is not None and changes_format(ops):
        setup = replace(setup, message_format=WITHOUT_EPOCHS)
    if setup is None or not later:
        return setup
    agreed = {rule: value for rule, value in setup.rules.items() if all(each.get(rule) == value for each in later)}
    return replace(setup, rules=agreed)


@fact
def changed_rules(ops: Sequence[Op]) -> frozenset[str]:
    """Return the rules that a node followed in another way than the run's, for as long as an upgrade lasted."""
    setup = run_setup_of(ops)
    own = {} if setup is None else setup.rules
    return frozenset(
        rule
        for _, each in events_of(ops, Installed)
        for rule, value in each.rules.items()
        if own.get(rule) != value
    )


def _by_then(ops: Sequence[Op], node: str, index: int) -> Installed | Setup | None:
    theirs = [each for op, each in events_of(ops, Installed) if each.node == node and op.index < index]
    return theirs[-1] if theirs else run_setup_of(ops)


def rules_of(ops: Sequence[Op], node: str, index: int) -> Mapping[str, str]:
    """Return the rules that a node follows by then: those installed on it last, else those of the set-up."""
    found = _by_then(ops, node, index)
    return {} if found is None else found.rules


def protocol_of(ops: Sequence[Op], node: str, index: int) -> str:
    """Return the protocol that a node follows by then, "" if the history has no set-up."""
    found = _by_then(ops, node, index)
    return "" if found is None else found.protocol


@fact
def ever_assigned(ops: Sequence[Op]) -> frozenset[str]:
    """Return the nodes that were replicas at any time: those of the set-up, and those it was moved to."""
    setup = setup_of(ops)
    later = (node for _, event in events_of(ops, Assigned) for node in event.replicas)
    return frozenset((*(setup.replicas if setup is not None else ()), *map(str, later)))


def moved_away(ops: Sequence[Op], node: str, index: int) -> bool:
    """
    Return True if the partition was on other nodes by then; the watch may show it a little later.

    It may be wanted there again by then: what tells a node to delete its replica may be late, and counts until the
    node has been told anything newer.
    """
    moves = [*events_of(ops, Assigned)]
    words = (*events_of(ops, Leader), *events_of(ops, Follower))
    told = max((op.index for op, _ in words if op.process == node and op.index < index), default=-1)
    before = [event for op, event in moves if op.index < index][-1:]
    since = [event for op, event in moves if told < op.index < index]
    after = [event for op, event in moves if op.index > index][:1]
    return any(node not in event.replicas for event in (*before, *since, *after))


def names_place(setup: Setup, topic: str, partition: int) -> bool:
    """Return True if the run has this partition, by its set-up as recorded."""
    own = topic == setup.topic and 0 <= partition - setup.partition < setup.partitions
    return own or f"{topic}-{partition}" in (setup.further or {}) or topic in (setup.churned or ())


@fact
def is_churned(ops: Sequence[Op]) -> bool:
    """Return True if the ops are about what is deleted or removed, and comes again: a topic, or a partition."""
    try:
        setup = run_setup_of(ops)
    except HistoryError:
        return False  # checker `whole` names it
    place = _own_place(ops)
    return setup is not None and place is not None and _comes_and_goes(setup, *place)


def _comes_and_goes(setup: Setup, topic: str, partition: int) -> bool:
    return topic in (setup.churned or ()) or is_removed(setup, topic, partition)


def is_removed(setup: Setup, topic: str, partition: int) -> bool:
    """Return True if an operator removes this partition of a topic that stays."""
    return f"{topic}-{partition}" in (setup.removed or ())


def is_further(ops: Sequence[Op]) -> bool:
    """Return True if the ops are about another partition than the one that the schedule is about."""
    setup, (topic, partition) = run_setup_of(ops), key_of(ops)
    return setup is not None and f"{topic}-{partition}" in (setup.further or {})


def newest_counts(ops: Sequence[Op]) -> bool:
    """
    Return True if the last epoch of a checkpoint is the one in which its broker leads or appends.

    Where older entries win against a new one that contradicts them, it need not be; nor where a broker followed a
    protocol without epochs for a while.
    """
    setup = setup_of(ops)
    return setup is not None and "epochs" in setup.rules and newest_wins(setup.rules)


def newest_wins(rules: Mapping[str, str]) -> bool:
    """Return True if a new entry of a checkpoint wins against older ones that contradict it, by these rules."""
    return rules.get("newest_epoch_wins") == "yes" or rules.get("epoch_assigned_on_lead") == "no"


@fact
def names_of(ops: Sequence[Op]) -> dict[int, str]:
    """Return each broker id's node name."""
    setup = setup_of(ops)
    names = {broker: name for name, broker in setup.nodes.items()} if setup else {}
    return names | {started.id: op.process for op, started in events_of(ops, Started)}


@fact
def final_logs(ops: Sequence[Op]) -> dict[str, FinalLog]:
    """
    Return each node's log by node name, from its last successful snapshot and the batches after it.

    It is the log that the node serves; what else it stores is in `other_stores`.

    Raises:
        HistoryError: a batch comes before any snapshot of its node.
    """
    snapshots: dict[str, tuple[int, Snapshot]] = {}
    batches: dict[str, list[tuple[int, Batch]]] = {}
    for op in ops:
        if op.source is not Source.LOG:
            continue
        match op.event:
            case Snapshot() as snapshot:
                snapshots[op.process], batches[op.process] = (op.index, snapshot), []
            case Batch() as batch:
                if op.process not in batches:
                    raise HistoryError(
                        f"op {op.index}: a batch of {op.process} before its snapshot; expected after"
                    )
                if not batch.store:
                    batches[op.process].append((op.index, batch))
    return {
        node: FinalLog(node=node, index=index, snapshot=snapshot, batches=tuple(batches[node]))
        for node, (index, snapshot) in sorted(snapshots.items())
    }


@fact
def other_stores(ops: Sequence[Op]) -> Mapping[str, Mapping[str, Sequence[tuple[int, Batch]]]]:
    """
    Return node -> store -> the batches of each store of a replica beside the log that it serves, as it ended.

    Each batch comes with the index of its op, in the order of the files. Offsets may repeat there.
    """
    found: dict[str, dict[str, list[tuple[int, Batch]]]] = {}
    for op in ops:
        if op.source is not Source.LOG:
            continue
        match op.event:
            case Snapshot():
                found[op.process] = {}
            case Batch(store=store) as batch if store:
                found.setdefault(op.process, {}).setdefault(store, []).append((op.index, batch))
    return {node: stores for node, stores in sorted(found.items()) if stores}


@fact
def final_leader(ops: Sequence[Op]) -> Leadership | None:
    """Return the last leader in the metadata, else the leader of the newest epoch; None if neither is known."""
    states = list(events_of(ops, MetadataState))
    if states:
        op, state = states[-1]
        return Leadership(node=state.leader, epoch=state.epoch, index=op.index)
    newest = max(events_of(ops, Leader), key=lambda led: (led[1].epoch, led[0].index), default=None)
    if newest is None:
        return None
    return Leadership(node=newest[0].process, epoch=newest[1].epoch, index=newest[0].index)


@fact
def leaders_log(ops: Sequence[Op]) -> FinalLog | None:
    """Return the final leader's log; None if nobody leads, or that log was not read."""
    leader = final_leader(ops)
    return final_logs(ops).get(leader.node or "") if leader else None


def unchecked(place: tuple[str, int], sentence: str, checker: str, proof: tuple[int, ...] = ()) -> Anomaly:
    """Return what is found where something could not be judged: nothing is proven, and nothing is valid."""
    topic, partition = place
    return Anomaly(
        kind=Kind.UNCHECKED, topic=topic, partition=partition, sentence=sentence, proof=proof, checker=checker
    )


def at(op: Op) -> str:
    """Format the time at which the op was recorded: `12.031 s`."""
    return f"{op.time_ns / 1e9:.3f} s"


def offsets_text(ranges: Sequence[tuple[int, int]]) -> str:
    """Format [first, end) ranges with both ends inclusive: `offset 1`, `offsets 1-3, 7`."""
    spans = ", ".join(str(first) if end == first + 1 else f"{first}-{end - 1}" for first, end in ranges)
    return f"offset{'s' if sum(end - first for first, end in ranges) > 1 else ''} {spans}"


def epochs_text(epochs: Sequence[int]) -> str:
    """Format the epochs of records: `in epoch 1`, `in epochs 1, 3`, `without an epoch`."""
    known = sorted({epoch for epoch in epochs if epoch >= 0})
    if not known:
        return "without an epoch"
    return f"in epoch{'s' if len(known) > 1 else ''} {', '.join(map(str, known))}"
