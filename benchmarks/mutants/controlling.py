"""Mutants of the controller: its office and its readings."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    # --- office ----------------------------------------------------------------------------------------------
    Mutant(
        name="sees-a-successor-and-stays",
        module="office",
        category=Category.COMMAND,
        sentence="A controller that finds another broker in office goes on.",
        breaks="V3 D; KafkaController.onResignation",
        edits=(
            ("        resign(core)\n        if not isinstance(holder", "        if not isinstance(holder"),
            ("holder.owner == _NO_SESSION:\n", "holder.owner == _NO_SESSION:\n            resign(core)\n"),
        ),
    ),
    Mutant(
        name="lost-election-is-won",
        module="office",
        category=Category.COMMAND,
        sentence="A broker whose election lost its answer takes office.",
        breaks="V3 D; KAFKA-6082: a lost answer leaves open who won",
        edits=(
            (
                "    if isinstance(result, ZkDone):\n",
                "    if isinstance(result, ZkDone) or result is ZkError.LOST:\n",
            ),
        ),
    ),
    Mutant(
        name="lost-election-is-forgotten",
        module="office",
        category=Category.COMMAND,
        sentence="A broker that won an election whose answer was lost never takes the office that it holds.",
        breaks="V3 D; Kafka's CheckedEphemeral: after a lost connection the node's owner is read",
        edits=(("        _take_office(core, number, epoch.version)\n", "        return\n"),),
    ),
    Mutant(
        name="own-office-unwatched",
        module="office",
        category=Category.COMMAND,
        sentence="A controller does not watch its own node, and goes on when an operator removes it.",
        breaks="V3 D: every broker watches /controller",
        edits=(
            (
                "ZkExists(path=CONTROLLER, watch=watch)",
                "ZkExists(path=CONTROLLER, watch=watch and not core.state.controller.active)",
            ),
        ),
    ),
    Mutant(
        name="one-controller-epoch-for-all",
        module="office",
        category=Category.COMMAND,
        sentence="Every controller takes office in epoch 1, so that brokers cannot tell the older one.",
        breaks="V3 D: a new controller raises /controller_epoch",
        edits=(
            (
                "max(number or 0, core.state.controller_epoch) + 1\n",
                "max(number or 0, core.state.controller_epoch, 1)\n",
            ),
        ),
    ),
    # --- controller ------------------------------------------------------------------------------------------
    Mutant(
        name="reading-outlives-its-office",
        module="reading",
        category=Category.COMMAND,
        sentence="A reading that a controller began in an earlier office of its own decides in the present one.",
        breaks="KAFKA-6082; Kafka's ControllerEventManager drops the events of an older epoch",
        edits=(
            (
                "return not core.state.controller.active or core.state.controller.epoch != office",
                "return not core.state.controller.active",
            ),
        ),
    ),
    Mutant(
        name="writes-of-the-deposed",
        module="state_writes",
        category=Category.COMMAND,
        sentence="A deposed controller that does not know it yet can still write leaders to ZooKeeper.",
        breaks="KAFKA-6082: every write checks /controller_epoch",
        edits=(("ZkMulti(ops=(in_office(core), *ops))", "ZkMulti(ops=tuple(ops))"),),
    ),
    Mutant(
        name="write-of-an-older-office-announced",
        module="state_writes",
        category=Category.COMMAND,
        sentence="A decision of an earlier office of the same broker is announced in the present one.",
        breaks="KAFKA-6082: the epoch of the decision is the one under which it was made",
        edits=(
            (
                "if left_office(core, continuation.office):",
                "if not controller.active:",
            ),
        ),
        unreachable=(
            "ZooKeeper answers a session in order, and an ended session's asks are answered as lost: an "
            "older decision is answered before the answer with which the same broker takes office again"
        ),
    ),
    Mutant(
        name="lost-write-is-announced",
        module="state_writes",
        category=Category.COMMAND,
        sentence="A decision whose write lost its answer is commanded as if it were written.",
        breaks="V3, 6: ZooKeeper first, then the brokers",
        edits=(
            (
                "    if isinstance(result, ZkDone):\n",
                "    if isinstance(result, ZkDone) or result is ZkError.LOST:\n",
            ),
        ),
    ),
    Mutant(
        name="lost-write-is-never-announced",
        module="state_writes",
        category=Category.PROTOCOL,
        sentence="A decision that was written, but whose answer was lost, is commanded to nobody.",
        breaks="V3 A.4: the brokers are told what was written",
        edits=(
            (
                "controller.uncertain[decided.tp] = decided",
                "controller.uncertain.pop(decided.tp, None)",
            ),
        ),
    ),
    Mutant(
        name="isr-of-the-leader-overwritten",
        module="controller",
        category=Category.PROTOCOL,
        sentence="The controller writes over an ISR that the leader changed since it was read.",
        breaks="V3 G; Kafka's conditional updates of the partition's state",
        edits=(("ZkSet(path=path, data=data, version=seen.version)", "ZkSet(path=path, data=data, version=-1)"),),
    ),
    Mutant(
        name="brokers-watched-once",
        module="controller",
        category=Category.MANY,
        sentence="The controller watches the registrations with its first reading alone.",
        breaks="V3 A; ZooKeeper's watches fire once",
        edits=(
            (
                "ZkChildren(path=BROKER_IDS, watch=True)",
                "ZkChildren(path=BROKER_IDS, watch=not controller.in_office)",
            ),
        ),
    ),
    Mutant(
        name="change-during-a-reading-missed",
        module="controller",
        category=Category.MANY,
        sentence="A change that comes while the controller reads is not read afterwards.",
        breaks="V3 A; Kafka's ControllerEventManager queues every change",
        edits=(("controller.read_again = True\n", "controller.read_again = False\n"),),
    ),
    Mutant(
        name="one-partition-per-reading",
        module="controller",
        category=Category.MANY,
        sentence="Of a dead broker's partitions only the first gets a new leader.",
        breaks="V3 A (on_broker_change 3): for each affected partition",
        edits=(
            (
                "changes=mine, saw=continuation.live, fresh=tp in fresh))\n",
                "changes=mine, saw=continuation.live, fresh=tp in fresh))\n        if state is not None:\n"
                "            break\n",
            ),
        ),
    ),
    Mutant(
        name="unwritten-decision-forgotten",
        module="state_writes",
        category=Category.PROTOCOL,
        sentence="A decision that could not be written is forgotten if its broker is back by the next reading.",
        breaks="V3 A; KAFKA-1120: a broker that was away must be handled as one that failed",
        edits=(
            (
                "bounces.note_unhandled(core, decided.tp, decided.changes, lost=result is ZkError.LOST)",
                "controller.live = dict(decided.saw)",
            ),
        ),
    ),
    Mutant(
        name="failed-writes-never-land",
        module="state_writes",
        category=Category.MANY,
        sentence="A write that fails counts as in flight for ever; after some the controller writes no more.",
        breaks="Kafka's ZooKeeperClient: every answer frees its place in flight",
        edits=(
            (
                "max(0, controller.writing - len(decisions))",
                "max(0, controller.writing - len(decisions) * isinstance(result, ZkDone))",
            ),
        ),
    ),
    Mutant(
        name="gone-brokers-isr-not-read",
        module="reading",
        category=Category.MANY,
        sentence="A state is not read though the dead broker may have come to its ISR since it was read last.",
        breaks='V3 A.3.1: "Read the current ISR of P"',
        edits=(
            (
                "return state is None or not gone.isdisjoint(set(replicas) - set(state.isr))",
                "return state is None",
            ),
        ),
    ),
    Mutant(
        name="half-of-a-refused-multi-forgotten",
        module="state_writes",
        category=Category.MANY,
        sentence="Of many decisions whose multi was refused only the first half is written singly.",
        breaks="V3 A.3: for each affected partition; discussion 1, ZooKeeper's multi is all or nothing",
        edits=(
            (
                "controller.split += (decisions[:middle], decisions[middle:])",
                "controller.split += (decisions[:middle],)",
            ),
        ),
    ),
    # --- bounces ---------------------------------------------------------------------------------------------
    Mutant(
        name="one-bounce-not-read-again",
        module="bounces",
        category=Category.MANY,
        sentence="One broker that bounced is handled as a failure, and its return only if others bounced with it.",
        breaks="KIP-380: a bounce is a failure, then a start-up (KAFKA-1120)",
        edits=(("read_again |= bool(bounced)", "read_again |= len(bounced) > 1"),),
    ),
    Mutant(
        name="failure-decided-again-about-all",
        module="bounces",
        category=Category.MANY,
        sentence="A broker whose failure could not be written about one partition leaves every ISR once more.",
        breaks="Kafka's ReplicaStateMachine.removeReplicasFromIsr: only what was refused is done again",
        edits=(("for broker, czxid in failing.items() if broker not in gone}", "for broker, czxid in ()}"),),
    ),
    Mutant(
        name="only-leaders-fail",
        module="bounces",
        category=Category.PROTOCOL,
        sentence="Who is back before its failure could be written counts as live unless it was the leader.",
        breaks="KIP-380: a bounce is a failure, then a start-up; a follower may have lost what it acknowledged",
        edits=(("        and broker in state.isr\n", "        and broker == state.leader\n"),),
    ),
    Mutant(
        name="refused-failure-forgotten",
        module="bounces",
        category=Category.PROTOCOL,
        sentence="Who is back before its failure could be written is gone for one reading more, and that is all.",
        breaks="Kafka's PartitionStateMachine.doElectLeaderForPartitions repeats until nothing is refused",
        edits=(("in unhandled.gone if broker not in live}", "in unhandled.gone if broker in live}"),),
    ),
)
