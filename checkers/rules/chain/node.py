"""What one broker has reported of its replica so far; each module of this package follows a part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self, TypeAlias

from checkers.facts.compacted import kept_of
from checkers.facts.view import changes_format, newest_counts, run_setup_of, setup_of, traits
from harness.events import WITH_EPOCHS
from harness.model import Op

Epochs: TypeAlias = tuple[tuple[int, int], ...]
_YES: Final = "yes"


class Given(NamedTuple):
    """
    What the set-up says of the brokers' protocol, as far as their stories depend on it.

    Attributes:
        stamps: batches carry epochs, where their message format stores any.
        message_format: in which every node starts, 0 where some may have one with epochs and others none.
        mixed: not all nodes write epochs at all times.
        newest: the epoch in which a broker leads or appends is the newest of its checkpoint.
        on_lead: a leader writes its epoch when it takes over, before it appends.
        registers_first: a broker obeys no command before it has registered (KIP-380).
        cut_at: a truncation to the log's end drops an epoch that begins there.
        folds: where a log's start moves, the last epoch up to there stays; otherwise recovery may find it again.
        keeps: a follower of the same leader in a new epoch cuts nothing.
        flushes: each checkpoint of epochs is flushed, and real files tell so.
        epochs_path: the file of the partition's epochs.
        clean_path: the file that says that a node has ended in order.
        noun: what holds the metadata.
        skips: whether compaction may have removed all from one offset to before another, so that a log has a gap.
    """

    stamps: bool = False
    message_format: int = 0
    mixed: bool = False
    newest: bool = False
    on_lead: bool = False
    registers_first: bool = False
    cut_at: bool = False
    folds: bool = True
    keeps: bool = True
    flushes: bool = False
    epochs_path: str = ""
    clean_path: str = ""
    noun: str = "the metadata"
    skips: Callable[[int, int], bool] = lambda first, end: first == end

    @classmethod
    def of(cls, ops: Sequence[Op]) -> Self:
        """Return what the run's set-up says; nothing is certain without one."""
        setup = setup_of(ops)
        if setup is None:
            return cls()
        rules, system = setup.rules, traits(ops)
        stamps = rules.get("epochs") == _YES
        first = run_setup_of(ops)
        with_epochs = first is not None and first.message_format in (None, "with_epochs")
        return cls(
            stamps=stamps,
            message_format=WITH_EPOCHS if with_epochs else 0,
            mixed=changes_format(ops) or not with_epochs,
            newest=stamps and newest_counts(ops),
            on_lead=stamps and rules.get("epoch_assigned_on_lead") == _YES and newest_counts(ops),
            registers_first=rules.get("fence_broker_epoch") == _YES,
            cut_at=stamps and rules.get("epoch_cut") == "at_or_past",
            folds=rules.get("epoch_trim") != "up_to_start",
            keeps=rules.get("truncate_when_leader_unchanged") != _YES,
            flushes=system.tells_flushes and rules.get("epochs_flushed") == "on_change",
            epochs_path=f"{setup.topic}-{setup.partition}/{system.epochs_file}",
            clean_path=system.clean_file,
            noun=system.metadata,
            skips=lambda first, end: not kept_of(ops, first, end),
        )


@dataclass(slots=True)
class Node:
    """
    One broker's story so far.

    Attributes:
        end: its log's end, None if it is not known.
        low: where its files may end at the earliest: a cut inside a batch removes all of the batch from them.
        kept: the [base, end) of the appends still in its log, in the order of offsets; None if not all are known.
        epochs: its epoch checkpoint, None if it is not known.
        wrote: whether it reported a checkpoint; in older histories brokers do not.
        fresh: the (epoch, start) that its last checkpoint added, until the event that it is for; None if none.
        trims: what its checkpoint must be next, since the start of its log moved; None if nothing is due.
        files: the lengths that were flushed of checkpoints that it has not reported yet.
        late: whether one of these was due when it last reported a change of its log or its role, and none since.
        closed: whether it left the mark of a clean shutdown.
        role, epoch, leader: of its last leader or follower event; "", -1 and -1 before it.
        owes: whether it began to follow, and has not reported a truncation since.
        changed: whether it wrote a checkpoint since.
        walks: whether its last truncation changed anything, so that it may ask for another.
        decided: the newest epoch for which it reported a leader as controller, -1 if none.
        presides: whether it is controller by its last word.
        rivalled: whether another node has been controller since it became one, by their own words.
        held: whether it has a log of the partition.
        life: how many of its processes have started.
        begun: whether this process has reported anything since it started.
        registered, ready: whether this process has registered, and has read the metadata.
        unsure: whether a fault may have cut its log since it last reported its end.
        silent: whether it was restarted with a log, and has not reported it.
        down: whether a fault took it down, so that it may start.
        last: the index of the event that set its end.
        format: the message format that it took up since it started, 0 for that with which it was started.
    """

    name: str
    end: int | None = None
    low: int = 0
    kept: list[tuple[int, int]] | None = field(default_factory=list)
    epochs: Epochs | None = ()
    wrote: bool = False
    fresh: tuple[int, int] | None = None
    trims: Epochs | None = None
    files: list[int] = field(default_factory=list)
    late: bool = False
    closed: bool = False
    role: str = ""
    epoch: int = -1
    leader: int = -1
    owes: bool = False
    changed: bool = False
    walks: bool = False
    decided: int = -1
    presides: bool = False
    rivalled: bool = False
    held: bool = False
    life: int = 0
    begun: bool = False
    registered: bool = False
    ready: bool = False
    unsure: bool = False
    silent: bool = False
    down: bool = True
    last: int = 0
    format: int = 0

    def writes_epochs(self, given: Given) -> bool:
        """Return True if this node certainly writes epochs as leader, and keeps them: by its message format."""
        return given.stamps and (self.format or given.message_format) == WITH_EPOCHS
