"""Mutants of what the controller decides and sends: elections and commands."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    # --- election --------------------------------------------------------------------------------------------
    Mutant(
        name="leader-by-assignment",
        module="election",
        category=Category.PROTOCOL,
        sentence="The first live assigned replica leads, in the ISR or not.",
        breaks="V3 A (on_broker_change 3.2): the leader comes from the ISR",
        edits=(("for r in (*replicas, *isr) if r in isr)", "for r in (*replicas, *isr) if r in live)"),),
    ),
    Mutant(
        name="last-isr-emptied",
        module="election",
        category=Category.PROTOCOL,
        sentence="When the last ISR member dies the ISR is emptied, and nobody may lead again.",
        breaks="KAFKA-1097; V3 A: the last ISR stays, as only its members may lead",
        edits=(("leader=-1, leader_epoch=epoch, isr=state.isr)", "leader=-1, leader_epoch=epoch, isr=isr)"),),
    ),
    Mutant(
        name="same-leader-same-epoch",
        module="election",
        category=Category.PROTOCOL,
        sentence="The controller shrinks the ISR of a leader that stays without a new leader epoch.",
        breaks="V3 C, optimizations 1: a broker acts only on a larger epoch",
        edits=(
            (
                "leader=kept, leader_epoch=state.leader_epoch + 1, isr=isr)",
                "leader=kept, leader_epoch=state.leader_epoch + (kept != state.leader), isr=isr)",
            ),
        ),
    ),
    Mutant(
        name="operator-elects-outside-the-isr",
        module="election",
        category=Category.PROTOCOL,
        sentence="An operator's election is obeyed for any live broker.",
        breaks="Kafka's PreferredReplicaPartitionLeaderElection: only a live member of the ISR",
        edits=(
            (
                "if leader == state.leader or leader not in isr:",
                "if leader == state.leader or leader not in live:",
            ),
        ),
    ),
    Mutant(
        name="first-isr-has-the-dead",
        module="election",
        category=Category.PROTOCOL,
        sentence="The first ISR of a partition is its whole assignment, dead brokers included.",
        breaks="V3 B (init_leaders): the ISR is the live assigned replicas",
        edits=(
            (
                "leader=present[0], leader_epoch=0, isr=present)",
                "leader=present[0], leader_epoch=0, isr=replicas)",
            ),
        ),
    ),
    # --- commands --------------------------------------------------------------------------------------------
    Mutant(
        name="commands-for-the-dead-kept",
        module="command_queue",
        category=Category.COMMAND,
        sentence="Commands for a broker that has gone are kept, and sent to it when it is back.",
        breaks="Kafka's ControllerChannelManager.removeBroker: the queue ends with its broker",
        edits=(
            (
                "broker: channel for broker, channel in controller.channels.items() if broker in controller.live",
                "broker: channel for broker, channel in controller.channels.items()",
            ),
        ),
    ),
    Mutant(
        name="unanswered-command-forgotten",
        module="command_queue",
        category=Category.PROTOCOL,
        sentence="A command whose answer was lost is not sent again.",
        breaks="Kafka's RequestSendThread: it sends until the broker answers or is gone",
        edits=(
            (
                "    if response is None:\n        _put_back(channel)\n",
                "    if response is None:\n        channel.sent = channel.tag = None\n",
            ),
        ),
    ),
    Mutant(
        name="only-the-isr-is-told",
        module="commands",
        category=Category.PROTOCOL,
        sentence="A new leader is told to the ISR alone; the other replicas follow the old one.",
        breaks="V3 A.4: LeaderAndIsr goes to every live replica",
        edits=(("for broker in command.replicas:", "for broker in command.isr:"),),
    ),
    Mutant(
        name="told-of-its-old-lead",
        module="commands",
        category=Category.PROTOCOL,
        sentence="A broker that starts is told that it leads in the epoch of its previous incarnation.",
        breaks="KIP-101, returning leaders: it leads in a newer epoch only",
        edits=(
            (
                "known = {tp: state for tp, state in states.items() if not (awaits and state.leader == broker)}",
                "known = dict(states)",
            ),
        ),
    ),
    Mutant(
        name="init-leaves-partitions-out",
        module="commands",
        category=Category.COMMAND,
        sentence="A new controller's first command lacks the partitions that a broker leads; it deletes them.",
        breaks="V3 D.4 and C 3: a command with INIT names every replica that is assigned there",
        edits=(("and (init or tp in known)", "and tp in known"),),
    ),
    Mutant(
        name="first-fifty-stopped",
        module="command_queue",
        category=Category.MANY,
        sentence="Of many deleted partitions each broker is told of the first fifty.",
        breaks="V3 B (on_topic_change 2): every deleted partition is stopped",
        edits=(
            (
                "        del channel.stops[asked.tp]\n    return",
                "        del channel.stops[asked.tp]\n    channel.stops.clear()\n    return",
            ),
        ),
    ),
    Mutant(
        name="missed-deletion-replaces-a-newer-one",
        module="command_queue",
        category=Category.COMMAND,
        sentence="A deletion that a broker missed is noted over a newer one, which the broker is never told of.",
        breaks="V3 B (on_topic_change 2): every deleted partition is stopped",
        edits=(("= known if is_older(_age(asked), _age(known)) else asked", "= asked"),),
    ),
    Mutant(
        name="stop-goes-to-one-replica",
        module="commands",
        category=Category.COMMAND,
        sentence="A deleted partition is stopped on its first replica alone; nobody else is told.",
        breaks="V3 B (on_topic_change 2): StopReplica goes to every replica",
        edits=(
            (
                "for replicas in gone.values() for broker in replicas}",
                "for replicas in gone.values() for broker in replicas[:1]}",
            ),
        ),
    ),
    Mutant(
        name="older-state-told-again",
        module="command_queue",
        category=Category.MANY,
        sentence="A state whose command was not answered is told again in place of a newer one.",
        breaks="V3, command queue per broker: in order",
        edits=(("tp: _newer(again.get(tp), state) for", "tp: again.get(tp, state) for"),),
    ),
)
