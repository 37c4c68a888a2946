"""Before the first step the topics are made: by the operator where it makes them, else by the client."""

from __future__ import annotations

from collections.abc import Sequence

from harness.history.file import History, read_history
from harness.model import OpType, PreconditionError
from harness.scenario.file import Draw, parse
from harness.scenario.runner import Play
from harness.target.operator import Operator
from tests.scenario.fakes import FakeClient, FakeCluster

SCENARIO = """title T
source S
nodes B A replicas, C controller
records m1 1
produce m1 acks=all
expect hw: none
"""


class Makes(Operator):
    """An operator that makes topics, and notes what the client and the cluster were asked before."""

    def __init__(self, cluster: FakeCluster, client: FakeClient, error: str = "") -> None:
        self.made: list[tuple[str, Sequence[Sequence[str]]]] = []
        self.before: list[object] = []
        self._cluster, self._client, self._error = cluster, client, error

    def create(self, topic: str, assignments: Sequence[Sequence[str]]) -> str:
        self.made.append((topic, assignments))
        self.before += [*self._cluster.calls, *self._client.sent]
        if self._error:
            raise PreconditionError(self._error)
        return "made"


def play(history: History, *, creates: bool, error: str = "") -> tuple[FakeClient, Makes]:
    cluster, client = FakeCluster(history), FakeClient()
    operator = Makes(cluster, client, error)
    cluster.operator = operator if creates else Operator()
    run(SCENARIO, cluster, client)
    return client, operator


def run(text: str, cluster: FakeCluster, client: FakeClient) -> None:
    """Play a scenario."""
    scenario = parse("s", text, "s.txt", ())
    cluster.further = scenario.further
    draw = Draw(seed=1, ids=cluster.ids, counts={"m1": 1})
    Play(scenario=scenario, draw=draw, cluster=cluster, client=client, faults={}).run()


def test_operator_makes_the_topic_on_nodes_by_their_names_once_all_run(history: History) -> None:
    client, operator = play(history, creates=True)
    assert [("log", [["B", "A"]])] == operator.made
    assert {("start", name) for name in "ABC"} == {*operator.before}
    assert [] == [each for each in client.sent if each[0] == "topic"]
    assert ("m1", 1, {"acks": -1}) in client.sent


def test_client_makes_the_topic_on_nodes_by_their_numbers_where_the_operator_cannot(history: History) -> None:
    client, operator = play(history, creates=False)
    assert [("topic", (2, 1))] == [each for each in client.sent if each[0] == "topic"]
    assert [] == operator.made


def test_topic_that_the_operator_cannot_make_ends_the_run_before_its_first_step(history: History) -> None:
    client, operator = play(history, creates=True, error="no leaders")
    assert [("log", [["B", "A"]])] == operator.made
    assert [("read",)] == client.sent
    failed = [op for op in read_history(history.path) if op.type is OpType.FAIL]
    assert ["no leaders"] == [op.value["error"] for op in failed if op.f == "step"]


GROWS = """title T
source S
nodes B A replicas, C controller
partition orders-0 B A
partition orders-1 B A
records m1 1
produce m1 acks=all
remove orders-1
add orders-1
expect hw: none
"""


def grow(history: History, refusal: str = "") -> tuple[list[object], FakeClient]:
    """Play a removal and an addition by an operator that makes topics, or refuses to add to one."""
    cluster, client = FakeCluster(history), FakeClient()
    there, asked = {0: ("B", "A"), 1: ("B", "A")}, list[object]()

    class Grows(Makes):
        def remove(self, topic: str, partitions: Sequence[int]) -> str:
            asked.append(("remove", topic, tuple(partitions)))
            del there[1]
            return "removed"

        def add(self, topic: str, first: int, assignments: Sequence[Sequence[str]]) -> str:
            asked.append(("add", topic, first, [*map(tuple, assignments)]))
            if refusal:
                raise PreconditionError(refusal)
            return "added"

    cluster.operator = Grows(cluster, client)
    cluster.metadata.assignment = lambda topic: there if topic == "orders" else {0: ("B", "A")}
    run(GROWS, cluster, client)
    return asked, client


def test_operator_that_makes_topics_adds_their_partitions_too(history: History) -> None:
    asked, _ = grow(history)
    assert [("remove", "orders", (1,)), ("add", "orders", 1, [("B", "A")])] == asked
    told = [(op.process, op.type, op.f) for op in read_history(history.path) if op.f.endswith("-partitions")]
    assert [
        ("client-operator", each, f)
        for f in ("remove-partitions", "add-partitions")
        for each in (OpType.INVOKE, OpType.OK)
    ] == told


def test_addition_that_is_refused_may_be_granted_later(history: History) -> None:
    grow(history, refusal="no leader")
    (ended,) = [
        op for op in read_history(history.path) if op.f == "add-partitions" and op.type is not OpType.INVOKE
    ]
    assert (OpType.INFO, "no leader") == (ended.type, ended.value["error"])
