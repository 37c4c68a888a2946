"""A disk's error takes its node down: by itself, or by an operator once the node says that it serves no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from harness.cluster.cluster import Cluster
from harness.cluster.disk_error import DiskError
from harness.cluster.failing_disk import fail
from harness.cluster.given_up import GivenUp
from harness.events import Printed
from harness.model import OpType, PreconditionError
from tests.scenario.fakes import FakeCluster


@dataclass
class Failing:
    """A cluster of one node, and what its disk and its process do."""

    ends: bool = False
    says: bool = False
    done: list[str] = field(default_factory=list)
    disk_error_s: float = 0.1
    cancelled: bool = False

    @property
    def host(self) -> Failing:
        return self

    time = host

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        assert seconds == self.disk_error_s
        return condition()

    def break_disk(self, name: str, error: DiskError) -> None:
        self.done.append(f"break {name} {error.value}")

    def mend_disk(self, name: str) -> str:
        self.done.append(f"mend {name}")
        return "ENOSPC at 1.blk"

    def alive(self, _: str) -> bool:
        return not self.ends and "kill A" not in self.done

    @property
    def given_up(self) -> GivenUp:
        return GivenUp(failed={"A"} if self.says else set())

    def kill(self, name: str) -> str:
        self.done.append(f"kill {name}")
        return ""

    def take_down(self, name: str, how: Callable[[str], str]) -> str:
        return how(name)

    def last_words(self, _: str) -> str:
        return "it said: out of space"


@pytest.mark.parametrize(
    ("ends", "says", "done"),
    [
        (True, False, ["break A full", "mend A"]),
        (False, True, ["break A full", "kill A", "mend A"]),
        (True, True, ["break A full", "mend A"]),
    ],
)
def test_node_is_down_once_it_has_ended_or_says_that_it_serves_no_more(
    ends: bool, says: bool, done: list[str]
) -> None:
    room = Failing(ends=ends, says=says)
    assert "it met ENOSPC at 1.blk; it said: out of space" == fail(cast(Any, room), "A", DiskError.FULL)
    assert done == room.done


def test_node_that_says_nothing_and_goes_on_is_left_at_work() -> None:
    room = Failing()
    with pytest.raises(PreconditionError, match=r"A goes on after 0.1 s; it met ENOSPC at 1.blk"):
        fail(cast(Any, room), "A", DiskError.FULL)
    assert ["break A full", "mend A"] == room.done


def test_node_has_failed_from_its_own_word_until_it_is_started_again(cluster: FakeCluster) -> None:
    whole = cast(Cluster, cluster)
    printed = Printed(topic="log", partition=0, what="failed", line="critical write error")
    op = cluster.record("B", OpType.INFO, printed)
    whole.listen(op)
    assert (set(), {"B"}) == (whole.given_up.exited, whole.given_up.failed)
    whole.given_up.starts("B")
    assert not whole.given_up.failed
