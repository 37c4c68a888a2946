"""A state keeps the id of its topic, and no write of an older topic reaches it: what does is named."""

from __future__ import annotations

import pytest

from targets.broker.core.messages import NO_TOPIC_ID
from targets.simulator.oracles import Rule
from tests.simulator.oracles.planted import sentence_of, watched
from tests.simulator.oracles.test_office import write
from tests.simulator.worlds import state


@pytest.mark.parametrize(("topic_id", "says"), [
    (NO_TOPIC_ID, "is written without its topic's id, with A as leader"),
    (1, "is written as of 0x1, with A as leader"),
])  # fmt: skip
def test_state_that_is_of_no_topic_or_of_an_older_one_is_named(topic_id: int, says: str) -> None:
    world, oracles = watched()
    write(world, "A", isr=state(world).isr[:2])
    assert sentence_of(oracles, Rule.OFFICE) == ""
    write(world, "A", topic_id=topic_id)
    assert says in sentence_of(oracles, Rule.OFFICE)


def test_topic_without_an_id_needs_none() -> None:
    world, oracles = watched("kip320")
    write(world, "A", isr=state(world).isr[:2])
    assert sentence_of(oracles, Rule.OFFICE) == ""
