"""Only a paused node can be resumed."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError
from tests.nemesis.conftest import inject

pytestmark = pytest.mark.slow


def test_node_that_was_not_paused_cannot_be_resumed(cluster: Cluster) -> None:
    with pytest.raises(PreconditionError, match=r"resume A: pid \d+ is not stopped; expected a pause before"):
        inject("resume", cluster, "A")


def test_node_that_is_down_cannot_be_resumed(cluster: Cluster) -> None:
    inject("kill", cluster, "B")
    with pytest.raises(PreconditionError, match="resume B: no process of it runs"):
        inject("resume", cluster, "B")
