"""
A fetch that a follower sent before it was shut down arrives afterwards: who is taken back into the ISR.

Source:  KAFKA-15021; KAFKA-14140; KIP-320, "Fencing"; KAFKA-9338.
"""

from __future__ import annotations

import pytest

from targets.broker.core.rules import PROTOCOLS, with_rule
from targets.broker.core.state import Role
from targets.broker_target.target import SETTINGS
from targets.simulator.broker.world import World
from tests.simulator.worlds import IDS, TP, WAIT_S, cluster, state


@pytest.mark.parametrize(
    ("protocol", "change", "comes_back"),
    [
        *((protocol, "", protocol != "kip380") for protocol in PROTOCOLS),
        ("kip380", "fetch_sessions=epoch_blind", True),
        ("kip320", "fetch_sessions=none", False),
    ],
)
def test_late_fetch_brings_a_follower_back_that_was_shut_down_where_its_epoch_is_not_checked(
    protocol: str, change: str, *, comes_back: bool
) -> None:
    rules = with_rule(PROTOCOLS[protocol], change) if change else PROTOCOLS[protocol]
    world = cluster(protocol, rules=rules, settings={**SETTINGS, "controlled_shutdown_ms": 5_000})
    world.run(1)  # so that B fetches within a session, where there are any
    hold = world.links.hold("fetch", "B", "A", "request")
    assert world.until(lambda: bool(hold.held), WAIT_S)
    world.nodes["B"].stop()
    assert world.until(lambda: state(world).isr == (IDS["A"],) and world.nodes["B"].process is None, WAIT_S)
    epoch = state(world).leader_epoch
    assert world.until(lambda: heard(world) == epoch, WAIT_S)
    world.links.release(hold)
    world.run(1)
    assert comes_back == (IDS["B"] in state(world).isr)
    assert epoch == state(world).leader_epoch == heard(world)


def heard(world: World) -> int:
    """Return the epoch in which A leads by its own word."""
    broker = world.nodes["A"].broker
    assert broker is not None
    assert broker.state.replicas[TP].role is Role.LEADER
    return broker.state.replicas[TP].leader_epoch
