"""One codec writes and reads events: JSON survives unchanged, unknown events are kept, wrong values are named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.events import (
    EVENTS,
    FAILED,
    Append,
    Event,
    Heal,
    Injection,
    MetadataState,
    Release,
    Snapshot,
    SnapshotFailed,
    Source,
    Step,
    Truncate,
    Unknown,
)
from harness.events.codec import EventKey, decode, encode, key_of, keys_of, text_of
from harness.history.file import read_history
from harness.history.memory import MemoryHistory
from harness.model import HistoryError, Op, OpType, events_of
from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player
from targets import VIRTUAL_HOST as SIM
from tests.checkers.golden import FOLDER
from tests.events.filled import filled
from tests.kept import keep

# One value for each type that a field may have, and for null.
VALUES: tuple[Any, ...] = (
    7,
    True,
    "text",
    2.5,
    ["A", "B"],
    [["A", "B"], ["C"]],
    [3, 4],
    [[1, 2], [3, 4]],
    [[0, "text"]],
    [[0, "0123", "text"]],
    {"A": 1},
    {"m1": ["m1.0"]},
    {"rule": "yes"},
)


def whole(kind: type[Event]) -> dict[str, Any]:
    """Return a value with every key that the event can have."""
    return {each.key: _fitting(each) for each in keys_of(kind)}


def _fitting(key: EventKey) -> Any:
    for value in VALUES:
        try:
            key.read(value)
        except Exception:
            continue
        return value
    raise AssertionError(f"{key.key}: no value of its type here; expected one in VALUES")


def op(source: Source, f: str, value: Mapping[str, Any], type_: OpType = OpType.INFO) -> Op:
    return Op(index=3, time_ns=0, source=source, process="p", type=type_, f=f, value=value)


@pytest.mark.parametrize(("source", "f"), EVENTS, ids=str)
def test_event_that_is_written_and_read_is_the_same(source: Source, f: str) -> None:
    kind = EVENTS[source, f]
    for value in (whole(kind), filled(source, f, {})):
        event = decode(source, f, OpType.INFO, value)
        assert kind is type(event)
        assert json.dumps(value) == json.dumps(encode(event))
        assert event == decode(source, f, OpType.INFO, json.loads(json.dumps(encode(event))))
        assert (source, f) == key_of(event)


def test_replica_that_could_not_be_read_is_another_event_than_its_snapshot() -> None:
    value = {"topic": "log", "partition": 0, "problems": ["no log directory"]}
    failed = decode(Source.LOG, "snapshot", OpType.FAIL, value)
    assert SnapshotFailed(topic="log", partition=0, problems=("no log directory",)) == failed
    assert ((Source.LOG, "snapshot"), value) == (key_of(failed), encode(failed))
    assert Snapshot is EVENTS[Source.LOG, "snapshot"]
    assert [(Source.LOG, "snapshot")] == [*FAILED]


def test_fault_of_any_name_is_an_injection_of_that_name() -> None:
    value = {"nodes": ["A"], "effect": "paused", "band": "paused", "heals": ["down"], "probe": ""}
    event = decode(Source.NEMESIS, "flip-a-bit", OpType.OK, value)
    assert (Source.NEMESIS, "flip-a-bit") == key_of(event)
    assert (
        Injection(name="flip-a-bit", nodes=("A",), effect="paused", band="paused", heals=("down",), probe="")
        == event
    )
    assert list(value.items()) == list(encode(event).items())


def test_key_beside_another_is_written_as_null_where_that_one_is_there() -> None:
    link = ("A", "B")
    assert {"link": ["A", "B"]} == encode(Heal(link=link))
    healed = Heal(link=link, api="Fetch", direction="answer")
    assert {"link": ["A", "B"], "api": "Fetch", "direction": "answer", "from_offset": None} == encode(healed)
    release = Release(link=link, api="Fetch", direction="answer", from_offset=None)
    assert encode(healed) == encode(release)


def test_key_of_another_name_is_the_one_that_is_written() -> None:
    cut = Truncate(topic="log", partition=0, start=5, to=3, end=3, reason="full", epoch=1)
    assert ("from", 5) == list(encode(cut).items())[2]


@pytest.mark.parametrize("source", [each for each in Source if each is not Source.NEMESIS])
def test_unknown_event_is_kept_as_it_is(source: Source) -> None:
    value = {"topic": 7, "isr": None}
    event = op(source, "sharded", value).event
    assert Unknown(source=source, f="sharded", value=value) == event
    assert ((source, "sharded"), value) == (key_of(event), encode(event))


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"isr": None}, r"key 'isr' is None; expected a list of strings or null"),
        ({"isr": ["A", 7]}, r"key 'isr' is \['A', 7\]; expected a list of strings or null"),
        ({"epoch": "1"}, r"key 'epoch' is '1'; expected an integer"),
        ({"epoch": True}, r"key 'epoch' is True; expected an integer"),
        ({"leader": 4}, r"key 'leader' is 4; expected a string or null"),
    ],
)
def test_value_that_does_not_fit_is_named_when_it_is_asked_for(changed: dict[str, Any], complaint: str) -> None:
    good = {"topic": "t", "partition": 0, "leader": None, "epoch": 1, "isr": ["A", None], "version": 2}
    assert isinstance(op(Source.METADATA, "state", good).event, MetadataState)
    bad = op(Source.METADATA, "state", {**good, **changed})
    with pytest.raises(HistoryError, match=rf"^op 3: metadata 'state': {complaint}$"):
        _ = bad.event


def test_missing_key_is_named_when_the_event_is_asked_for() -> None:
    bad = op(Source.BROKER, "append", {"topic": "t", "partition": 0})
    with pytest.raises(HistoryError, match="op 3: broker 'append': there is no key 'base'; expected an integer"):
        _ = bad.event
    assert [] == list(events_of([bad], Truncate))


def test_list_of_another_length_than_a_pair_does_not_fit() -> None:
    for epochs in ([[0]], [[0, 1, 2]], [0], {"0": 1}):
        value = filled(Source.LOG, "snapshot", {"epochs": epochs}, OpType.OK)
        with pytest.raises(HistoryError, match="expected a list of lists of 2 integers or null"):
            _ = op(Source.LOG, "snapshot", value, OpType.OK).event


def test_event_is_decoded_once_and_anew_after_a_change() -> None:
    append = op(Source.BROKER, "append", filled(Source.BROKER, "append", {"base": 4}))
    assert append.event is append.event
    changed = replace(append, value={**append.value, "base": 5})
    assert [4, 5] == [event.base for event in (append.event, changed.event) if isinstance(event, Append)]


def test_event_that_is_recorded_is_the_one_that_its_op_says() -> None:
    history = MemoryHistory(Path("T"), lambda: 0)
    step = Step(line=1, text="kill A", narrative="")
    assert history.record("runner", OpType.INVOKE, step).event is step
    assert {"line": 1, "text": "kill A", "narrative": ""} == history.ops[0].value


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_golden_history_is_the_same_after_reading_and_writing(path: Path) -> None:
    ops = list(read_history(path))
    again = [
        Op.of(each.event, index=each.index, time_ns=each.time_ns, process=each.process, type=each.type)
        for each in ops
    ]
    assert [each.to_json() for each in ops] == [each.to_json() for each in again]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", keep(["hw", "kip380"], "kip380"))
def test_run_records_known_events_of_the_types_that_they_may_have(protocol: str) -> None:
    runs = RandomRuns(target="broker", variant=protocol, host=SIM)
    player = sim_player(runs.load_target())
    for seed in range(4):
        history = MemoryHistory(Path("T"))
        player.play_into(history, runs.spec(seed), Path())
        for each in history.ops:
            read = Op.from_json(each.to_json())
            assert not isinstance(read.event, Unknown), each
            assert each.type in read.event.TYPES, each
            assert read.event == each.event
            assert json.dumps(read.value) == json.dumps(encode(read.event))


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int | None, "an integer or null"),
        (tuple[int, ...], "a list of integers"),
        (tuple[tuple[int, str], ...], "a list of lists [an integer, a string]"),
        (Mapping[str, tuple[str, ...]], "an object of lists of strings"),
    ],
)
def test_type_is_said_in_words(hint: object, text: str) -> None:
    assert text == text_of(hint)
