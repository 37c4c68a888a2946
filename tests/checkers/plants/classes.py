"""
What may go wrong, class by class: at least three plants of each, each with the twin that is lawful.

The twin of a plant has its name with `-lawful` at the end, unless a pair names another: a run as it was, or a
history that is the twin of two plants.
Length:  one table, a name to a line.
"""

from __future__ import annotations

from typing import Final, TypeAlias

Pair: TypeAlias = str | tuple[str, str]

_AS_IT_WAS: Final = {
    "local-kip101-1": "loss-of-nothing-lawful",
    "sim-clean": "loss-of-nothing-sim-lawful",
    "sim-last-standing": "loss-of-the-last-standing-lawful",
}

ACKNOWLEDGEMENTS: Final[dict[str, tuple[Pair, ...]]] = {
    "min ISR is broken, and nothing is lost so far": (
        "ack-below-min-isr",
        "ack-below-min-isr-of-three",
        "ack-below-min-isr-sim",
    ),
    "a member of the ISR never had what was acknowledged": (
        ("ack-before-a-member-copied", "ack-whose-copy-is-told-late-lawful"),
        ("ack-before-a-member-copied-sim", _AS_IT_WAS["sim-last-standing"]),
        "ack-that-a-member-never-copied",
        ("ack-that-a-member-never-copied-sim", _AS_IT_WAS["sim-clean"]),
    ),
    "a record of acks=1 was committed everywhere, and is gone without an election": (
        "gone-without-an-election",
        "gone-without-an-election-2",
        "gone-without-an-election-sim",
        "gone-without-an-election-8",
        "gone-without-an-election-kafka",
        "gone-though-its-leader-led-on",
    ),
    "a record is acknowledged at another offset than its own": (
        "ack-at-another-offset",
        "ack-at-another-offset-local",
        "ack-at-another-offset-kafka",
        "ack-at-another-offset-of-all",
    ),
}

CONTROLLERS: Final[dict[str, tuple[Pair, ...]]] = {
    "who is not in office writes": (
        ("controller-resigned-2", "controller-resigned-lawful"),
        ("controller-resigned-3", "controller-resigned-2-lawful"),
        ("controller-deposed-writes-1", "controller-deposed-writes-lawful"),
    ),
    "who is not in office commands": (
        ("controller-foreign-command-1", "controller-foreign-command-lawful"),
        "controller-foreign-command-2",
        "controller-foreign-command-3",
        "controller-command-nobody-wrote",
    ),
    "the controller's epoch falls": (
        "controller-epoch-falls-1",
        ("controller-epoch-falls-2", "controller-epoch-falls-lawful"),
        "controller-epoch-falls-3",
    ),
    "ZooKeeper lacks a decision": (
        "controller-unwritten-leader",
        "controller-unwritten-isr",
        "controller-unwritten-epoch",
        "controller-unwritten-epoch-2",
        "controller-unwritten-epoch-3",
    ),
}

