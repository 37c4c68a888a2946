"""
The golden histories: for each checker, one run without findings and one with findings.

The files under golden/ are committed; `python -m tests.checkers.golden` rewrites them from the definitions here.
Most are small forms of KIP-101's scenarios: m1 is at offsets 0-2 and m2 at 3-4, so that names match ranges.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.model import Op, OpType, Source
from tests.checkers.story import TOPIC, Story

FOLDER = Path(__file__).with_name("golden")

M1 = ("m1-0", "m1-1", "m1-2")
M2 = ("m2-0", "m2-1")
M3 = ("m3-0", "m3-1", "m3-2")
RECORDS = {"m1": M1, "m2": M2, "m3": M3}


def replicated(protocol: str, leader: str = "B", follower: str = "A") -> Story:
    """Return a history in which both replicas have m1 and m2, and the follower's high watermark is before m2."""
    story = Story(RECORDS, protocol).started("A", "B", "C").elected(leader, 0)
    story.leads(leader, 0, 0).follows(follower, leader, 0, 0)
    story.sends("m1").append(leader, 0, 3, 0, "leader").append(follower, 0, 3, 0, "follower")
    story.passes(leader, 3).acked("m1", 0).passes(follower, 3)
    story.sends("m2").append(leader, 3, 5, 0, "leader").append(follower, 3, 5, 0, "follower")
    return story.passes(leader, 5).acked("m2", 3)


def scenario_1(protocol: str) -> Story:
    """Return scenario 1: A restarts with its high watermark before m2, then B dies, A leads and B follows."""
    story = replicated(protocol).fault("kill", "A").fault("restart", "A").started("A").recovered("A", 5)
    story.follows("A", "B", 0, 5)
    kept = 5
    if protocol == "hw":
        story.cut("A", 5, 3, "high-watermark")
        kept = 3
    story.fault("kill", "B").elected("A", 1, isr="A").leads("A", 1, kept, isr="A")
    story.fault("restart", "B").started("B").recovered("B", 5).follows("B", "A", 1, 5)
    if kept < 5:
        story.cut("B", 5, kept, "out-of-range", epoch=1)
    log = [(_stamp(protocol), M1), (_stamp(protocol), M2)][: 1 if kept < 5 else 2]
    epochs = None if protocol == "hw" else [(0, 0)]
    story.healed().log("A", log, epochs).log("B", log, epochs)
    return story.read(*(M1 if kept < 5 else M1 + M2)).done()


def scenario_2(protocol: str) -> Story:
    """Return scenario 2: m2 is flushed on A only, both lose power, and B leads and appends m3."""
    story = replicated(protocol).passes("A", 5).fault("flush", "A").fault("power-loss", "A", "B")
    story.fault("restart", "B").started("B").recovered("B", 3).elected("B", 1, isr="B").leads("B", 1, 3, isr="B")
    story.sends("m3").append("B", 3, 6, 1, "leader").passes("B", 6).acked("m3", 3)
    story.fault("restart", "A").started("A").recovered("A", 5).follows("A", "B", 1, 5)
    mine, theirs = [(-1, M1), (-1, M2), (-1, M3[2:])], [(-1, M1), (-1, M3)]
    if protocol == "hw":
        story.append("A", 5, 6, 1, "follower")
        return story.healed().log("A", mine).log("B", theirs).read(*M1, *M3).done()
    story.cut("A", 5, 3, "epoch-answer", epoch=1).append("A", 3, 6, 1, "follower")
    equal, epochs = [(0, M1), (1, M3)], [(0, 0), (1, 3)]
    return story.healed().log("A", equal, epochs).log("B", equal, epochs).read(*M1, *M3).done()


def scenario_2b() -> Story:
    """Return scenario 2 under hw with m3 in one compressed batch, which A cannot fetch from its middle."""
    story = replicated("hw").passes("A", 5).fault("flush", "A").fault("power-loss", "A", "B")
    story.fault("restart", "B").started("B").recovered("B", 3).elected("B", 1, isr="B").leads("B", 1, 3, isr="B")
    story.sends("m3").append("B", 3, 6, 1, "leader").passes("B", 6).acked("m3", 3)
    story.fault("restart", "A").started("A").recovered("A", 5).follows("A", "B", 1, 5)
    story.broker("A", "stuck", **TOPIC, reason="batch begins before the log's end", error="base 3, end 5")
    story.healed().log("A", [(-1, M1), (-1, M2)]).log("B", [(-1, M1), (-1, M3)])
    return story.read(*M1, *M3).done()


