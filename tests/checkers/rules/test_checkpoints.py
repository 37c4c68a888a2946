"""checkers/rules/chain/checkpoints.py: which flushes of an epoch checkpoint need a report."""

from __future__ import annotations

import pytest

from checkers.rules.chain.checkpoints import durable, unwritten
from checkers.rules.chain.node import Given, Node

GIVEN = Given(flushes=True)
EPOCHS = ((0, 0), (1, 4))
LENGTH = len("0\n2\n0 0\n1 4\n")


@pytest.mark.parametrize(("length", "said"), [(LENGTH, 0), (LENGTH + 6, 1)])
def test_flush_of_the_log_makes_the_checkpoint_durable_as_it_is(length: int, said: int) -> None:
    """A nemesis or a new segment flushes the log; a checkpoint of another length needs a report."""
    node = Node("A", epochs=EPOCHS, files=[length])
    durable(node)
    assert said == len(list(unwritten(node, GIVEN)))
