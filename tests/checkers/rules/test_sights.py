"""checkers/rules/sights: what the fabric saw of a follower that could not send at once contradicts nothing."""

from __future__ import annotations

import pytest

from checkers.rules.sights.fetches import asked_from
from harness.model import OpType, Source
from tests.checkers.golden import RECORDS
from tests.checkers.story import TOPIC, Story


@pytest.mark.parametrize("ready", [True, False])
def test_fetch_may_wait_until_its_leaders_new_process_serves(*, ready: bool) -> None:
    """B asks A, whose new process does not serve yet, and follows C in two epochs before its fetch is seen."""
    story = Story(RECORDS, "kip101", replicas="ABC", host="sim").started("A", "B", "C")
    story.leads("A", 0, 0, isr="ABC").follows("B", "A", 0, 0).fault("kill", "A").started("A")
    story.follows("B", "C", 1, 0).follows("B", "C", 2, 0)
    if ready:
        story.broker("A", "ready")
    fetch = {**TOPIC, "link": ["B", "A"], "offset": 0}
    for _ in range(7):  # so long that no frame was under way all the time
        story.add(Source.FABRIC, "fabric", OpType.INFO, "fetch", **fetch | {"link": ["C", "A"]})
    story.add(Source.FABRIC, "fabric", OpType.INFO, "fetch", **fetch)
    found = [text for node, text, _ in asked_from(story.ops) if node == "B"]
    assert ready == (found == [])
    assert ready or "which it did not follow" in found[0]


@pytest.mark.parametrize(("link", "asks"), [
    (("B", "metadata"), True),
    (("A", "metadata"), False),  # another node's
    (("B", "A"), False),
])  # fmt: skip
def test_fetch_may_wait_until_its_node_has_a_connection_to_zookeeper_again(
    link: tuple[str, str], *, asks: bool
) -> None:
    """B must ask where A is, is not connected to ZooKeeper, and follows C in two epochs before it is told."""
    story = Story(RECORDS, "kip101", replicas="ABC", host="sim").started("A", "B", "C")
    story.leads("A", 0, 0, isr="ABC").follows("B", "A", 0, 0)
    story.add(Source.FABRIC, "fabric", OpType.INFO, "close", link=list(link), connections=1)
    story.follows("B", "C", 1, 0).follows("B", "C", 2, 0)
    fetch = {**TOPIC, "link": ["B", "A"], "offset": 0}
    for _ in range(7):  # so long that no frame was under way all the time
        story.add(Source.FABRIC, "fabric", OpType.INFO, "fetch", **fetch | {"link": ["C", "A"]})
    story.add(Source.FABRIC, "fabric", OpType.INFO, "fetch", **fetch)
    assert asks == ("B" not in {node for node, *_ in asked_from(story.ops)})
