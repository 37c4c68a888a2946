"""Each fault is in force at most once on a node, and faults are healed in a fixed order."""

from __future__ import annotations

from harness.cluster.in_force import FaultInForce, InForce
from harness.effect import DOWN, Effect


def record(*found: tuple[str, Effect, str]) -> InForce:
    made = InForce()
    for fault, effect, node in found:
        made.begin(FaultInForce(fault=fault, effect=effect, node=node))
    return made


def told(found: InForce) -> list[str]:
    return [f"{each.fault} {each.node}" for each in found]


def test_fault_is_in_force_once_on_a_node_but_two_of_one_effect_are_two() -> None:
    skews = (
        ("skew", Effect.CLOCK_WRONG, "A"),
        ("skew", Effect.CLOCK_WRONG, "A"),
        ("drift", Effect.CLOCK_WRONG, "A"),
    )
    assert ["skew A", "drift A"] == told(record(*skews))


def test_node_that_is_taken_down_is_paused_no_more() -> None:
    made = record(("pause", Effect.PAUSED, "A"), ("pause", Effect.PAUSED, "B"), ("kill", Effect.DOWN, "A"))
    assert ["pause B", "kill A"] == told(made)


def test_start_ends_whatever_took_the_node_down_and_nothing_else() -> None:
    made = record(
        ("zombie", Effect.CUT_OFF, "A"), ("kill", Effect.DOWN, "A"), ("power-loss", Effect.POWER_LOST, "B")
    )
    made.end("A", DOWN)
    made.end("B", DOWN)
    assert ["zombie A"] == told(made)


def test_healing_goes_by_effect_then_by_node_and_backwards_where_nodes_do_not_matter() -> None:
    made = record(
        ("kill", Effect.DOWN, "B"),
        ("power-loss", Effect.POWER_LOST, "A"),
        ("pause", Effect.PAUSED, "D"),
        ("pause", Effect.PAUSED, "C"),
        ("skew", Effect.CLOCK_WRONG, "A"),
        ("skew", Effect.CLOCK_WRONG, "B"),
        ("zombie", Effect.CUT_OFF, "B"),
    )
    order = [f"{each.fault} {each.node}" for each in made.in_order_of_healing()]
    assert ["pause C", "pause D", "zombie B", "skew B", "skew A", "power-loss A", "kill B"] == order


def test_what_was_moved_is_moved_back_once_nodes_that_were_down_are_up() -> None:
    """A move waits for its new replicas: the next one could not begin before it ends."""
    made = record(("move-away", Effect.MOVED_AWAY, "A"), ("kill", Effect.DOWN, "B"))
    assert ["kill B", "move-away A"] == [f"{each.fault} {each.node}" for each in made.in_order_of_healing()]


def test_paused_zombie_is_resumed_before_it_is_expected_to_register() -> None:
    made = record(("zombie", Effect.CUT_OFF, "A"), ("pause", Effect.PAUSED, "A"))
    assert ["pause A", "zombie A"] == [f"{each.fault} {each.node}" for each in made.in_order_of_healing()]
