"""What stands for the words of scenarios in Fluss; harness/target/words.py has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.target.words import Lacks, Means

WORDS: Final[Mapping[str, Means | Lacks]] = {
    "elected": Means("the leader in the bucket's znode `leader_isr`"),
    "leader": Means("it is elected, and answers a client's FetchLog"),
    "isr": Means("the ISR in the bucket's znode"),
    "epoch rises": Means("a higher leader epoch in the bucket's znode"),
    "controller": Lacks("the coordinator is no tablet server: it is the service `coordinator`"),
    "registered": Means("the server's ephemeral znode below `/tabletservers/ids` is there"),
    "gone": Means("the server's ephemeral znode below `/tabletservers/ids` is not there"),
    "unseen": Means("that znode belongs to another session than before, and the bucket's has its old version"),
    "heard": Means("it has answered a NotifyLeaderAndIsr of the epoch of the bucket's znode without an error"),
    "checkpoint": Means("the bucket's line in `high-watermark-checkpoint`"),
    "log": Means("the end of the last batch in the replica's segment files"),
    "start": Means("the name of the first segment"),
    "compacted": Lacks("its log tables are not compacted"),
    "format": Lacks("a release has one format"),
    "one-batch": Means("a batch of records"),
    "sound": Means("each batch's checksum is right"),
    "settled": Means("its log ends where the leader's does, or its process has ended"),
    "truncated": Means("it has printed that it cut its log to its high watermark"),
    "fenced": Lacks("no server checks the epoch of a fetch"),
    "stuck": Lacks("no line of its log says so for certain"),
    "awaiting": Lacks("no line of its log says so"),
    "asked": Lacks("no server asks where an epoch ends"),
    "answered": Lacks("no server asks where an epoch ends"),
    "elect": Means("the sessions of those that the coordinator would elect before it are closed"),
    "expire": Means("the server's ZooKeeper session is closed, as if its timeout had passed; it registers again"),
    "zombie": Means("its session is closed, and its link to ZooKeeper is cut"),
    "cut-from-metadata": Means("its link to ZooKeeper is cut; its session lives on until its timeout"),
    "depose-controller": Lacks("a cluster has one coordinator"),
    "move-away": Lacks("a client cannot choose the replicas; the coordinator's goals do"),
    "add": Lacks("a table's buckets are those that it was made with"),
    "remove": Lacks("a table's buckets are those that it was made with"),
    "delete": Lacks("no request deletes records"),
    "install": Means("its next start is by another release's program"),
    "delete-active-segment": Means("the newest segment's files are unlinked while the server is down"),
    "bit-rot-checkpoint": Means("a byte of `high-watermark-checkpoint` is another"),
}
