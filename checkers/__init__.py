"""The table of all checkers: a new checker is one file and one entry here."""

from __future__ import annotations

from typing import Final

from checkers.checker import Checker
from checkers.rules.caught_up import caught_up
from checkers.rules.chain import KINDS as CHAIN
from checkers.rules.chain import chain
from checkers.rules.checkpoint import checkpoint
from checkers.rules.diverged import diverged
from checkers.rules.exited import exited
from checkers.rules.holes import holes
from checkers.rules.leaders import leaders
from checkers.rules.oracles import oracles
from checkers.rules.order import order
from checkers.rules.plan import KINDS as PLAN
from checkers.rules.plan import plan
from checkers.rules.power_loss_evidence import proven_losses
from checkers.rules.unchecked import unchecked
from checkers.rules.vacuous import vacuous
from checkers.rules.whole import KINDS as WHOLE
from checkers.rules.whole import whole
from harness.model import Source

_LEADERS: Final = (Source.ZOOKEEPER, Source.BROKER)

CHECKERS: Final[dict[str, Checker]] = {
    "lost": Checker(
        name="lost",
        needs=((Source.CLIENT,), (Source.LOG,), _LEADERS),
        rule=proven_losses,
        doc="Acknowledged records that the final log does not hold, and whether their loss was permitted.",
        source='KIP-101, Scenario 1; "Why does Kafka need the leader epoch?"',
    ),
    "diverged": Checker(
        name="diverged",
        needs=((Source.LOG,),),
        rule=diverged,
        doc="Offsets at which two replicas' final logs hold different records.",
        source="KIP-101, Scenario 2; KAFKA-6361",
    ),
    "leaders": Checker(
        name="leaders",
        needs=(_LEADERS,),
        rule=leaders,
        doc="Epochs that two brokers led, or that one broker led again after its return.",
        source="KIP-101, returning leaders; Kafka Replication Design V3",
    ),
    "order": Checker(
        name="order",
        needs=((Source.LOG,),),
        rule=order,
        doc="Batches whose offsets or epoch are below those of earlier batches in the log.",
        source="KIP-101, Scenario 2",
    ),
    "holes": Checker(
        name="holes",
        needs=((Source.LOG,),),
        rule=holes,
        doc="Offsets that a log jumps over.",
        source="KAFKA-6361",
    ),
    "checkpoint": Checker(
        name="checkpoint",
        needs=((Source.LOG,),),
        rule=checkpoint,
        doc="Epoch checkpoints that contradict their log.",
        source="KIP-101, steps 3 and 4.4",
    ),
    "caught-up": Checker(
        name="caught-up",
        needs=((Source.LOG,), _LEADERS),
        rule=caught_up,
        doc="Replicas that do not have all of the leader's log after healing, with the reason.",
        source="KIP-101, Scenario 2; KAFKA-6361",
    ),
    "exited": Checker(
        name="exited",
        needs=(),
        rule=exited,
        doc="Brokers that exited by themselves, with the line that they printed.",
        source="KAFKA-3924",
    ),
    "unchecked": Checker(
        name="unchecked",
        needs=(),
        rule=unchecked,
        doc="Evidence that is missing from a run; without it, the other checkers' silence proves nothing.",
        source="Jepsen: a run without evidence is unknown",
    ),
    "whole": Checker(
        name="whole",
        needs=(),
        rule=whole,
        doc="Histories that are not whole: ops that are missing, doubled, unreadable or in the wrong place.",
        source="Jepsen: a run without evidence is unknown",
        kinds=WHOLE,
    ),
    "chain": Checker(
        name="chain",
        needs=(),
        rule=chain,
        doc="Events of a broker that contradict each other, or the log that it left.",
        source="Jepsen: a history must be possible before it is judged",
        kinds=CHAIN,
    ),
    "plan": Checker(
        name="plan",
        needs=(),
        rule=plan,
        doc="Ops of the runner, the nemesis, the fabric or ZooKeeper's watch that contradict the schedule.",
        source="Jepsen: a history must be possible before it is judged",
        kinds=PLAN,
    ),
    "vacuous": Checker(
        name="vacuous",
        needs=((Source.RUNNER,),),
        rule=vacuous,
        doc="Random runs that prove nothing: no fault took effect, or no record was acknowledged.",
        source="Jepsen: a run without evidence is unknown",
    ),
    "oracles": Checker(
        name="oracles",
        needs=(),
        rule=oracles,
        doc="Violations that the simulator's oracles saw at some step; the final logs may not show them.",
        source="hachikuji/kafka-specification, StrongIsr",
    ),
}