LEADERSHIP: Final[dict[str, tuple[Pair, ...]]] = {
    "an epoch falls in ZooKeeper": (
        "leader-epoch-falls-in-zookeeper",
        "leader-epoch-falls-in-zookeeper-2",
        "leader-epoch-falls-in-zookeeper-3",
        "leader-epoch-falls-in-zookeeper-4",
    ),
    "an epoch falls at a broker": (
        "leader-old-epoch-accepted-1",
        "leader-old-epoch-accepted-2",
        "leader-old-epoch-accepted-3",
    ),
    "a leader is outside its ISR": (
        "leader-outside-isr-1",
        ("leader-outside-isr-2", "leader-outside-isr-lawful"),
        "leader-outside-isr-3",
    ),
    "a leader is no replica": (
        "leader-no-replica-1",
        "leader-no-replica-2",
        "leader-no-replica-3",
        "leader-no-replica-elected",
    ),
    "two leaders are seen only in who appends": (
        "append-by-follower-1",
        "append-by-follower-2",
        "append-by-follower-3",
        ("append-in-another-epoch", _AS_IT_WAS["local-kip101-1"]),
        ("append-in-another-epoch-2", "append-by-follower-3-lawful"),
        "append-after-following",
    ),
}
ISR: Final[dict[str, tuple[Pair, ...]]] = {
    "a member lags for too long, and stays": (
        ("isr-lagging-1", "isr-lagging-lawful"),
        "isr-lagging-2",
        "isr-lagging-3",
    ),
    "a member lacks what is committed": (
        ("joined-without-it", "joined-with-it-lawful"),
        ("came-back-short", "came-back-short-by-power-lawful"),
        ("append-after-following", "joined-before-it-tells-of-its-copy-lawful"),
        "isr-joins-without-2",
        "isr-joins-without-3",
    ),
    "a member is no replica": ("isr-no-replica-1", "isr-no-replica-2", "isr-no-replica-3"),
    "a member is there twice": (
        "isr-member-twice",
        "isr-member-twice-2",
        "isr-member-twice-3",
        "isr-member-twice-4",
    ),
    "nobody wrote an ISR": (
        "isr-that-no-leader-wrote-1",
        "isr-that-no-leader-wrote-2",
        "isr-that-no-leader-wrote-3",
        "isr-that-no-leader-wrote-4",
    ),
}

HIGH_WATERMARKS: Final[dict[str, tuple[Pair, ...]]] = {
    "it falls at a leader": ("high-watermark-falls-1", "high-watermark-falls-2", "high-watermark-falls-3"),
    "it passes what members of the ISR hold": (
        "high-watermark-passes-isr-1",
        "high-watermark-passes-isr-2",
        "high-watermark-passes-isr-3",
    ),
    "it is above a replica's end": (
        ("high-watermark-above-end-1", _AS_IT_WAS["sim-clean"]),
        ("high-watermark-above-end-2", _AS_IT_WAS["local-kip101-1"]),
        "high-watermark-above-end-3",
    ),
    "clients are told one, and then a lower one": (
        "high-watermark-told-and-lower-1",
        "high-watermark-told-and-lower-2",
        "high-watermark-told-and-lower-3",
    ),
}

