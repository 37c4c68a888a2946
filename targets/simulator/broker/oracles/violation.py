"""What an oracle found: one rule, broken at one step. Only the first violation of a rule is kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.events import OracleViolation
from targets.broker.core.messages import TopicPartition
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_S


class Rule(StrEnum):
    """The rule that was broken; `watch` says what each demands."""

    COMMITTED = "committed"
    PREFIX = "prefix"
    ACKNOWLEDGED = "acknowledged"
    LEADERS = "leaders"
    HIGH_WATERMARK = "high-watermark"
    FOLLOWER_HIGH_WATERMARK = "follower-high-watermark"
    SERVED = "served"
    CHECKPOINT = "checkpoint"
    LOG_START = "log-start"
    OFFICE = "office"
    ANSWERS = "answers"
    REST = "rest"
    DUE = "due"
    FAIL_STOP = "fail-stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """
    One rule, broken at one step.

    Attributes:
        step: the number of the world's step.
        time_ns: the world's time.
        nodes: the nodes whose logs or answers contradict each other.
        offset: the first offset at which they do, -1 if none does.
    """

    rule: Rule
    tp: TopicPartition
    step: int
    time_ns: int
    nodes: tuple[str, ...]
    offset: int
    sentence: str

    def event(self) -> OracleViolation:
        """Return it as the history records it."""
        return OracleViolation(
            rule=self.rule.value,
            step=self.step,
            nodes=self.nodes,
            offset=self.offset,
            sentence=self.sentence,
            topic=self.tp.topic,
            partition=self.tp.partition,
        )


class Violations:
    """
    The first violation of each rule in each partition: what follows from it is not recorded.

    Attributes:
        found: by rule and partition, in the order of steps.
    """

    def __init__(self, world: World) -> None:
        """Start without a violation."""
        self.found: dict[tuple[Rule, TopicPartition], Violation] = {}
        self._world = world

    def add(self, rule: Rule, tp: TopicPartition, nodes: tuple[str, ...], offset: int, text: str) -> None:
        """Keep a violation of this step, unless the rule was broken in this partition before."""
        if (rule, tp) not in self.found:
            now_ns = self._world.clock.now_ns
            self.found[rule, tp] = Violation(
                rule=rule,
                tp=tp,
                step=self._world.steps,
                time_ns=now_ns,
                nodes=nodes,
                offset=offset,
                sentence=f"Step {self._world.steps}, at {now_ns / NS_PER_S:.3f} s: {text}.",
            )