def scenario_3(protocol: str) -> Story:
    """Return scenario 3: A leads, m2 is flushed on B only, both lose power, A returns first; m3 has acks=1."""
    story = replicated(protocol, leader="A", follower="B").passes("B", 5).fault("flush", "B")
    story.fault("power-loss", "A", "B").fault("restart", "A").started("A").recovered("A", 3)
    if protocol == "hw":
        story.leads("A", 0, 3, resumed=True).sends("m3", 1).append("A", 3, 6, 0, "leader").acked("m3", 3, acks=1)
        story.fault("restart", "B").started("B").recovered("B", 5).follows("B", "A", 0, 5)
        story.append("B", 5, 6, 0, "follower").healed()
        story.log("A", [(-1, M1), (-1, M3)]).log("B", [(-1, M1), (-1, M2), (-1, M3[2:])])
        return story.read(*M1, *M3).done()
    story.elected("A", 1).leads("A", 1, 3)
    story.sends("m3", 1).append("A", 3, 6, 1, "leader").acked("m3", 3, acks=1)
    story.fault("restart", "B").started("B").recovered("B", 5).follows("B", "A", 1, 5)
    story.cut("B", 5, 3, "epoch-answer", epoch=1).append("B", 3, 6, 1, "follower").healed()
    equal, epochs = [(0, M1), (1, M3)], [(0, 0), (1, 3)]
    return story.log("A", equal, epochs).log("B", equal, epochs).read(*M1, *M3).done()


def two_leaders() -> Story:
    """Return scenario 3, in which B also acts as the leader of epoch 0."""
    return scenario_3("hw").leads("B", 0, 5)


def behind() -> Story:
    """Return a history in which B was killed before it copied m2; its log agrees with A's."""
    story = (
        Story(RECORDS, "kip101").started("A", "B", "C").elected("A", 0).leads("A", 0, 0).follows("B", "A", 0, 0)
    )
    story.sends("m1").append("A", 0, 3, 0, "leader").append("B", 0, 3, 0, "follower").acked("m1", 0)
    story.fault("kill", "B").sends("m2", 1).append("A", 3, 5, 0, "leader").acked("m2", 3, acks=1).healed()
    return story.log("A", [(0, M1), (0, M2)], [(0, 0)]).log("B", [(0, M1)], [(0, 0)]).read(*M1, *M2).done()


def with_logs(*a: tuple[object, ...], epochs: list[tuple[int, int]] | None = None, start: int = 0) -> Story:
    """Return a history in which A leads alone and has this final log."""
    story = Story({"m1": ("x",)}, "kip101", replicas=("A",)).started("A", "B", "C").elected("A", 0, isr="A")
    story.leads("A", 0, start, isr="A").sends("m1", 1).append("A", start, start + 1, 0, "leader").acked(
        "m1", start, acks=1
    )
    for epoch, _ in (epochs or [])[1:]:
        story.elected("A", epoch, isr="A")
    story.healed()
    return story.log("A", a, epochs, start).read("x").done()


def moved_on() -> Story:
    """Return a history in which A reports that it is stuck, then copies the rest."""
    story = replicated("kip101").append("B", 5, 8, 0, "leader")
    story.broker("A", "stuck", **TOPIC, reason="no answer", error="").append("A", 5, 8, 0, "follower")
    log, epochs = [(0, M1), (0, M2), (0, M3)], [(0, 0)]
    return story.healed().log("A", log, epochs).log("B", log, epochs).read(*M1, *M2, *M3).done()


def ends_itself(*, told: bool) -> Story:
    """Return a history in which B is killed and restarted; if `told`, it exits by itself before and after."""
    story = replicated("kip101")

    def exits(line: str) -> None:
        if told:
            story.broker("B", "printed", **TOPIC, what="exiting", line=line)

    exits("FATAL Exiting because log truncation is not allowed for partition t-0")
    exits("FATAL the same by another thread of the process")
    story.fault("kill", "B").fault("restart", "B")
    exits("FATAL Exiting because log truncation is not allowed for partition t-0")
    story.add(Source.RUNNER, "runner", OpType.FAIL, "exited", node="B", error="B ended by itself")
    log, epochs = [(0, M1), (0, M2)], [(0, 0)]
    return story.healed().log("A", log, epochs).log("B", log, epochs).read(*M1, *M2).done()