LOGS: Final[dict[str, tuple[Pair, ...]]] = {
    "a value is there twice": (
        ("value-twice", "value-sent-twice-lawful"),
        ("value-twice-kafka", "value-twice-by-a-client-that-sends-again-lawful"),
        "value-twice-sim",
        (
            "value-twice-by-an-idempotent-client-that-sends-again",
            "value-twice-by-a-client-that-sends-again-lawful",
        ),
    ),
    "a batch is there twice": ("batch-twice", "batch-twice-local", "batch-twice-sim"),
    "nobody sent a value": ("value-never-sent", "value-never-sent-sim", "value-never-sent-and-no-text"),
    "a value's produce failed for sure": (
        "value-that-surely-failed",
        "value-that-surely-failed-kafka",
        "value-that-surely-failed-sim",
    ),
    "a key is altered alike on all": ("key-altered-on-all", "key-altered-on-all-kafka", "key-altered-on-all-sim"),
    "headers are altered alike on all": (
        "headers-altered-on-all",
        "headers-altered-on-all-kafka",
        "headers-altered-on-all-sim",
    ),
    "a timestamp is altered alike on all": (
        "timestamp-altered-on-all",
        "timestamp-altered-on-all-kafka",
        "timestamp-altered-on-all-sim",
    ),
    "records are missing inside a batch that claims them": (
        "record-missing-in-a-batch",
        "record-missing-at-a-batchs-end",
        "record-missing-in-a-batch-local",
    ),
    "a damaged batch was copied, or written so": (
        "damaged-batch-of-a-follower",
        "damaged-batch-of-a-follower-sim",
        "damaged-batch-of-a-follower-8",
        "damaged-batch-copied-by-the-other",
    ),
    "an end is claimed and not there": (
        "end-beyond-the-batches",
        "end-beyond-the-batches-kafka",
        "end-of-an-empty-log",
        "checkpointed-mark-beyond-the-end",
        "checkpointed-mark-beyond-the-end-kafka",
        "checkpointed-mark-beyond-the-end-sim",
    ),
    "a follower is longer than its leader after healing": (
        "longer-on-kafka-1",
        "longer-on-kafka-2",
        "longer-on-ours",
    ),
    "the same records are in another epoch": ("epochs-differ-1", "epochs-differ-2", "epochs-differ-3"),
    "all replicas hold them in another epoch than their leader appended": (
        "epochs-changed-alike",
        "epochs-changed-alike-2",
        "epochs-changed-alike-sim",
        "epochs-changed-alike-unpromised",
        "epochs-changed-alike-kafka",
        "epochs-changed-alike-kafka-2",
    ),
    "a message format without epochs has one": (
        "epoch-in-format-1",
        "epoch-in-format-1-kafka",
        "epoch-in-format-0-sim",
    ),
    "an epoch that never was is in a checkpoint, inside the log": (
        "checkpoint-inside-of-an-epoch-that-never-was",
        "checkpoint-inside-of-an-epoch-that-never-was-2",
        "checkpoint-inside-of-an-epoch-that-never-was-sim",
    ),
    "an epoch that never was is in a checkpoint, at the log's end or beyond it": (
        "checkpoint-of-an-epoch-that-never-was",
        "checkpoint-beyond-the-log",
        "checkpoint-beyond-the-log-2",
        "checkpoint-at-the-end-of-an-epoch-that-never-was",
    ),
    "records are gone from a log's beginning, or differ there": (
        "records-at-the-start-differ",
        "records-at-the-start-differ-2",
        "records-at-the-start-differ-sim",
        "records-gone-without-retention",
        "records-gone-without-retention-kafka",
        "records-gone-without-retention-sim",
    ),
}

CLIENTS: Final[dict[str, tuple[Pair, ...]]] = {
    "a producer's records are not in the order of its acknowledgements": (
        "producer-order-1",
        "producer-order-2",
        "producer-order-3",
    ),
    "a read goes back": ("read-goes-back", "read-goes-back-kafka", "read-goes-back-sim"),
    "a read skips": ("read-skips", "read-skips-kafka", "read-skips-local"),
    "a read stops short of what is committed": (
        "read-stops-short",
        "read-stops-short-kafka",
        "read-stops-short-sim",
    ),
    "a read shows what is rewritten": (
        "read-shows-what-is-rewritten",
        "read-shows-what-is-rewritten-kafka",
        "read-shows-what-is-rewritten-sim",
    ),
    "a read shows what vanishes": (
        "read-shows-what-vanishes",
        "read-shows-what-vanishes-kafka",
        "read-shows-what-vanishes-sim",
    ),
    "a read shows what no log holds": (
        "read-shows-what-no-log-holds",
        "read-shows-what-no-log-holds-local",
        "read-shows-what-no-log-holds-sim",
    ),
    "a proven loss is called a hang, as healing failed as well": (
        "hang-beside-a-rewritten-record",
        "hang-beside-a-rewritten-record-kafka",
        "hang-beside-a-rewritten-record-sim",
        "hang-beside-a-record-that-is-gone",
        "hang-beside-a-record-that-is-gone-kafka",
        "hang-beside-a-record-that-is-gone-sim",
    ),
}

