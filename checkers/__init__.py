"""The table of all checkers: a new checker is one file and one entry here."""

from __future__ import annotations

from typing import Final

from checkers.checker import Checker
from checkers.rules import controllers as controller_rule
from checkers.rules import epochs as epoch_rule
from checkers.rules import high_watermark as high_watermark_rule
from checkers.rules import isr as isr_rule
from checkers.rules.acknowledged import KINDS as ACKNOWLEDGED
from checkers.rules.acknowledged import acknowledged
from checkers.rules.batches import KINDS as BATCHES
from checkers.rules.batches import batches
from checkers.rules.caught_up import caught_up
from checkers.rules.checkpoint import checkpoint
from checkers.rules.committed import KINDS as COMMITTED
from checkers.rules.committed import committed
from checkers.rules.contents import KINDS as CONTENTS
from checkers.rules.contents import contents
from checkers.rules.diverged import diverged
from checkers.rules.exited import exited
from checkers.rules.holes import holes
from checkers.rules.leaders import leaders
from checkers.rules.oracles import oracles
from checkers.rules.order import order
from checkers.rules.power_loss_evidence import proven_losses
from checkers.rules.unchecked import unchecked
from checkers.rules.vacuous import vacuous
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
    "committed": Checker(
        name="committed",
        needs=((Source.LOG,), _LEADERS),
        rule=committed,
        doc="Committed records that a replica of the ISR lacks, or that are lost, whatever their acks.",
        source="hachikuji/kafka-specification, StrongIsr",
        kinds=COMMITTED,
    ),
    "acknowledged": Checker(
        name="acknowledged",
        needs=((Source.CLIENT,), _LEADERS),
        rule=acknowledged,
        doc="Acknowledgements with acks=all of records that a member of the ISR lacked, or below min ISR.",
        source="Kafka's acks and min.insync.replicas",
        kinds=ACKNOWLEDGED,
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
    "contents": Checker(
        name="contents",
        needs=((Source.CLIENT,), (Source.LOG,)),
        rule=contents,
        doc="Records of final logs that no client sent, that differ from what was sent, or that are there twice.",
        source="Jepsen's checks of Kafka: duplicates, garbage reads, aborted reads",
        kinds=CONTENTS,
    ),
    "batches": Checker(
        name="batches",
        needs=((Source.LOG,),),
        rule=batches,
        doc="Batches and snapshots of final logs that claim offsets which the log does not hold.",
        source="Apache Kafka, DefaultRecordBatch.java; KAFKA-6361",
        kinds=BATCHES,
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
    "controllers": Checker(
        name="controllers",
        needs=(),
        rule=controller_rule.controllers,
        doc="Decisions and commands of nodes that are not controller, and controller epochs that fall or repeat.",
        source="KAFKA-6082; Kafka Replication Design V3, D",
        kinds=controller_rule.KINDS,
    ),
    "epochs": Checker(
        name="epochs",
        needs=(),
        rule=epoch_rule.epochs,
        doc="Leaders that must not lead, and epochs that fall, have two leaders, or never stood in ZooKeeper.",
        source="Kafka Replication Design V3, A and C; KIP-106; KIP-380",
        kinds=epoch_rule.KINDS,
    ),
    "isr": Checker(
        name="isr",
        needs=(),
        rule=isr_rule.isr,
        doc="ISRs that must not be, that ZooKeeper never had, or with a member that lacks records or lags.",
        source="Kafka Replication Design V3, G; KAFKA-7128; KIP-16",
        kinds=isr_rule.KINDS,
    ),
    "high-watermark": Checker(
        name="high-watermark",
        needs=(),
        rule=high_watermark_rule.high_watermarks,
        doc="High watermarks that fall at a leader, pass a log's end or the ISR's, or fall between reads.",
        source="Kafka Replication Design V3, F and G; KAFKA-8400; KAFKA-9491",
        kinds=high_watermark_rule.KINDS,
    ),
    "unchecked": Checker(
        name="unchecked",
        needs=(),
        rule=unchecked,
        doc="Evidence that is missing from a run; without it, the other checkers' silence proves nothing.",
        source="Jepsen: a run without evidence is unknown",
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
