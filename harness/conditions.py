"""
What a scenario awaits or requires: conditions on what ZooKeeper holds, on files, links, and what nodes tell.

    elected = A|none (ZooKeeper says so)     leader = A (and A says so too)      isr = A B
    controller = C     controller != C       registered A     gone A             epoch rises
    checkpoint A = N   checkpoint A >= N     log A = N        settled A (caught up, or stuck)
    acked NAME (every record)                heard A (of the epoch that ZooKeeper holds)
    held [answers|requests] API A -> B       asked A -> B          answered A -> B
    lost A -> B (a cut there has bitten)     delayed API A -> B    doubled API A -> B
    truncated A        stuck A               awaiting A (a newer epoch)          fenced A
    unseen A           one-batch NAME

`asked`, `answered` (where an epoch ends), `truncated`, `fenced` and `epoch rises` are about what came since the
scenario last did something: all steps but `await` and `require` do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from harness.cluster import PARTITION, TOPIC, Cluster
from harness.links import LinkSteps
from harness.logdir.message_set import OLD_MAGICS
from harness.marks import Marks
from harness.model import UsageError
from harness.news import News
from harness.produces import Produces

Condition = Callable[[], bool]


class Conditions:
    """The conditions of one run."""

    def __init__(
        self,
        cluster: Cluster,
        replicas: Sequence[str],
        *,
        marks: Marks,
        links: LinkSteps,
        produces: Produces,
        news: News,
    ) -> None:
        self._cluster = cluster
        self._replicas = replicas
        self._marks = marks
        self._links = links
        self._produces = produces
        self._news = news
        self._epoch = -1

    def turn(self) -> None:
        """Remember the epoch as it is: the scenario is about to do something."""
        truth = self._cluster.observer.truth(TOPIC, PARTITION)
        self._epoch = -1 if truth is None else truth.leader_epoch

    def of(self, words: Sequence[str]) -> Condition:
        """Give the condition; UsageError when there is none in such words."""
        found = self._of_partition(list(words)) or self._of_node(list(words)) or self._of_link(list(words))
        if found is None:
            raise UsageError(f"condition {' '.join(words)!r} is unknown (harness/conditions.py has them)")
        return found

    def _of_partition(self, words: list[str]) -> Condition | None:
        cluster = self._cluster
        match words:
            case ["leader", "=", name]:
                return lambda: self.leads(name)
            case ["elected", "=", name]:
                return lambda: cluster.leader() == (None if name == "none" else name)
            case ["isr", "=", *names]:
                return lambda: cluster.isr() == frozenset(names)
            case ["controller", "=", name]:
                return lambda: cluster.observer.controller() == name
            case ["controller", "!=", name]:
                return lambda: cluster.observer.controller() not in (None, name)
            case ["epoch", "rises"]:
                return self._rises
            case ["acked", name]:
                return lambda: self._produces.acked(name)
            case ["one-batch", name]:
                return lambda: self._one_batch(name)
        return None

    def _of_node(self, words: list[str]) -> Condition | None:
        cluster = self._cluster
        match words:
            case ["settled", name]:
                return lambda: self.settled(name)
            case ["checkpoint", name, "=", number]:
                return lambda: cluster.checkpoint(name) == self._marks.number(number)
            case ["checkpoint", name, ">=", number]:
                return lambda: cluster.checkpoint(name) >= self._marks.number(number)
            case ["log", name, "=", number]:
                return lambda: cluster.log_end(name) == self._marks.number(number)
            case ["registered", name]:
                return lambda: cluster.observer.registered(name) != 0
            case ["gone", name]:
                return lambda: cluster.observer.registered(name) == 0
            case ["unseen", name]:
                return lambda: self._unseen(name)
            case ["stuck", name]:
                return lambda: cluster.is_stuck(name)
            case ["heard", name]:
                return lambda: self._heard(name)
            case ["awaiting", name]:
                return lambda: cluster.is_awaiting(name)
            case ["truncated", name]:
                return lambda: self._truncated(name)
            case ["fenced", name]:
                return lambda: bool(self._news.of_node("fenced", name))
        return None

    def _of_link(self, words: list[str]) -> Condition | None:
        match words:
            case ["held", *direction, api, src, "->", dst] if direction in ([], ["answers"], ["requests"]):
                held = self._links.hold_of(api, src, dst, "".join(direction))
                return lambda: bool(held.held)
            case ["asked", src, "->", dst]:
                return lambda: bool(self._news.on_link("epoch-question", src, dst))
            case ["answered", src, "->", dst]:
                return lambda: bool(self._news.on_link("epoch-answer", src, dst))
            case ["lost", src, "->", dst]:
                return lambda: self._links.has_bitten("lost", src, dst)
            case ["delayed" | "doubled" as bites, api, src, "->", dst]:
                return lambda: self._links.has_bitten(bites, src, dst, api)
        return None

    def saw(self, words: Sequence[str]) -> str:
        """What stands in place of the condition, for the one who reads why a cell is unknown."""
        cluster, truth = self._cluster, self._cluster.observer.truth(TOPIC, PARTITION)
        logs = {name: (cluster.log_end(name), cluster.checkpoint(name)) for name in self._replicas}
        return (
            f"{' '.join(words)}; saw partition {truth}, (log end, checkpoint) {logs}, held {self._links.seen()}, "
            f"down {sorted(cluster.down)}"
        )

    # --- conditions of the runner too ------------------------------------------------------------------------
    def leads(self, name: str) -> bool:
        """ZooKeeper says so, and so does the broker itself."""
        cluster = self._cluster
        truth = cluster.observer.truth(TOPIC, PARTITION)
        if truth is None or cluster.observer.name_of(truth.leader) != name:
            return False
        return cluster.claims_leadership(name, truth.leader_epoch)

    def settled(self, name: str) -> bool:
        """Whether a replica ends where the leader's log does, or has said that it never will, or ended itself."""
        leader = self._cluster.leader()
        if leader is None:
            return False
        cluster = self._cluster
        return (
            cluster.log_end(name) == cluster.log_end(leader) or cluster.is_stuck(name) or cluster.has_exited(name)
        )

    def whole(self, without: Collection[str] = ()) -> bool:
        """Whether a node leads, and every replica but `without` has caught up or has said that it never will."""
        leader = self._cluster.leader()
        awaited = (name for name in self._replicas if name not in without)
        return leader is not None and self.leads(leader) and all(map(self.settled, awaited))

    def lacking(self) -> str:
        """What keeps the cluster from being whole."""
        cluster = self._cluster
        truth, leader = cluster.observer.truth(TOPIC, PARTITION), cluster.leader()
        if leader is None:
            return f"a leader, not {truth}"
        if cluster.is_awaiting(leader):
            return f"{leader} to lead; it waits for an epoch newer than {truth.leader_epoch if truth else -1}"
        if not self.leads(leader):
            return f"{leader} to lead in the epoch that it was elected for, {truth}"
        ends = {name: cluster.log_end(name) for name in self._replicas}
        return f"all replicas caught up with leader {leader}; log ends {ends}"

    def _rises(self) -> bool:
        truth = self._cluster.observer.truth(TOPIC, PARTITION)
        return truth is not None and truth.leader_epoch > self._epoch

    def _truncated(self, name: str) -> bool:
        """
        Whether a node has learned where to cut its log, and cut it where there was anything to cut.

        Where the fetch itself asks, and nodes tell nothing, an answer of the leader to one is the sign.
        """
        if self._news.of_node("truncate", name):
            return True
        cluster, leader = self._cluster, self._cluster.leader()
        silent = leader is not None and not cluster.target.emits_events()
        if not silent or cluster.target.first_question(cluster.rules) != "Fetch":
            return False
        return bool(self._news.on_link("fetched", name, leader or ""))

    def _heard(self, name: str) -> bool:
        truth = self._cluster.observer.truth(TOPIC, PARTITION)
        return truth is not None and self._cluster.heard_epoch(name) == truth.leader_epoch

    def _unseen(self, name: str) -> bool:
        """A node that was down is back in a session of its own, and the controller changed nothing since."""
        session, version = self._cluster.before_down[name]
        truth = self._cluster.observer.truth(TOPIC, PARTITION)
        back = self._cluster.observer.registered(name) not in (0, session)
        return back and session != 0 and truth is not None and truth.version == version

    def _one_batch(self, name: str) -> bool:
        """All records of a group lie in one batch of the leader's log; messages of old formats lie in none."""
        leader = self._cluster.leader()
        log = self._cluster.log(leader) if leader else None
        span = (self._marks.number(f"start({name})"), self._marks.number(f"end({name})") - 1)
        if log is None:
            return False
        theirs = [b for b in log.batches if span[0] <= b.base <= span[1]]
        whole = [b.base for b in theirs] == list(range(span[0], span[1] + 1))
        return any((b.base, b.last) == span for b in theirs) or (
            whole and all(b.magic in OLD_MAGICS for b in theirs)
        )