READERS: Final[dict[str, tuple[Pair, ...]]] = {
    "a record that was read is gone": (
        "read-and-gone-kafka",
        "read-and-gone-with-acks-1-kafka",
        "read-another-than-the-log-has",
        "read-another-than-the-log-has-sim",
    ),
    "a record is read before it is committed": (
        "read-above-its-own-mark-kafka",
        "read-above-the-leaders-mark",
        "read-what-was-never-committed",
        "read-from-a-follower",
        "read-before-a-member-copied-it",
    ),
    "a consumer skips": ("poll-skips", "poll-skips-kafka", "poll-skips-sim"),
    "a consumer goes back": ("poll-goes-back", "poll-goes-back-kafka", "poll-goes-back-sim"),
    "readers see different records at one offset": (
        "readers-differ",
        "readers-differ-kafka",
        "readers-differ-sim",
    ),
    "readers see a value at two offsets": (
        "polled-twice",
        ("polled-twice-by-an-idempotent-client", "polled-twice-lawful"),
        "polled-twice-kafka",
        "polled-twice-sim",
    ),
    "readers see what nobody sent": (
        "polled-and-never-sent",
        "polled-and-never-sent-kafka",
        "polled-and-never-sent-sim",
    ),
    "readers see what surely failed": (
        "polled-though-it-failed",
        "polled-though-it-failed-kafka",
        "polled-though-it-failed-sim",
    ),
    "readers see a record at another offset than it was acknowledged at": (
        "polled-elsewhere-than-acknowledged",
        "polled-elsewhere-than-acknowledged-kafka",
        "polled-elsewhere-than-acknowledged-sim",
    ),
    "readers see a producer's records in another order": (
        "polled-in-another-order-kafka",
        "polled-in-another-order-sim",
        "polled-in-another-order-sim-2",
    ),
    "a leader tells readers a high watermark, and then a lower one": (
        "polled-mark-falls",
        "polled-mark-falls-kafka",
        "polled-mark-falls-sim",
    ),
    "a leader tells readers a high watermark beyond its log": (
        "polled-mark-beyond-the-log",
        "polled-mark-beyond-the-log-kafka",
        "polled-mark-beyond-the-log-sim",
    ),
}

HISTORIES: Final[dict[str, tuple[Pair, ...]]] = {
    "half of the acknowledgements are gone": (
        "whole-half-of-the-oks-gone",
        "whole-half-of-the-oks-gone-kafka",
        "whole-half-of-the-oks-gone-sim",
    ),
    "a completion has no invoke": (
        "whole-ok-without-invoke",
        "whole-read-without-invoke",
        "whole-fault-without-invoke",
    ),
    "no reader knows an event or a field": ("whole-unknown-event", "whole-unknown-key", "whole-unknown-key-kafka"),
    "the final read failed": (
        "whole-last-read-failed",
        "whole-last-read-failed-kafka",
        "whole-last-read-failed-sim",
    ),
    "a line is unreadable": ("whole-unreadable-line", "whole-unreadable-line-kafka", "whole-unreadable-line-sim"),
    "every record had acks=0": ("whole-acks-0-alone", "whole-acks-0-alone-local", "whole-acks-0-alone-kafka"),
}

TOPICS: Final[dict[str, tuple[Pair, ...]]] = {
    "a topic takes what its predecessor of that name held, or its predecessor is left": (
        "generation-kept-old-records",
        "generation-kept-old-records-2",
        "generation-left-over",
    ),
    "a topic that was created again loses its own records, or they differ": (
        "generation-lost-its-own",
        "generation-lost-its-own-2",
        ("generation-differs", "generation-as-it-was-lawful"),
    ),
    "a create or a delete is acknowledged, and did not happen": (
        "generation-created-for-nothing",
        "generation-deleted-for-nothing",
        "generation-created-twice",
    ),
}

