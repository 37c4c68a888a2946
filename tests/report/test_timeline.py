"""The items of a timeline, their lanes and their positions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from harness.model import Op, OpType, Source
from harness.report import svg
from harness.report.limits import TIMELINE_ITEMS_MAX
from harness.report.reading import Reading
from harness.report.replicas import replayed
from harness.report.run_view import view_of
from harness.report.timeline import timeline_of
from harness.report.timeline_items import Item, Timeline
from harness.report.timeline_svg import draw_timeline, lay_out, stacked
from tests.events.filled import filled
from tests.report.recorder import TOPIC
from tests.report.samples import IDS, sample_result, scenario1, scenario2b, served, unknown1


def _timeline(ops: Sequence[Op], proof: frozenset[int] = frozenset()) -> Timeline:
    reading = Reading(ops=ops)
    return timeline_of(reading, proof, replayed(reading, TOPIC, 0).appended)


def _labels(timeline: Timeline, lane: str) -> list[str]:
    return [i.label for i in timeline.items if i.lane == lane]


def test_every_source_has_a_lane() -> None:
    lanes = _timeline(scenario1("hw")[1]).lanes
    assert lanes == ("scenario", "client-0", "nemesis", "fabric", "metadata", "A", "B", "C")


def test_node_lane_tells_role_fault_append_cut_and_high_watermark() -> None:
    labels = _labels(_timeline(scenario1("hw")[1]), "A")
    for label in ("follows B e0", "killed", "leader e1", "m2@1–2", "cut 3→1", "HW 1", "recovered LEO 3"):
        assert label in labels


def test_fabric_lane_tells_question_answer_and_what_was_held() -> None:
    labels = _labels(_timeline(scenario1("kip101")[1]), "fabric")
    for label in ("A→B 0?", "A→B =3", "A→B fetch answer held"):
        assert label in labels


def test_fault_lasts_from_its_probe_to_the_restart() -> None:
    timeline = _timeline(scenario2b("hw")[1])
    (lost,) = [i for i in timeline.items if i.lane == "A" and i.label == "power lost"]
    assert lost.last is not None
    assert (lost.first.f, lost.last.f) == ("power-loss", "started")


def test_fault_that_was_not_healed_lasts_to_the_end() -> None:
    (killed,) = [i for i in _timeline(unknown1()[1]).items if i.label == "killed"]
    assert killed.last is None


@pytest.mark.parametrize(
    ("fault", "heal", "told"), [("pause", "resume", "paused"), ("zombie", "return", "zombie")]
)
def test_node_is_what_it_was_when_it_goes_on_or_returns(fault: str, heal: str, told: str) -> None:
    _, ops = scenario1("kip101")
    paused = list(ops)
    for f in (fault, heal):
        paused.append(
            Op(
                index=len(paused),
                time_ns=paused[-1].time_ns + 1,
                source=Source.NEMESIS,
                process="nemesis",
                type=OpType.OK,
                f=f,
                value={"nodes": ["A"]},
            )
        )
    assert _labels(_timeline(paused), "A")[-2:] == [told, "leader e1"]


def test_process_of_a_service_has_a_lane_with_its_faults_and_their_ends() -> None:
    timeline = _timeline(served())
    assert timeline.lanes[-5:] == ("coordinator-1", "coordinator-2", "A", "B", "C")
    told = ["running", "paused", "running", "power lost", "started again"]
    assert told == _labels(timeline, "coordinator-1")
    assert ["running", "partitioned", "killed"] == _labels(timeline, "coordinator-2")
    ends = {(i.lane, i.label): i.last and i.last.f for i in timeline.items if i.lane.startswith("coordinator")}
    assert "restart" == ends["coordinator-1", "power lost"]
    assert "reconnect" == ends["coordinator-2", "partitioned"]
    assert None is ends["coordinator-1", "started again"] is ends["coordinator-2", "killed"]


def test_fault_of_a_service_is_shaded_and_its_name_ends_with_its_number() -> None:
    ops = served()
    drawn = draw_timeline(_timeline(ops), ops)
    shades = [each.get("class") for each in ET.fromstring(drawn.plot).iter("rect")]
    assert (2, 2) == (shades.count("down st-paused"), shades.count("down st-down") - 1)  # A's power, too
    names = [text.text for text in ET.fromstring(drawn.names).iter("text")]
    assert {"coordin…or-1", "coordin…or-2", "metadata"} <= {*names}


def test_service_is_no_replica_and_no_node_of_the_set_up() -> None:
    ops = served()
    reading = Reading(ops=ops)
    assert (("coordinator-1", "coordinator-2"), (*IDS,)) == (reading.services, reading.nodes)
    view = view_of(sample_result("kip101-1", "kip101", "none", "none"), "run-1", ops)
    assert ("services", "coordinator-1 coordinator-2") in view.facts
    (_, lineage), *_ = view.lineages
    assert "coordin" not in lineage.plot + lineage.names


def test_node_that_reports_nothing_is_down_until_it_was_started_again() -> None:
    silent = [op for op in served() if op.source is not Source.BROKER]
    assert ["power lost", "started again"] == _labels(_timeline(silent), "A")


def test_failed_step_is_told_in_its_label() -> None:
    assert _labels(_timeline(unknown1()[1]), "scenario")[-1] == "4 ✗"


def test_records_of_one_name_are_one_bar() -> None:
    assert _labels(_timeline(scenario1("hw")[1]), "client-0") == ["m1", "m2 ×2", "read 0"]


def test_proof_is_flagged() -> None:
    cell, ops = scenario1("hw")
    proof = frozenset(cell.anomalies[0].proof)
    flagged = {op.index for i in _timeline(ops, proof).items if i.proof for op in i.ops}
    assert proof <= flagged
    assert not any(i.proof for i in _timeline(ops).items)


def test_too_many_items_are_left_out_and_counted_but_not_proof_nor_faults() -> None:
    cell, ops = scenario1("hw")
    long = list(ops)
    for n in range(1000):
        value = {"topic": TOPIC, "partition": 0, "to": n}
        long.append(
            Op(
                index=len(long),
                time_ns=long[-1].time_ns + 1,
                source=Source.BROKER,
                process="A",
                type=OpType.INFO,
                f="high-watermark",
                value=filled(Source.BROKER, "high-watermark", value),
            )
        )
    timeline = _timeline(long, frozenset(cell.anomalies[0].proof))
    assert len(timeline.items) == TIMELINE_ITEMS_MAX
    assert set(timeline.left_out) == {"high-watermark", "fetch"}
    assert len(_timeline(ops).items) + 1000 == TIMELINE_ITEMS_MAX + sum(timeline.left_out.values())


def test_no_two_labels_of_a_row_touch_and_time_never_goes_back() -> None:
    for _, ops in (scenario1("hw"), scenario2b("kip101"), unknown1()):
        timeline = _timeline(ops)
        items = stacked(timeline.items)
        layout = lay_out(timeline.lanes, items)
        places = [layout.xs[index] for index in sorted(layout.xs)]
        assert sorted(places) == places
        rows: dict[tuple[str, int], list[Item]] = {}
        for item in items:
            rows.setdefault((item.lane, item.row), []).append(item)
        for row in rows.values():
            for a, b in pairwise(row):
                assert layout.xs[a.first.index] + svg.text_px(a.label) < layout.xs[b.first.index]


def test_drawing_is_well_formed_and_every_item_has_its_history_line() -> None:
    _, ops = scenario1("hw")
    timeline = _timeline(ops)
    plot = ET.fromstring(draw_timeline(timeline, ops).plot)
    titles = [t.text or "" for t in plot.iter("title")]
    assert len(titles) == len(timeline.items)
    assert [t for t in titles if not re.match(r"history \d+ at \d+\.\d{9} s: ", t)] == []


def test_poll_is_a_tick_if_it_proves_an_anomaly_and_is_not_drawn_otherwise() -> None:
    asked = {"topic": "t", "partition": 0, "node": "A", "position": 0}
    answer = asked | {"records": [[offset, f"m{offset}"] for offset in range(500)], "high_watermark": 500}
    ops = list(scenario1("hw")[1])
    for process in ("client-8", "client-9"):
        for type_, value in ((OpType.INVOKE, asked), (OpType.OK, answer), (OpType.INVOKE, asked)):
            last = ops[-1]
            op = Op(
                index=last.index + 1,
                time_ns=last.time_ns + 1,
                source=Source.CLIENT,
                process=process,
                type=type_,
                f="poll",
                value=value,
            )
            ops.append(op)
    proof = ops[-2].index
    assert {*_timeline(ops).lanes}.isdisjoint({"client-8", "client-9"})
    shown = _timeline(ops, frozenset({proof}))
    assert ["poll"] == _labels(shown, "client-9")
    assert "client-8" not in shown.lanes
    drawn = draw_timeline(shown, ops)
    assert "poll" in drawn.plot
