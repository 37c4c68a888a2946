"""What stands for the words of scenarios in RocketMQ; harness/target/words.py has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.target.words import Lacks, Means

_NO_MEMBERS: Final = "the controller says whose heartbeats come, and not whether a broker was away in between"

WORDS: Final[Mapping[str, Means | Lacks]] = {
    "elected": Means("the master that the controller says"),
    "leader": Means("it is elected, and says that it acts as master (GetEpochCache)"),
    "isr": Means("the SyncStateSet at the controller"),
    "epoch rises": Means("a higher master epoch at the controller"),
    "controller": Lacks("the controller is no broker: it is the service `controller`"),
    "registered": Lacks(_NO_MEMBERS),
    "gone": Lacks(_NO_MEMBERS),
    "unseen": Lacks(_NO_MEMBERS),
    "heard": Lacks("a broker learns who leads by its own questions too"),
    "checkpoint": Lacks("the confirm offset is about bytes of a log that all topics share"),
    "log": Means("the queue's last record in the commit log, up to where the broker says that it ends"),
    "start": Means("the queue's first record in the commit log"),
    "compacted": Lacks("the harness's topics keep every record"),
    "format": Lacks("a release has one format"),
    "one-batch": Lacks("each record is sent alone"),
    "sound": Means("each record's checksum is right"),
    "settled": Means("its log ends where the master's does, or its process has ended"),
    "truncated": Lacks("what it prints of its cut is about bytes, and names no topic"),
    "fenced": Lacks("no master checks the epoch of a slave"),
    "stuck": Lacks("no line of its log says so for certain"),
    "awaiting": Lacks("no line of its log says so"),
    "asked": Lacks("a slave asks for all epochs of its master at once"),
    "answered": Lacks("a slave asks for all epochs of its master at once"),
    "elect": Means("the controller is asked to elect it, as by `mqadmin electMaster`"),
    "expire": Lacks("no request ends a broker's membership"),
    "zombie": Lacks("no request ends a broker's membership"),
    "cut-from-metadata": Means("its links to controllers and name servers are cut; heartbeats are missed 10 s"),
    "depose-controller": Lacks("no request has a controller step down"),
    "move-away": Lacks("all brokers of a group have all of its topics"),
    "add": Lacks("queues are those that the topic was made with"),
    "remove": Lacks("queues are those that the topic was made with"),
    "delete": Lacks("no request deletes records up to an offset"),
    "install": Means("its next start is by another release's program"),
    "delete-active-segment": Means("the newest file of the commit log with a record is unlinked while it is down"),
    "bit-rot-checkpoint": Lacks("the reader flips no byte"),
}
