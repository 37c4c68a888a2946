"""The benchmark of a workload: its run has the workload's clients, and what they did is counted once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from benchmarks.workload import Figures, counted, main, spec_of, table_of
from harness.events import Event, Poll, Produce, Step
from harness.model import Op, OpType
from harness.scenario.text import text_of
from harness.workload.plan import Place
from workloads import WORKLOADS

POLL = Poll(topic="log", partition=0, node="A", position=0)
SENT = Produce(topic="log", partition=0, name="p1", acks=-1, codec="none", value="p1.0")


@pytest.mark.parametrize("name", WORKLOADS)
def test_run_has_the_workloads_clients_on_every_partition(name: str) -> None:
    spec = spec_of(name, 3, 5)
    places = (Place("log", 0), Place("log", 1), Place("orders", 0))
    assert places == tuple(spec.scenario.places)
    assert WORKLOADS[name].clients(places, seed=5) == spec.scenario.clients
    assert "pass 3000ms" in text_of(spec.scenario)


def test_polls_and_records_are_counted_from_what_ended_and_time_from_client_to_client() -> None:
    said: list[tuple[OpType, Event]] = [
        (OpType.INVOKE, Step(line=1, text="pass 1 s", narrative="")),
        (OpType.INVOKE, SENT),
        (OpType.INVOKE, replace(SENT, value="p1.10")),
        (OpType.OK, replace(SENT, offset=0)),
        (OpType.INFO, replace(SENT, value="p1.10", error="no answer")),
        (OpType.INVOKE, POLL),
        (OpType.OK, replace(POLL, records=((0, "p1.0"), (1, "p1.10")), high_watermark=2)),
        (OpType.INVOKE, POLL),
        (OpType.FAIL, replace(POLL, error="refused")),
    ]
    ops = [
        Op.of(event, index=at, time_ns=at * 500_000_000, process="client-1", type=type_)
        for at, (type_, event) in enumerate(said)
    ]
    found = counted(ops)
    expected = Figures(ops=9, polls=1, failed=1, read=2, read_bytes=9, sent=2, acknowledged=1, sent_bytes=9)
    expected.worked_s = 3.5
    assert expected == found


def test_table_has_every_figure_a_second() -> None:
    console = Console(width=100)
    with console.capture() as printed:
        console.print(table_of("append", Figures(ops=9, polls=100, read=5_000, worked_s=2.0, judged_s=0.5)))
    assert "2,500" in printed.get()
    assert "0.25" in printed.get()


def test_unknown_workload_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["--workload", "apend"])
    assert "unknown workload 'apend'" in capsys.readouterr().err
