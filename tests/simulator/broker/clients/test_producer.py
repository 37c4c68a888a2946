"""A workload's producer sends the records of a partition in one batch, or in two where the world splits them."""

from __future__ import annotations

from random import Random

import pytest

from harness.workload.plan import ACKS_ALL, Place, ProducerPlan
from harness.workload.script import ProducerScript
from targets.broker.core.events import Received
from targets.broker.core.messages import ProduceRequest
from targets.simulator.broker.clients.caller import Caller
from targets.simulator.broker.clients.metadata import Metadata
from targets.simulator.broker.clients.producer import SimProducer
from targets.simulator.broker.world import Randomness, World
from tests.simulator.worlds import TOPIC, Ops, Steps, cluster

PLACE = Place(TOPIC, 0)


def produced(split_share: float) -> tuple[list[int], Ops]:
    """Return how many batches each of a producer's requests had, and the history."""
    ops = Ops()
    world: World = cluster("kip380", randomness=Randomness(split_share=split_share))
    world.record_into(ops)
    steps = Steps(world, "A")
    plan = ProducerPlan(name="p", places=(PLACE,), acks=(ACKS_ALL,), batch=(3, 3), every_ms=(1, 2))
    caller = Caller(world, "p")
    known: dict[Place, str | None] = {PLACE: "A"}
    SimProducer(caller, ProducerScript(plan, 1), Metadata(caller, known, Random(1).choice), Random(1))
    world.run(0.2)
    requests = [event.request for event in steps.of(Received) if isinstance(event.request, ProduceRequest)]
    return [len(request.partitions[0].batches) for request in requests], ops


@pytest.mark.parametrize(("share", "expected"), [(0.0, {1}), (1.0, {2}), (0.5, {1, 2})])
def test_records_are_split_as_often_as_the_world_says(share: float, expected: set[int]) -> None:
    counts, _ = produced(share)
    assert expected == {*counts}


def test_split_records_are_acknowledged_at_offsets_in_their_order() -> None:
    _, ops = produced(1.0)
    done = [(value["offset"], value["value"]) for value in ops.of("produce") if value.get("offset") is not None]
    assert len(done) > 6
    assert [(number, f"p.{number}") for number in range(len(done))] == done
