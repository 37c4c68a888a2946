"""Mutants of reassignment: the steps of a move, and who is told of them."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    Mutant(
        name="moved-before-in-sync",
        module="reassignment",
        category=Category.PROTOCOL,
        sentence="A partition is handed over to its new replicas before they have what is committed.",
        breaks='V3 F, 3.2: "this means that all replicas have caught up"',
        edits=(("if broker in state.isr and broker in live)", "if broker in live)"),),
    ),
    Mutant(
        name="move-never-looked-at-again",
        module="reassignment",
        category=Category.VISIBLE,
        sentence="A move that waits for its ISR is looked at again only if something else happens.",
        breaks='V3 F: the agent "wakes up if notified or a certain amount of time has passed"',
        edits=(("    if core.state.controller.moves:\n", "    if soon and core.state.controller.moves:\n"),),
    ),
    Mutant(
        name="move-begun-in-the-same-epoch",
        module="reassignment",
        category=Category.COMMAND,
        sentence="The new replicas are assigned without a new leader epoch.",
        breaks="V3, optimizations 1: a broker acts only on a larger epoch; Kafka's updateLeaderEpoch",
        edits=(
            (
                "Decision(leader=state.leader, leader_epoch=state.leader_epoch + 1, isr=state.isr)",
                "Decision(leader=state.leader, leader_epoch=state.leader_epoch, isr=state.isr)",
            ),
        ),
    ),
    Mutant(
        name="removed-replica-not-stopped",
        module="state_writes",
        category=Category.COMMAND,
        sentence="A replica that was moved away is not told to stop.",
        breaks="V3 F, 3.2.4: StopReplica to the brokers in the current AR, but not in RAR",
        edits=(("    if decided.removed:\n", "    if decided.removed and decided.unclean:\n"),),
    ),
    Mutant(
        name="moves-lost-with-the-topic-node",
        module="assignments",
        category=Category.PROTOCOL,
        sentence="What is being moved is forgotten when its topic is written: it stays on all of its replicas.",
        breaks="KIP-455: the next controller goes on from what stands with the topic",
        edits=(("    if assignment.moves:\n", "    if len(assignment.moves) > 1:\n"),),
    ),
    Mutant(
        name="state-of-a-moved-partition-not-read",
        module="reading",
        category=Category.VISIBLE,
        sentence="The states of partitions that are moved are read only if something else makes them doubtful.",
        breaks="V3 F, 3.1: read the ISR from the LeaderAndISR path",
        edits=(("controller.refused | {*doubted}", "controller.refused"),),
    ),
)
