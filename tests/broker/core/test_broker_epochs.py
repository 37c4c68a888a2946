"""A command for another registration than this process's own: a later one is refused, too."""

from __future__ import annotations

import pytest

from targets.broker.core.messages import ErrorCode, LeaderAndIsrResponse
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.zookeeper import broker_path
from tests.broker.core.asks import occupied
from tests.broker.core.bench import TP, Bench, answers
from tests.broker.core.test_bounces import SEEING, command, epochs_of, errors, stop


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_command_for_a_later_registration_is_refused_too_by_rule_and_the_broker_registers_again(
    protocol: str,
) -> None:
    """
    It is for whoever has replaced this registration.

    Source:  KIP-380; Kafka 2.2, KafkaApis.isBrokerEpochStale: a larger epoch is an illegal state.
    """
    bench = Bench(protocol, zk=occupied())
    bench.start(session=7)
    node = bench.zk.nodes[broker_path(1)]
    bench.zk.remove(broker_path(1))
    bench.zk.put(broker_path(1), node.data)  # by hand: the same contents, and no session's
    later = bench.zk.nodes[broker_path(1)].czxid
    for asked in (command(later), stop(later)):
        assert [ErrorCode.STALE_BROKER_EPOCH if protocol in SEEING else ErrorCode.NONE] == errors(bench, asked)
    assert {} == epochs_of(bench)
    bench.pass_ms(1)
    there = bench.zk.nodes[broker_path(1)]
    assert (7 if protocol in SEEING else 0) == there.owner
    if protocol in SEEING:
        assert there.czxid == bench.broker.state.registration > later
        assert [ErrorCode.NONE] == errors(bench, command(there.czxid))


@pytest.mark.parametrize("protocol", SEEING)
def test_command_that_comes_between_two_sessions_waits_until_the_broker_knows_its_registration(
    protocol: str,
) -> None:
    """Source: KAFKA-9839: the controller may know a registration before its broker does."""
    bench = Bench(protocol, zk=occupied())
    bench.start(session=7)
    first = bench.broker.state.registration
    bench.zk.close_session(7)
    bench.connect(0)
    assert [] == errors(bench, command(first, epoch=5))
    bench.hold(broker_path(1))
    bench.connect(8)
    assert [] == errors(bench, command(bench.zk.zxid + 1, epoch=6))
    released = answers(bench.release())
    told = [each.error for each in released if isinstance(each, LeaderAndIsrResponse)]
    assert [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NONE] == told
    assert {TP: 6} == epochs_of(bench)
