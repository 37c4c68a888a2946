"""Sample results for the report's tests and for viewing the report, written by hand after docs/history.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.model import Anomaly, Kind, Op, OpType, Source, Verdict
from harness.run.result import RunResult, Status
from harness.run.suite import Suite
from tests.report.recorder import PLACE, TOPIC, Recorder, StepFailedError

IDS = {"A": 7, "B": 3, "C": 12}
TITLES = {
    "kip101-1": "A follower restarts with a lagging high watermark, then the leader dies",
    "kip101-2b": "Both lose power; B leads and takes a compressed batch that spans A’s end",
}
SOURCES = {
    "kip101-1": "KIP-101, Scenario 1",
    "kip101-2b": "KIP-101, Scenario 2",
}


def sample_result(scenario: str, protocol: str, expected: str = "", found: str = "", **more: object) -> RunResult:
    """Return a result that is as expected, unless more says something else."""
    defaults: dict[str, object] = {
        "scenario": scenario,
        "title": TITLES[scenario],
        "source": SOURCES[scenario],
        "protocol": protocol,
        "expected": expected,
        "found": found,
        "status": Status.AS_EXPECTED,
        "reason": "",
        "verdict": Verdict.VALID,
        "anomalies": (),
        "run": f"{scenario}-{protocol}",
        "rerun": f"fencepost run --scenario {scenario} --protocol {protocol} --host local --seed 42",
        "seconds": 3.4,
    }
    return RunResult(**{**defaults, **more})  # type: ignore[arg-type]


def _begin(r: Recorder, epochs: bool) -> list[int]:
    """Write the start of a run: B leads in epoch 0, A follows, and both high watermarks are past m1."""
    e = 0 if epochs else -1
    for node in "ABC":
        r.op(Source.BROKER, node, "started", id=IDS[node], pid=4100 + IDS[node], protocol="")
        r.op(Source.BROKER, node, "member", taken_over=False)
    r.op(Source.METADATA, "metadata", "members", nodes=["A", "B", "C"])
    r.op(Source.METADATA, "metadata", "controller", node="C")
    r.op(Source.METADATA, "metadata", "state", **PLACE, leader="B", epoch=0, isr=["A", "B"], version=0)
    r.broker("B", "leader", epoch=0, log_end_offset=0, high_watermark=0, isr=[3, 7], resumed=False, unclean=False)
    r.broker("A", "follower", epoch=0, leader=3, log_end_offset=0, high_watermark=0)
    r.broker("A", "truncate", **{"from": 0}, to=0, end=0, reason="high-watermark", epoch=0)
    m1 = r.records["m1"]
    with r.step("append B m1", "B leads, A follows. Both have m1, and both know that it is committed."):
        acks = r.produce("m1", "B", 0, stored=e)
        r.copy("A", "B", 0, len(m1), e)
        r.broker("B", "high-watermark", to=len(m1))
        r.broker("A", "high-watermark", to=len(m1))
    with r.step(f"await A high-watermark {len(m1)}"):
        r.wait(210)
        r.op(Source.BROKER, "A", "checkpoint", what="epochs", **PLACE, content=[[0, 0]])
    return acks


def scenario1(protocol: str) -> tuple[RunResult, list[Op]]:
    """Return KIP-101 scenario 1: m2 (two records) is lost under hw, kept under kip101."""
    old = protocol == "hw"
    e = -1 if old else 0
    r = Recorder(IDS, {"m1": ["m1-9a"], "m2": ["m2-4c", "m2-e1"]})
    r.setup("kip101-1", protocol, {"truncate_to": "high_watermark" if old else "epoch_answer"})
    _begin(r, epochs=not old)
    with r.step(
        "hold B A Fetch answer",
        "A holds m2, but the answer that would move A's high watermark past m2 is held back. "
        "B has counted A's fetch, so m2 is committed and acknowledged to its producer.",
    ):
        r.fabric("hold", "A", "B", api="fetch", direction="answer", from_offset=3)
    with r.step("append B m2"):
        acks = r.produce("m2", "B", 1, stored=e)
        r.copy("A", "B", 1, 3, e)
        r.broker("B", "high-watermark", to=3)
        r.fabric("held", "A", "B", api="fetch", direction="answer", offset=3)
    with r.step("kill A", "A restarts. The controller does not notice: A stays in the ISR."):
        r.fault("kill", "A", 31, "pid 4107 is gone (waitid)")
    with r.step("restart A"):
        r.op(Source.NEMESIS, "nemesis", "restart", OpType.INVOKE, nodes=["A"])
        r.wait(420)
        r.op(Source.BROKER, "A", "started", id=7, pid=4190, protocol=protocol)
        r.broker(
            "A",
            "recovered",
            log_end_offset=3,
            clean=False,
            cut_bytes=0,
            reason="clean",
            epochs=[],
            high_watermark=1,
        )
        r.op(Source.BROKER, "A", "member", taken_over=True)
        r.op(Source.NEMESIS, "nemesis", "restart", OpType.OK, nodes=["A"], probe="answers ApiVersions")
        r.broker("A", "follower", epoch=0, leader=3, log_end_offset=3, high_watermark=1)
        cut = _ask_or_cut(r, old)
    with r.step("kill B", "B dies before A has fetched m2 again; A, in the ISR, becomes leader."):
        killed = r.fault("kill", "B", 12, "pid 4103 is gone (waitid)")
        r.op(Source.NEMESIS, "nemesis", "expire", OpType.INVOKE, nodes=["B"])
        r.op(
            Source.NEMESIS, "nemesis", "expire", OpType.OK, nodes=["B"], probe="/brokers/ids/3 is gone after 7 ms"
        )
        elected = r.op(Source.METADATA, "metadata", "state", **PLACE, leader="A", epoch=1, isr=["A"], version=1)
        end = 1 if old else 3
        r.broker(
            "A", "leader", epoch=1, log_end_offset=end, high_watermark=1, isr=[7], resumed=False, unclean=False
        )
        r.broker("A", "high-watermark", to=end)
    with r.step("release all", "B returns and follows A."):
        r.fabric("release", "A", "B", api="fetch", direction="answer", from_offset=3)
    with r.step("restart B"):
        r.fault("restart", "B", 390, "answers ApiVersions")
        r.op(Source.BROKER, "B", "started", id=3, pid=4201, protocol=protocol)
        r.broker(
            "B",
            "recovered",
            log_end_offset=3,
            clean=False,
            cut_bytes=0,
            reason="clean",
            epochs=[],
            high_watermark=3,
        )
        r.broker("B", "follower", epoch=1, leader=7, log_end_offset=3, high_watermark=3)
        if old:
            r.broker("B", "truncate", **{"from": 3}, to=1, end=1, reason="out-of-range", epoch=1)
        else:
            r.fabric("epoch-question", "B", "A", **PLACE, leader_epoch=0, version=0)
            r.fabric("epoch-answer", "B", "A", **PLACE, error=0, leader_epoch=-1, end_offset=3)
            r.broker("B", "truncate", **{"from": 3}, to=3, end=3, reason="epoch-answer", epoch=1)
        r.broker("B", "isr", isr=[7, 3], version=2, epoch=1)
    log = [(e, ["m1-9a"])] + ([] if old else [(0, ["m2-4c", "m2-e1"])])
    reads = [r.read_log(n, log, high_watermark=end, epochs=None if old else [(0, 0)])[0] for n in "AB"]
    r.finish([value for _, values in log for value in values])
    if not old:
        return sample_result("kip101-1", protocol, "none", "none"), r.ops
    lost = Anomaly(
        kind=Kind.LOST,
        topic=TOPIC,
        partition=0,
        ranges=((1, 3),),
        nodes=("A", "B"),
        epoch=0,
        sentence="m2 (offsets 1–2) was written by B in epoch 0 and acknowledged to client-0 with acks=all; A, in "
        "the ISR, cut it at its restart because A truncated to its own high watermark 1, and was elected in epoch "
        "1 when B died. No replica has m2.",
        proof=(*acks, cut, killed, elected, *reads),
        checker="lost",
    )
    result = sample_result("kip101-1", "hw", "lost m2", "lost m2", verdict=Verdict.INVALID, anomalies=(lost,))
    return result, r.ops


def _ask_or_cut(r: Recorder, old: bool) -> int:
    if old:
        return r.broker("A", "truncate", **{"from": 3}, to=1, end=1, reason="high-watermark", epoch=0)
    r.fabric("epoch-question", "A", "B", **PLACE, leader_epoch=0, version=0)
    r.wait(1)
    r.fabric("epoch-answer", "A", "B", **PLACE, error=0, leader_epoch=-1, end_offset=3)
    return r.broker("A", "truncate", **{"from": 3}, to=3, end=3, reason="epoch-answer", epoch=0)


def scenario2b(protocol: str) -> tuple[RunResult, list[Op]]:
    """Return KIP-101 scenario 2, compressed: diverged and stuck under hw, a permitted loss under kip101."""
    old = protocol == "hw"
    e0, e1 = (-1, -1) if old else (0, 1)
    m3 = [f"m3-{n}" for n in range(5)]
    r = Recorder(IDS, {"m1": ["m1-02"], "m2": ["m2-77"], "m3": m3})
    r.setup("kip101-2b", protocol, {"truncate_to": "high_watermark" if old else "epoch_answer"})
    _begin(r, epochs=not old)
    with r.step("append B m2", "m2 is committed on both, and is on A's disk. B has it in the page cache only."):
        acks = r.produce("m2", "B", 1, stored=e0)
        r.copy("A", "B", 1, 2, e0)
        r.broker("B", "high-watermark", to=2)
        r.broker("A", "high-watermark", to=2)
    with r.step("flush A"):
        r.fault("flush", "A", 9, "syncfs returned")
    with r.step("power-loss A B", "The power goes. Both restart, B first: it is elected, one record short."):
        powers = [r.fault("power-loss", node, 5, "FS_IOC_SHUTDOWN, mounted again") for node in "AB"]
    with r.step("restart B"):
        r.fault("restart", "B", 350, "answers ApiVersions")
        r.op(Source.BROKER, "B", "started", id=3, pid=5201, protocol=protocol)
        short = r.broker(
            "B",
            "recovered",
            log_end_offset=1,
            clean=False,
            cut_bytes=0,
            reason="torn",
            epochs=[],
            high_watermark=1,
        )
        elected = r.op(Source.METADATA, "metadata", "state", **PLACE, leader="B", epoch=1, isr=["B"], version=1)
        r.broker("B", "leader", epoch=1, log_end_offset=1, high_watermark=1, isr=[3], resumed=False, unclean=False)
    with r.step("append B m3 codec=gzip", "B takes m3, five records in one compressed batch, at m2's offset."):
        r.produce("m3", "B", 1, stored=e1)
        r.broker("B", "high-watermark", to=6)
    with r.step("restart A", "A returns with m2 and follows B."):
        r.fault("restart", "A", 360, "answers ApiVersions")
        r.op(Source.BROKER, "A", "started", id=7, pid=5290, protocol=protocol)
        r.broker(
            "A",
            "recovered",
            log_end_offset=2,
            clean=False,
            cut_bytes=0,
            reason="clean",
            epochs=[],
            high_watermark=2,
        )
        r.broker("A", "follower", epoch=1, leader=3, log_end_offset=2, high_watermark=2)
        stuck = 0
        if old:
            r.broker("A", "truncate", **{"from": 2}, to=2, end=2, reason="high-watermark", epoch=1)
            r.fabric("fetch", "A", "B", **PLACE, offset=2)
            stuck = r.broker(
                "A", "stuck", reason="offset out of order", error="batch 1–5 is before the log's end 2"
            )
        else:
            r.fabric("epoch-question", "A", "B", **PLACE, leader_epoch=0, version=0)
            r.fabric("epoch-answer", "A", "B", **PLACE, error=0, leader_epoch=-1, end_offset=1)
            r.broker("A", "truncate", **{"from": 2}, to=1, end=1, reason="epoch-answer", epoch=1)
            r.copy("A", "B", 1, 6, 1)
    b_log = [(e0, ["m1-02"]), (e1, m3)]
    a_log = [(e0, ["m1-02"]), (e0, ["m2-77"])] if old else b_log
    epochs = None if old else [(0, 0), (1, 1)]
    a_read = r.read_log("A", a_log, high_watermark=2 if old else 6, epochs=epochs)
    b_read = r.read_log("B", b_log, high_watermark=6, epochs=epochs)
    r.finish(["m1-02", *m3])
    permitted = Anomaly(
        kind=Kind.PERMITTED,
        topic=TOPIC,
        partition=0,
        ranges=((1, 2),),
        nodes=("A", "B"),
        epoch=0,
        sentence="m2 (offset 1) was acknowledged in epoch 0 and is gone from the leader's log; permitted, "
        "since B lost its unflushed bytes and A was down when B was elected in epoch 1.",
        proof=(*acks, *powers, short, elected, *b_read[:1]),
        checker="lost",
    )
    if not old:
        found = (permitted,)
        return sample_result(
            "kip101-2b", protocol, "permitted m2", "permitted m2", verdict=Verdict.PERMITTED, anomalies=found
        ), r.ops
    diverged = Anomaly(
        kind=Kind.DIVERGED,
        topic=TOPIC,
        partition=0,
        ranges=((1, 2),),
        nodes=("A", "B"),
        sentence="A has m2 at offset 1 where B has m3: A kept its tail, its high watermark being 2.",
        proof=(*a_read[2:3], *b_read[2:3]),
        checker="diverged",
    )
    hang = Anomaly(
        kind=Kind.STUCK,
        topic=TOPIC,
        partition=0,
        nodes=("A",),
        epoch=1,
        sentence="A never caught up: it fetches at 2, the middle of B's batch 1–5, which A may not append.",
        proof=(stuck, a_read[0]),
        checker="caught-up",
    )
    text = "permitted m2, diverged m2, stuck A"
    result = sample_result(
        "kip101-2b", "hw", text, text, verdict=Verdict.INVALID, anomalies=(permitted, diverged, hang)
    )
    return result, r.ops


def served() -> list[Op]:
    """Return a history whose schedule hits two processes of a service, and once a node with one of them."""
    r = Recorder(IDS, {"m1": ["m1-9a"]})
    r.setup("services", "kip101", {}, services=["coordinator-1", "coordinator-2"])
    _begin(r, epochs=True)
    with r.step("pause coordinator-1", "One of two coordinators is frozen, then killed with a follower."):
        r.fault("pause", "coordinator-1", 3, "pid 4107 stopped")
    with r.step("resume coordinator-1"):
        r.fault("resume", "coordinator-1", 2, "pid 4107 runs")
    with r.step("power-loss coordinator-1 A"):
        for node in ("coordinator-1", "A"):
            r.fault("power-loss", node, 12, "FS_IOC_SHUTDOWN, mounted again")
    with r.step("restart coordinator-1 A"):
        r.fault("restart", "coordinator-1", 900, "coordinator-1 is leader")
        r.fault("restart", "A", 400, "answers ApiVersions")
    with r.step("partition-isolate coordinator-2"):
        natures = {"effect": "partitioned", "band": "impaired"}
        r.fault("partition-isolate", "coordinator-2", 7, "frames lost: whole connections", **natures)
    with r.step("reconnect coordinator-2"):
        r.fault("reconnect", "coordinator-2", 7, "frames lost: 12", effect="none", heals=["partitioned"])
    with r.step("kill coordinator-2"):
        r.fault("kill", "coordinator-2", 7, "pid 4108 is gone")
    return r.ops


def unknown1() -> tuple[RunResult, list[Op]]:
    """Return scenario 1 with a precondition that was not met: A left the ISR, so that B's death proves nothing."""
    reason = (
        "line 12, `expect isr A B`: the ISR is {B} after 40.0 s; expected {A, B} before B dies, since a follower "
    )
    reason += "outside the ISR is not elected"
    r = Recorder(IDS, {"m1": ["m1-9a"], "m2": ["m2-4c"]})
    r.setup("kip101-1", "kip101-text", {"truncate_to": "epoch_answer"})
    _begin(r, epochs=True)
    with r.step("kill A", "A restarts. The controller does not notice: A stays in the ISR."):
        r.fault("kill", "A", 31, "pid 4107 is gone (waitid)")
        r.broker("B", "isr", isr=[3], version=1, epoch=0)
    with r.step("expect isr A B"):
        r.wait(40_000)
        raise StepFailedError(reason)
    result = sample_result(
        "kip101-1",
        "kip101-text",
        "none",
        "none",
        status=Status.UNKNOWN,
        verdict=Verdict.UNKNOWN,
        reason=reason,
        seconds=43.1,
    )
    return result, r.ops


def suite_of(results: Sequence[RunResult], **more: object) -> Suite:
    """Return a suite of these results."""
    defaults: dict[str, object] = {
        "name": "kip101",
        "started": "2024-05-14 09:31:07 UTC",
        "commit": "6377c4d",
        "host": "local",
        "target": "broker",
        "power_tier": "loop",
        "seed": 42,
        "rules": {},
        "results": tuple(results),
        "seconds": 71.3,
    }
    return Suite(**{**defaults, **more})  # type: ignore[arg-type]


def sample() -> tuple[Suite, Mapping[str, Sequence[Op]]]:
    """Return a suite of five results, one unknown, and their histories; kip101-2b has no run under kip101-text."""
    played = [scenario1("hw"), scenario1("kip101"), unknown1(), scenario2b("hw"), scenario2b("kip101")]
    return suite_of([result for result, _ in played]), {result.run: ops for result, ops in played}
