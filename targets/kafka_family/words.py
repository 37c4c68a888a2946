"""What stands for the words of scenarios in Kafka to 3.9 and in our broker; harness/target/words.py has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.target.words import Lacks, Means

WORDS: Final[Mapping[str, Means | Lacks]] = {
    "elected": Means("the leader in the partition's znode"),
    "isr": Means("the ISR in the partition's znode"),
    "epoch rises": Means("a higher leader epoch in the partition's znode"),
    "controller": Means("the broker in the znode `/controller`"),
    "registered": Means("the broker's ephemeral znode below `/brokers/ids` is there"),
    "gone": Means("the broker's ephemeral znode below `/brokers/ids` is not there"),
    "unseen": Means("that znode belongs to another session than before, and the partition's has its old version"),
    "checkpoint": Means("the partition's line in `replication-offset-checkpoint`"),
    "log": Means("the end of the last batch in the replica's segment files"),
    "start": Means("the partition's line in `log-start-offset-checkpoint`, or the first segment's name"),
    "one-batch": Means("a record batch; of messages of 0.10, which have none, that all are there"),
    "sound": Means("each batch's checksum, and the lines of `replication-offset-checkpoint`, are right"),
    "settled": Means("its log ends where the leader's does, it is stuck, or its process has ended"),
    "asked": Means("an OffsetForLeaderEpoch request (KIP-101)"),
    "answered": Means("an OffsetForLeaderEpoch answer (KIP-101)"),
    "expire": Means("the broker's ZooKeeper session is closed, as if its timeout had passed"),
    "zombie": Means("its session is closed, and its link to ZooKeeper is cut"),
    "cut-from-metadata": Means("its link to ZooKeeper is cut; its session lives on until its timeout"),
    "depose-controller": Means("the znode `/controller` is deleted"),
    "add": Means("a CreatePartitions request"),
    "delete": Means("a DeleteRecords request (KIP-107)"),
    "install": Means("its next start is by another version's program, or speaks as another version does"),
    "delete-active-segment": Means("the newest segment's files are unlinked while the broker is down"),
    "bit-rot-checkpoint": Means("a byte of `replication-offset-checkpoint` is another"),
}
