"""Mutants of the leader: produces, the high watermark, the ISR."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    # --- leader ----------------------------------------------------------------------------------------------
    Mutant(
        name="min-isr-before-alone",
        module="leader",
        category=Category.VISIBLE,
        sentence="A produce is acknowledged although the ISR shrank below its minimum after the append.",
        breaks="KAFKA-1555; Kafka's Partition.checkEnoughReplicasReachOffset",
        edits=(
            (
                "enough = len(replica.isr) >= core.config_of(tp.topic).min_isr",
                "enough = len(replica.replicas) >= core.config_of(tp.topic).min_isr",
            ),
        ),
    ),
    Mutant(
        name="min-isr-after-alone",
        module="leader",
        category=Category.VISIBLE,
        sentence="A produce is appended although the ISR is below its minimum.",
        breaks="KAFKA-1555; Kafka's Partition.appendRecordsToLeader",
        edits=(("acks == -1 and len(replica.isr) <", "acks == -1 and len(replica.replicas) <"),),
    ),
    Mutant(
        name="high-watermark-falls",
        module="leader",
        category=Category.VISIBLE,
        sentence="A leader lowers its high watermark when a member of the ISR fetches from below it.",
        breaks="V3 G; Kafka's Partition.maybeIncrementLeaderHW: it never falls",
        edits=(("if candidate > replica.high_watermark:", "if candidate not in (-1, replica.high_watermark):"),),
    ),
    Mutant(
        name="silent-followers-do-not-count",
        module="leader",
        category=Category.PROTOCOL,
        sentence="A new leader commits without the ISR's members that have not fetched yet.",
        breaks="V3 G: the smallest log end of the whole ISR",
        edits=(
            (
                "candidate = min(ends, default=-1)",
                "candidate = min((end for end in ends if end >= 0), default=-1)",
            ),
        ),
    ),
    Mutant(
        name="joining-follower-does-not-count",
        module="leader",
        category=Category.PROTOCOL,
        sentence="A follower whose addition to the ISR is being written does not hold up the high watermark.",
        breaks="KIP-497, the maximal ISR: ZooKeeper may list it as electable already",
        edits=(("{*replica.isr, *(replica.isr_asked or ())}", "replica.isr"),),
    ),
    Mutant(
        name="unwritten-isr-commits",
        module="leader",
        category=Category.PROTOCOL,
        sentence="A leader commits with the smaller ISR that it asked for, before that is written.",
        breaks="V3, discussion 3: a leader that cannot write the ISR cannot commit",
        edits=(("{*replica.isr, *(replica.isr_asked or ())}", "replica.isr_asked or replica.isr"),),
    ),
    Mutant(
        name="acknowledged-with-its-first-record",
        module="leader",
        category=Category.VISIBLE,
        sentence="A produce is acknowledged once its first record is committed.",
        breaks="Kafka's DelayedProduce: the high watermark must reach the last record",
        edits=(("elif replica.high_watermark >= end:", "elif replica.high_watermark > base:"),),
    ),
    Mutant(
        name="first-produced-partition-alone",
        module="leader",
        category=Category.MANY,
        sentence="Of a produce's partitions the high watermark of the first alone advances with the append.",
        breaks="Kafka's ReplicaManager.appendToLocalLog: each partition is looked at",
        edits=(("for tp in tuple(required or done):", "for tp in tuple(required or done)[:1]:"),),
    ),
    Mutant(
        name="longer-log-acknowledges",
        module="leader",
        category=Category.PROTOCOL,
        sentence="A fetch from past the leader's log end counts as an acknowledgement of what comes there.",
        breaks="V3 C; Kafka's Partition.readRecords refuses the offset before it counts the fetch",
        edits=(
            (
                "if not replica.log.start_offset <= part.fetch_offset <= replica.log.end_offset:",
                "if not replica.log.start_offset <= part.fetch_offset:",
            ),
        ),
    ),
    Mutant(
        name="isr-blocked-for-good",
        module="leader",
        category=Category.PROTOCOL,
        sentence="A leader that was once refused an ISR write never writes one again, not even in a new epoch.",
        breaks="KAFKA-2729; V3 C: a new command has the version to write under",
        edits=(("replica.isr_asked, replica.isr_blocked = None, False", "replica.isr_asked = None"),),
    ),
    Mutant(
        name="isr-begins-late",
        module="leader",
        category=Category.MANY,
        sentence="A new leader takes the ISR's followers for late, until they catch up, and the others for not.",
        breaks="V3 C (becomeLeader); Kafka's Replica.resetLastCaughtUpTime",
        edits=(
            (
                "caught_up_ns=core.now_ns if follower in replica.isr else 0",
                "caught_up_ns=0 if follower in replica.isr else core.now_ns",
            ),
        ),
    ),
    # --- isr -------------------------------------------------------------------------------------------------
    Mutant(
        name="isr-check-of-one-partition",
        module="isr",
        category=Category.MANY,
        sentence="The ISR check looks at the first partition alone.",
        breaks="Kafka's ReplicaManager.maybeShrinkIsr: every partition",
        edits=(
            (
                "for replica in core.state.replicas.values():",
                "for replica in tuple(core.state.replicas.values())[:1]:",
            ),
        ),
    ),
    Mutant(
        name="isr-checked-once",
        module="isr",
        category=Category.MANY,
        sentence="The ISR check is armed at the start alone: it runs once.",
        breaks="Kafka's ReplicaManager.startup schedules it again and again",
        edits=(('    core.after_ms(("isr-check",), max(1, core.config.replica_lag_ms_max // 2))\n', ""),),
    ),
    Mutant(
        name="isr-check-ends-at-a-sound-partition",
        module="isr",
        category=Category.MANY,
        sentence="The ISR check ends at the first partition that has nobody late.",
        breaks="Kafka's ReplicaManager.maybeShrinkIsr: every partition",
        edits=(
            (
                "member not in late))\n",
                "member not in late))\n            else:\n                break\n",
            ),
        ),
    ),
    Mutant(
        name="slow-follower-is-never-late",
        module="isr",
        category=Category.MANY,
        sentence="A follower that fetches, however far behind, is never taken out of the ISR.",
        breaks="KAFKA-1546: lag is the time since a follower was caught up",
        edits=(("core.now_ns - progress.caught_up_ns >", "core.now_ns - progress.last_fetch_ns >"),),
    ),
    Mutant(
        name="caught-up-at-the-high-watermark",
        module="isr",
        category=Category.MANY,
        sentence="A follower that holds the high watermark back counts as caught up, and is never taken out.",
        breaks="KAFKA-1546; Kafka's Replica.updateFetchState: the leader's log end decides",
        edits=(("    if offset >= replica.log.end_offset:\n", "    if offset >= replica.high_watermark:\n"),),
    ),
    Mutant(
        name="joins-below-the-high-watermark",
        module="isr",
        category=Category.PROTOCOL,
        sentence="A follower joins the ISR at the start of the leader's epoch, even below the high watermark.",
        breaks="Kafka's Partition.maybeExpandIsr: the high watermark, and the epoch's start (KAFKA-7128)",
        edits=(("caught_up = offset >= replica.high_watermark", "caught_up = offset >= replica.epoch_start"),),
    ),
    Mutant(
        name="joins-within-a-lag",
        module="isr",
        category=Category.PROTOCOL,
        sentence="A follower joins the ISR while it still lags, by less than a bound.",
        breaks="V3 G (maybe_change_ISR) itself, which lets it in below MIN_BYTES_LAG; Kafka has no such bound",
        edits=(
            ("caught_up = offset >= replica.high_watermark", "caught_up = offset + 2 > replica.high_watermark"),
            ("caught_up = caught_up and offset >= replica.epoch_start", "pass"),
        ),
    ),
    Mutant(
        name="two-isr-writes-at-once",
        module="isr",
        category=Category.PROTOCOL,
        sentence="A leader writes an ISR while its last write is in flight, and forgets whom that one adds.",
        breaks="KIP-497: one change of the ISR in flight",
        edits=(("if replica.isr_asked is not None or replica.isr_blocked:", "if replica.isr_blocked:"),),
    ),
    Mutant(
        name="lost-isr-write-is-done",
        module="isr",
        category=Category.COMMAND,
        sentence="An ISR write whose answer was lost with the connection counts as done.",
        breaks="V3 G and discussion 3: only what is in ZooKeeper counts",
        edits=(
            (
                "    if result is ZkError.LOST:\n",
                "    if result is ZkError.LOST:\n"
                "        _take(core, replica, continuation.isr, replica.zk_version + 1)\n"
                "    elif result is ZkError.REFUSED:\n",
            ),
        ),
    ),
    Mutant(
        name="refused-isr-write-is-done",
        module="isr",
        category=Category.COMMAND,
        sentence="A zombie leader takes a smaller ISR although ZooKeeper refused it.",
        breaks="V3, discussion 3: a zombie cannot shrink the ISR, so it cannot commit",
        edits=(("    elif isinstance(result, ZkError):\n", "    elif result is ZkError.NO_NODE:\n"),),
    ),
    Mutant(
        name="overtaken-isr-write-forgotten",
        module="isr",
        category=Category.PROTOCOL,
        sentence="If another write followed a lost ISR write, the follower that it added does not count.",
        breaks="KIP-497, the maximal ISR: the lost write may have come before",
        edits=(
            (
                "            replica.isr_blocked = True\n    elif",
                "            replica.isr_asked, replica.isr_blocked = None, True\n    elif",
            ),
        ),
    ),
    Mutant(
        name="isr-of-an-earlier-lead",
        module="isr",
        category=Category.PROTOCOL,
        sentence="The answer to an ISR write of an earlier epoch changes the ISR of the present one.",
        breaks="V3 G; Kafka's Partition.updateIsr is void once the epoch has changed",
        edits=(
            (
                "replica is not None and replica.generation == continuation.generation else",
                "replica is not None and replica.role is Role.LEADER else",
            ),
        ),
    ),
)