def random_run(*faults: str, seen_by_oracle: bool = False) -> Story:
    """Return a random run of one record with these faults; an oracle may report that A lacked the record."""
    story = (
        Story({"m1": ("x",)}, "kip101", random=True)
        .started("A", "B", "C")
        .elected("A", 0)
        .leads("A", 0, 0)
        .follows("B", "A", 0, 0)
    )
    story.sends("m1").append("A", 0, 1, 0, "leader").append("B", 0, 1, 0, "follower").passes("A", 1)
    story.acked("m1", 0)
    for fault in faults:
        story.fault(fault, "B")
    log, epochs = [(0, ("x",))], [(0, 0)]
    story.healed().log("A", log, epochs).log("B", log, epochs).read("x").done()
    if seen_by_oracle:
        sentence = "Step 9, at 0.030 s: x was committed at offset 0 and is not on A."
        seen = {"rule": "committed", "step": 9, "nodes": ["A"], "offset": 0, "sentence": sentence}
        story.add(Source.SIMULATOR, "simulator", OpType.INFO, "violation", **seen)
    world = {"steps": 20, "virtual_ns": 10**9, "metadata_faults_asked": 0, "metadata_faults_bit": 0}
    return story.add(Source.SIMULATOR, "simulator", OpType.INFO, "world", **world)


def without_evidence() -> Story:
    """Return a run without an acknowledgement or an end; a step, a fault and the reading of A's log failed."""
    story = Story(RECORDS).started("A", "B").elected("A", 0).leads("A", 0, 0).sends("m1")
    story.add(Source.RUNNER, "runner", OpType.FAIL, "step", line=4, text="kill B", error="B is not there")
    story.add(Source.NEMESIS, "nemesis", OpType.FAIL, "kill", nodes=["B"], error="still alive")
    story.add(Source.LOG, "A", OpType.FAIL, "snapshot", **TOPIC, error="no such folder")
    return story.log("B", [])


STORIES: dict[str, Callable[[], Story]] = {
    "lost-ok": lambda: scenario_1("kip101"),
    "lost-bad": lambda: scenario_1("hw"),
    "diverged-ok": behind,
    "diverged-bad": lambda: scenario_2("hw"),
    "leaders-ok": lambda: scenario_3("kip101"),
    "leaders-bad": two_leaders,
    "order-ok": lambda: with_logs((-1, ["x"]), (0, ["a"]), (-1, ["b"]), (2, ["c"]), epochs=[(0, 1), (2, 3)]),
    "order-bad": lambda: with_logs(
        (0, ["x"]), (2, ["a", "b"]), (1, ["c"]), (2, ["d"], 3), epochs=[(0, 0), (2, 1)]
    ),
    "holes-ok": lambda: with_logs((0, ["x", "a"], 5), (0, ["b"]), epochs=[(0, 5)], start=5),
    "holes-bad": lambda: with_logs((0, ["x", "a"]), (0, ["b"], 11), (0, ["c"], 14), epochs=[(0, 0)]),
    "checkpoint-ok": lambda: with_logs(
        (0, ["x"]), (2, ["a"]), (3, ["b"]), epochs=[(0, 0), (1, 1), (2, 1), (3, 2), (4, 3)]
    ),
    "checkpoint-bad": lambda: with_logs((0, ["x"]), (2, ["a"]), (3, ["b"]), epochs=[(0, 0), (3, 1), (4, 9)]),
    "caught-up-ok": moved_on,
    "caught-up-bad": scenario_2b,
    "exited-ok": lambda: ends_itself(told=False),
    "exited-bad": lambda: ends_itself(told=True),
    "unchecked-ok": lambda: scenario_2("kip101"),
    "unchecked-bad": without_evidence,
    "vacuous-ok": lambda: random_run("pause", "resume"),
    "vacuous-bad": lambda: random_run("flush"),
    "oracles-ok": lambda: random_run("kill", "restart"),
    "oracles-bad": lambda: random_run("kill", "restart", seen_by_oracle=True),
}


def text_of(name: str) -> str:
    """Return the text that the golden file of that name must have."""
    return "".join(op.to_json() + "\n" for op in STORIES[name]().ops)


def ops_of(name: str) -> list[Op]:
    """Return the ops in the golden file of that name."""
    return [Op.from_json(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def _stamp(protocol: str) -> int:
    return -1 if protocol == "hw" else 0


if __name__ == "__main__":
    for each in STORIES:
        (FOLDER / f"{each}.jsonl").write_text(text_of(each), encoding="utf-8")
