"""What stands for the words of scenarios in NATS; harness/target/words.py has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.target.words import Lacks, Means

_NO_QUESTION: Final = "no follower asks where a term ends: an AppendEntry has the term of the entry before it"

WORDS: Final[Mapping[str, Means | Lacks]] = {
    "elected": Means(
        "who says in RAFTZ that it leads the stream's group in the highest term, else whom followers name"
    ),
    "leader": Means("it is elected, and says in SUBSZ that it takes the stream's messages itself"),
    "isr": Means("the members of the stream's group: a quorum of them has what is committed"),
    "epoch rises": Means("a higher term of the stream's group"),
    "controller": Means("the leader of the meta group"),
    "registered": Lacks("servers are no members that come and go: who is down stays a member of its groups"),
    "gone": Lacks("servers are no members that come and go: who is down stays a member of its groups"),
    "unseen": Lacks("servers are no members that come and go: who is down stays a member of its groups"),
    "heard": Lacks("no message tells a server who leads: it learns that from the AppendEntry of a leader"),
    "checkpoint": Lacks("no file has what is committed"),
    "log": Means("the last sequence in the blocks of the stream's store, which a server writes a little later"),
    "start": Means("the first sequence in the blocks of the stream's store"),
    "compacted": Lacks("the harness's streams keep every message"),
    "format": Lacks("a release has one format"),
    "one-batch": Means("each message is stored alone"),
    "sound": Means("each message's checksum is right"),
    "settled": Means(
        "it says that it has the stream's group and its log ends where the leader's does, or it has ended"
    ),
    "truncated": Lacks("a stream's store is never cut; what cuts the Raft log names no stream"),
    "fenced": Lacks("no line of its log says so"),
    "stuck": Lacks("no line of its log says so for certain"),
    "awaiting": Lacks("no line of its log says so"),
    "asked": Lacks(_NO_QUESTION),
    "answered": Lacks(_NO_QUESTION),
    "elect": Means("the leader steps down, with the node as the one that is preferred"),
    "expire": Lacks("servers are no members that come and go"),
    "zombie": Lacks("there are no metadata from which to cut it off: they are a Raft group of the servers"),
    "cut-from-metadata": Lacks(
        "there are no metadata from which to cut it off: they are a Raft group of the servers"
    ),
    "depose-controller": Means("the meta group's leader steps down"),
    "move-away": Means("the stream is updated with the placement tag of its new nodes"),
    "add": Means("the stream of the partition is created"),
    "remove": Means("the stream of the partition is deleted"),
    "delete": Means("the stream is purged up to a sequence"),
    "install": Means("its next start is by another release's program"),
    "delete-active-segment": Means("the newest block of the stream's store is unlinked while the server is down"),
    "bit-rot-checkpoint": Means("a byte of the Raft log is another"),
}
