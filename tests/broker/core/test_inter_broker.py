"""A name of a protocol says what a broker's program can, and what it speaks."""

from __future__ import annotations

import pytest

from targets.broker.core.inter_broker import SPOKEN, protocol_rules, spoken_by
from targets.broker.core.rules import PROTOCOLS, FetchSessions, as_text
from targets.broker.wire.versions import FETCH, OFFSET_FOR_LEADER_EPOCH, peer_rows
from tests.broker.core.bench import TP, Bench, log_of, recovery


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_a_protocols_own_name_has_its_own_rules(name: str) -> None:
    assert (PROTOCOLS[name], name) == (protocol_rules(name), spoken_by(name))
    assert PROTOCOLS[name] == protocol_rules(f"{name}@{name}")


def test_a_program_that_speaks_as_an_older_one_keeps_what_it_mended_by_itself() -> None:
    """Source: KIP-101, Compatibility, Deprecation, and Migration Plan, step 1."""
    rules, own, said = protocol_rules("kip320@hw"), PROTOCOLS["kip320"], PROTOCOLS["hw"]
    assert {name: getattr(said, name) for name in SPOKEN} == {name: getattr(rules, name) for name in SPOKEN}
    changed = {name for name, value in as_text(own).items() if as_text(rules)[name] != value}
    assert {*changed} - {*SPOKEN} == {"fetch_sessions"}
    assert (FetchSessions.NONE, "hw") == (rules.fetch_sessions, spoken_by("kip320@hw"))


def test_sessions_are_as_the_program_has_them_where_the_version_has_any() -> None:
    assert FetchSessions.FENCED is protocol_rules("kip380@kip320").fetch_sessions
    assert FetchSessions.NONE is protocol_rules("kip380@kip101").fetch_sessions


def test_brokers_speak_the_versions_of_the_protocol_that_they_are_to_speak() -> None:
    """Source: KIP-101, Compatibility: "The LeaderEpochRequest will only be sent if all brokers support it"."""
    rows = {name: peer_rows(name, protocol_rules(name)) for name in ("kip320@hw", "kip320@kip101", "kip320")}
    assert [False, True, True] == [OFFSET_FOR_LEADER_EPOCH in each for each in rows.values()]
    assert [5, 5, 10] == [each[FETCH].last for each in rows.values()]


@pytest.mark.parametrize(("name", "says"), [
    ("kip102", "'kip102': expected one of hw, kip101"),
    ("kip320@kip", "'kip'; expected one of hw, kip101"),
    ("hw@kip101", "hw cannot speak kip101; expected an older one after '@'"),
])  # fmt: skip
def test_a_wrong_name_is_refused(name: str, says: str) -> None:
    with pytest.raises(ValueError, match=f"protocol {name!r}: ") as raised:
        protocol_rules(name)
    assert says in str(raised.value)


@pytest.mark.parametrize("protocol", ["hw", "kip320@hw"])
def test_a_broker_without_epochs_leaves_no_checkpoint_of_them_behind(protocol: str) -> None:
    """Source: KAFKA-7897: an old epoch cache would be believed after the next upgrade."""
    bench = Bench(protocol_rules(protocol))
    log = log_of((0, 3), (1, 2))
    bench.start((log, recovery(log, file_epochs=[(0, 0), (1, 3)])))
    assert ([([], True, 5)], []) == (log.epoch_writes, bench.broker.state.replicas[TP].epochs.entries)
