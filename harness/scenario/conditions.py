"""Evaluates the conditions that a scenario awaits or requires."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from harness.cluster.cluster import Cluster
from harness.scenario.condition_types import (
    Acked,
    Answered,
    Asked,
    Awaiting,
    Checkpoint,
    Compacted,
    Condition,
    ConditionOfLink,
    ConditionOfNode,
    ConditionOfPartition,
    Controller,
    Delayed,
    Doubled,
    Elected,
    EpochRises,
    Fenced,
    Gone,
    HasFormat,
    Heard,
    Held,
    InSync,
    Leads,
    Led,
    LogEnds,
    LogStarts,
    Lost,
    OneBatch,
    Registered,
    Settled,
    Sound,
    Stuck,
    Truncated,
    Unseen,
)
from harness.scenario.link_steps import LinkSteps
from harness.scenario.offsets import Mark, RecordOffsets
from harness.scenario.produce_steps import Produces
from harness.scenario.recent_events import RecentEvents
from harness.target.wire import Word


class Conditions:
    """Evaluates the conditions of one run."""

    def __init__(
        self,
        cluster: Cluster,
        replicas: Sequence[str],
        *,
        record_offsets: RecordOffsets,
        links: LinkSteps,
        produces: Produces,
        recent: RecentEvents,
    ) -> None:
        self._cluster = cluster
        self._replicas = replicas
        self._record_offsets = record_offsets
        self._links = links
        self._produces = produces
        self._recent = recent
        self._epoch = -1

    def turn(self) -> None:
        """
        Remember the current epoch, before the next step that is not an `await` or `require`.

        While no metadata are read, it is the one before: nothing changes in them.
        """
        if self._cluster.services is not None and self._cluster.services.out:
            return
        truth = self._cluster.truth()
        self._epoch = -1 if truth is None else truth.epoch

    def holds(self, condition: Condition) -> bool:
        """
        Return True if the condition holds now.

        Raises:
            UsageError: it is about a hold or a link rule that no longer exists.
        """
        match condition:
            case Elected() | Leads() | Led() | InSync() | Controller() | EpochRises() | Acked() | OneBatch():
                return self._of_partition(condition)
            case Held() | Asked() | Answered() | Lost() | Delayed() | Doubled():
                return self._of_link(condition)
            case _:
                return self._of_node(condition)

    def _of_partition(self, condition: ConditionOfPartition) -> bool:
        cluster = self._cluster
        match condition:
            case Leads(node):
                return self.leads(node)
            case Led():
                leader = cluster.leader()
                return leader is not None and self.leads(leader)
            case Elected(leader):
                return cluster.leader() == leader
            case InSync(nodes):
                return cluster.isr() == frozenset(nodes)
            case Controller(True, node):
                return cluster.metadata.controller() == node
            case Controller(_, node):
                return cluster.metadata.controller() not in (None, node)
            case EpochRises():
                return self._rises()
            case Acked(group):
                return self._produces.acked(group)
            case OneBatch(group):
                return self._one_batch(group)

    def _of_node(self, condition: ConditionOfNode) -> bool:
        cluster = self._cluster
        match condition:
            case Settled(node):
                return self.settled(node)
            case Checkpoint(node, True, offset):
                return cluster.checkpoint(node) == self._record_offsets.number(offset)
            case Checkpoint(node, _, offset):
                return cluster.checkpoint(node) >= self._record_offsets.number(offset)
            case LogEnds(node, offset):
                return cluster.log_end(node) == self._record_offsets.number(offset)
            case LogStarts(node, offset):
                return cluster.main.log_start(node) >= self._record_offsets.number(offset)
            case Compacted(node, offset):
                return cluster.main.compacted(node) >= self._record_offsets.number(offset)
            case HasFormat(node, number):
                return cluster.main.message_format(node) == number
            case Registered(node):
                return cluster.metadata.incarnation(node) != 0
            case Gone(node):
                return cluster.metadata.incarnation(node) == 0
            case Unseen(node):
                return self._unseen(node)
            case Stuck(node):
                return cluster.is_stuck(node)
            case Heard(node):
                return self._heard(node)
            case Awaiting(node):
                return cluster.main.is_awaiting(node)
            case Truncated(node):
                return self._truncated(node)
            case Fenced(node):
                return bool(self._recent.of_node("fenced", node))
            case Sound(node):
                log = cluster.log(node)
                return log is not None and not log.problems

    def _of_link(self, condition: ConditionOfLink) -> bool:
        match condition:
            case Held(api, src, dst, direction):
                return bool(self._links.hold_of(api, src, dst, direction).held)
            case Asked(src, dst):
                return bool(self._recent.on_link("epoch-question", src, dst))
            case Answered(src, dst):
                return bool(self._recent.on_link("epoch-answer", src, dst))
            case Lost(src, dst):
                return self._links.has_bitten("lost", src, dst)
            case Delayed(api, src, dst):
                return self._links.has_bitten("delayed", src, dst, api)
            case Doubled(api, src, dst):
                return self._links.has_bitten("doubled", src, dst, api)

    def saw(self, condition: Condition) -> str:
        """Return what was seen instead of the condition, to explain why a run is unknown."""
        cluster, truth = (
            self._cluster,
            self._cluster.truth(),
        )
        logs = {name: (cluster.log_end(name), cluster.checkpoint(name)) for name in self._replicas}
        return (
            f"{condition}; saw partition {truth}, (log end, checkpoint) {logs}, held {self._links.seen()}, "
            f"down {sorted(cluster.down)}"
        )

    # --- conditions of the runner too ------------------------------------------------------------------------
    def leads(self, name: str) -> bool:
        """Return True if the metadata name this node as the leader, and the node claims leadership."""
        return self._cluster.main.leads(name)

    def settled(self, name: str) -> bool:
        """Return True if a replica's log ends where the leader's does, or the replica is stuck or has exited."""
        return self._cluster.main.settled(name)

    def whole(self, without: Collection[str] = ()) -> bool:
        """Return True if each partition has a leader, and every replica except `without` is settled."""
        return all(partition.whole(without) for partition in self._cluster.partitions)

    def in_sync(self, without: Collection[str] = (), left_out: Collection[str] = ()) -> bool:
        """
        Return True if each partition's ISR has every replica that can be in it, except `without`.

        Args:
            left_out: replicas of the main partition that may stay out of its ISR.
        """
        main = self._cluster.main
        return all(
            {*each.outside()} <= {*without, *(left_out if each is main else ())}
            for each in self._cluster.partitions
        )

    def outside(self) -> tuple[str, ...]:
        """Return partition and node of each replica that the ISR lacks; () while the metadata answer nobody."""
        if self._cluster.services is not None and self._cluster.services.out:
            return ()
        return tuple(f"{each.place} {name}" for each in self._cluster.partitions for name in each.outside())

    def said(self) -> tuple[str, ...]:
        """Return partition and node, and what the node says of its part in it; () for nodes that say nothing."""
        metadata = self._cluster.metadata
        return tuple(
            f"{each.place} {name} {words}"
            for each in self._cluster.partitions
            for name, words in sorted(metadata.said(*each.place).items())
        )

    def lacking(self) -> str:
        """Return what is missing for the cluster to be whole and in sync: of its first partition that is not."""
        partitions = self._cluster.partitions
        lacks = next((each for each in partitions if not each.whole()), None)
        lacks = lacks or next((each for each in partitions if each.outside()), self._cluster.main)
        return f"{lacks.place}: {lacks.lacking()}" if len(partitions) > 1 else lacks.lacking()

    def _rises(self) -> bool:
        truth = self._cluster.truth()
        return truth is not None and truth.epoch > self._epoch

    def _truncated(self, name: str) -> bool:
        """
        Return True if a node has learned where to truncate its log, and has truncated it if it had to.

        If nodes emit no events and the fetch itself asks for the divergence, the leader's answer to a fetch
        proves it.
        """
        if self._recent.of_node("truncate", name):
            return True
        cluster, leader = self._cluster, self._cluster.leader()
        silent = leader is not None and not cluster.traits.emits_events
        if not silent or self._links.words.api_of(Word.QUESTION) != Word.FETCH:
            return False
        return bool(self._recent.on_link("fetched", name, leader or ""))

    def _heard(self, name: str) -> bool:
        truth = self._cluster.truth()
        return truth is not None and self._cluster.heard_epoch(name) == truth.epoch

    def _unseen(self, name: str) -> bool:
        """Return True if a node that was down is a member anew, and the controller changed nothing since."""
        member, version = self._cluster.before_down[name]
        truth = self._cluster.truth()
        back = self._cluster.metadata.incarnation(name) not in (0, member)
        return back and member != 0 and truth is not None and truth.version == version

    def _one_batch(self, name: str) -> bool:
        """
        Return True if the leader's log has all records of a group in one batch.

        Where a log keeps records one by one, it is enough that it has every record of the group.
        """
        leader = self._cluster.leader()
        log = self._cluster.log(leader) if leader else None
        span = (
            self._record_offsets.number(Mark("start", name)),
            self._record_offsets.number(Mark("end", name)) - 1,
        )
        if log is None:
            return False
        theirs = [b for b in log.batches if span[0] <= b.base <= span[1]]
        whole = [b.base for b in theirs] == list(range(span[0], span[1] + 1))
        return any((b.base, b.last) == span for b in theirs) or (whole and all(b.single for b in theirs))
