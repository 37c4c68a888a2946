"""The drawing of the lineage: marked offsets, truncated tails and labels."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

from harness.model import Op
from harness.report.lineage_svg import draw_lineage
from harness.report.reading import Reading
from harness.report.replicas import replayed, replicas_of
from harness.run.result import RunResult
from tests.report.recorder import TOPIC
from tests.report.samples import scenario1, scenario2b, unknown1


def _drawn(sample: tuple[RunResult, list[Op]]) -> tuple[list[str], list[str], ET.Element]:
    cell, ops = sample
    reading = Reading(ops=ops)
    replicas = replicas_of(reading, TOPIC, 0, replayed(reading, TOPIC, 0).cuts)
    drawing = draw_lineage(reading, TOPIC, 0, replicas, cell.anomalies)
    plot = ET.fromstring(drawing.plot)
    names = [t.text or "" for t in ET.fromstring(drawing.names).iter("text")]
    return names, [t.text or "" for t in plot.iter("text")], plot


def _classes(plot: ET.Element) -> list[str]:
    return [e.get("class", "") for e in plot.iter()]


def test_lost_offsets_are_marked_in_words_and_framed() -> None:
    _, texts, plot = _drawn(scenario1("hw"))
    assert "✗ lost 1–2" in texts
    assert "frame v-invalid" in _classes(plot)
    assert "lost at 1–2" in plot.get("aria-label", "")


def test_nothing_is_marked_when_nothing_was_found() -> None:
    _, texts, plot = _drawn(scenario1("kip101"))
    assert [t for t in texts if "lost" in t] == []
    assert [c for c in _classes(plot) if c.startswith("frame")] == []


def test_cut_is_drawn_hatched_with_from_to_and_reason() -> None:
    names, texts, plot = _drawn(scenario1("hw"))
    assert "cut 3 → 1, to its own high watermark" in texts
    assert sum(c == "hatch" for c in _classes(plot)) == 2
    assert "cut at 0.697 s" in names


def test_batches_without_an_epoch_say_so_and_epochs_are_named() -> None:
    assert "no epoch" in _drawn(scenario2b("hw"))[1]
    _, texts, plot = _drawn(scenario2b("kip101"))
    assert {"e0", "e1"} <= set(texts)
    assert {"seg ep0", "seg ep1"} <= set(_classes(plot))


def test_ends_and_high_watermarks_are_named_for_every_replica() -> None:
    names, _, _ = _drawn(scenario2b("hw"))
    assert {"A", "B", "LEO 2 · HW 2", "LEO 6 · HW 6"} <= set(names)


def test_offset_acknowledged_twice_has_two_rows() -> None:
    names, texts, _ = _drawn(scenario2b("hw"))
    assert "and later" in names
    assert "m3 ×5" in texts


def test_replica_that_was_not_read_says_so() -> None:
    _, texts, _ = _drawn(unknown1())
    assert texts.count("its files were not read") == 2


def test_check_sees_a_frame_that_is_missing() -> None:
    cell, ops = scenario1("hw")
    assert "frame v-invalid" not in _classes(_drawn((replace(cell, anomalies=()), ops))[2])