COMPACTION: Final[dict[str, tuple[Pair, ...]]] = {
    "compaction removed the newest record of a key": (
        "compaction-took-the-newest",
        "compaction-took-the-newest-of-one",
        ("compaction-took-the-newest-of-the-leader", "compaction-lawful"),
        "tombstones-gone-early",
    ),
    "an older record is there where compaction had left one of its key": (
        ("compaction-undone", "compaction-lawful"),
        "compaction-left-the-older",
        ("compaction-left-the-older-of-two", "compaction-lawful"),
    ),
    "what a tombstone deleted is there, and the tombstone is not": (
        ("tombstones-resurrected", "tombstones-lawful"),
        ("tombstones-resurrected-on-a-follower", "tombstones-lawful"),
        ("tombstones-resurrected-on-two", "tombstones-lawful"),
        ("tombstones-resurrected-on-who-was-back", "tombstones-resurrected-on-who-was-back-lawful"),
    ),
}

QUORUMS: Final[dict[str, tuple[Pair, ...]]] = {
    "a majority had it in memory, and faults took it from too few": (
        "quorum-gone-by-no-fault",
        "quorum-gone-by-kills",
        "quorum-gone-by-an-earlier-power-loss",
        "quorum-gone-though-flushed",
        "quorum-gone-though-two-of-three-flushed",
        "quorum-gone-by-one-power-loss-of-four",
        "quorum-gone-by-no-fault-of-five",
        "quorum-gone-as-a-member-was-moved",
        "quorum-gone-as-the-group-grew",
    ),
    "all in sync promised it, and not the leader alone": (
        "in-sync-gone-by-no-fault",
        "in-sync-gone-by-kills",
        "in-sync-gone-by-a-pause",
    ),
    "a majority had it on disk, and only power was lost": (
        "quorum-on-disk-gone-by-power",
        "quorum-on-disk-gone-by-a-failed-flush",
        "quorum-on-disk-gone-by-a-flip-elsewhere",
    ),
    "what a group showed is gone": (
        "quorum-read-and-gone",
        "quorum-read-and-gone-with-acks-1",
        "quorum-read-and-replaced",
    ),
    "a group acknowledged two records at one offset": (
        "quorum-acknowledged-two",
        "quorum-acknowledged-two-before-a-power-loss",
        "quorum-acknowledged-two-in-another-order",
    ),
    "a group has what it acknowledged as deleted": (
        "purge-undone-at-one",
        "purge-undone-at-all",
        "purge-undone-on-disk",
        "purge-undone-by-kills",
    ),
    "a promise in memory permits no divergence": (
        "quorum-diverged-by-power",
        "quorum-diverged-by-no-fault",
        "quorum-diverged-beside-a-flip",
    ),
    "a byte of a file that keeps no record takes none": (
        "quorum-gone-beside-a-flipped-term",
        "quorum-diverged-beside-a-flipped-snapshot",
        "gap-beside-a-flipped-index",
    ),
    "one term has two leaders, or terms fall, in what looks at the metadata show": (
        "polled-two-leaders-of-a-term",
        "polled-two-leaders-of-the-first-term",
        "polled-two-leaders-with-none-between",
        "polled-term-that-falls",
    ),
    "a replica lacks what another holds, where offsets need not follow each other": (
        "gap-of-one-replica",
        "gap-of-the-leader",
        "gap-of-an-acknowledged-record",
        "gap-beside-a-flip",
    ),
    "a log, or a read of it, begins after its first offset, which is 1": (
        "first-log-that-starts-later",
        "first-logs-that-all-start-later",
        "first-record-that-a-read-skips",
    ),
    "two stores hold different records": (
        "stores-of-one-replica-differ",
        "stores-of-one-replica-differ-in-its-log-alone",
        "stores-of-two-replicas-differ",
        "stores-of-the-leader-differ",
        "stores-differ-beside-a-flip",
    ),
}

CLASSES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    name: tuple((pair, f"{pair}-lawful") if isinstance(pair, str) else pair for pair in pairs)
    for group in (
        ACKNOWLEDGEMENTS,
        CONTROLLERS,
        LEADERSHIP,
        ISR,
        HIGH_WATERMARKS,
        LOGS,
        CLIENTS,
        COMPACTION,
        READERS,
        HISTORIES,
        TOPICS,
        QUORUMS,
    )
    for name, pairs in group.items()
}
