"""
What an operator can ask of a cluster of RocketMQ, as `mqadmin updateTopic -b` and `mqadmin electMaster` do.

Source:  UpdateTopicSubCommand.java, ReElectMasterSubCommand.java; ReplicasInfoManager.electMaster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from harness.cleanup.process import until
from harness.model import FencepostError, PreconditionError, UsageError
from harness.target.metadata import Metadata, TargetRun
from harness.target.operator import Operator
from targets.rocketmq.asking import epochs_at
from targets.rocketmq.clients.connection import ask_once
from targets.rocketmq.config import CLUSTER, GROUP
from targets.rocketmq.view import RocketView
from targets.rocketmq.wire.frames import Code, Frame

_PATIENCE_S: Final = 3.0
# How long brokers may take from their start until all are in the SyncStateSet.
_WHOLE_S_MAX: Final = 60.0
# A slave that dials a broker in vain waits 5 s, and asks the name server where its master is every 10 s.
_JOINED_S_MAX: Final = 20.0
_ELECTIONS_MAX: Final = 5
_READ_AND_WRITE: Final = 6


class RocketOperator(Operator):
    """An operator of one run's cluster; see harness/target/operator.py for every call."""

    def __init__(self, run: TargetRun, metadata: Metadata) -> None:
        assert isinstance(metadata, RocketView), "these metadata are a view of the controller"
        self._run = run
        self._view = metadata

    def create(self, topic: str, assignments: Sequence[Sequence[str]]) -> str:
        """Make a topic at each broker, once all are in the SyncStateSet; the first of the group leads then."""
        nodes = [*self._run.nodes]
        if any({*names} != {*nodes} for names in assignments):
            raise UsageError(
                f"topic {topic} on {' and '.join(map(' '.join, assignments))}: all brokers of a group have all of "
                f"its topics; expected each partition on {' '.join(nodes)}"
            )
        if not until(self._is_whole, _WHOLE_S_MAX):
            raise PreconditionError(f"create {topic}: {self._view.brokers()}; expected all in the SyncStateSet")
        for name in nodes:
            self._make(topic, len(assignments), name)
        self._view.made(topic, len(assignments))
        self._lead(topic, assignments[0][0])
        return f"{topic} with {len(assignments)} queues at {', '.join(nodes)}"

    def elect(self, topic: str, partition: int, name: str) -> str:
        """Have the controller elect a broker."""
        truth = self._view.truth(topic, partition)
        if truth is not None and truth.leader == name:
            return f"{name} is master already"
        fields = {
            "clusterName": CLUSTER,
            "brokerName": GROUP,
            "brokerId": self._number_of(name),
            "designateElect": "true",
        }
        self._ask_controller(Code.ElectMaster, fields, f"elect {name}")
        return f"the controller was asked to elect {name}"

    def _is_whole(self) -> bool:
        found = self._view.brokers()
        if found is None or found.master is None:
            return False
        members = {self._view.node_of(each) for each in found.replicas if each.in_sync and each.alive}
        return members >= {*self._run.nodes}

    def _make(self, topic: str, queues: int, name: str) -> None:
        fields = {
            "topic": topic,
            "defaultTopic": "TBW102",
            "readQueueNums": queues,
            "writeQueueNums": queues,
            "perm": _READ_AND_WRITE,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": "false",
        }
        self._ask(str(self._run.nodes[name]), Code.UpdateAndCreateTopic, fields, f"create {topic} at {name}")

    def _lead(self, topic: str, name: str) -> None:
        """
        Return once the controller says that a broker leads, and it acts as master, with all in the SyncStateSet.

        A slave may follow a master that is none any more, for ever; it looks anew when there is another epoch.
        """
        others = [each for each in self._run.nodes if each != name]
        for _ in range(_ELECTIONS_MAX):
            if until(lambda: self._leads(topic, name), _JOINED_S_MAX):
                return
            if others and (truth := self._view.truth(topic, 0)) is not None and truth.leader == name:
                self.elect(topic, 0, others[0])
        raise PreconditionError(
            f"create {topic}: {self._view.brokers()}; expected {name} to lead, with all in the SyncStateSet"
        )

    def _leads(self, topic: str, name: str) -> bool:
        truth = self._view.truth(topic, 0)
        if truth is None or truth.leader is None:
            return False
        if truth.leader != name:
            with suppress(PreconditionError):  # asked again once it can
                self.elect(topic, 0, name)
            return False
        told = epochs_at(str(self._run.nodes[name]))
        return told is not None and told.leads and self._is_whole()

    def _number_of(self, name: str) -> int:
        found = self._view.brokers()
        for each in [] if found is None else found.replicas:
            if self._view.node_of(each) == name:
                return each.number
        raise PreconditionError(f"elect {name}: the controller knows no such broker; expected it registered")

    def _ask_controller(self, code: Code, fields: Mapping[str, object], what: str) -> Frame:
        why = "no controller runs"
        for address in self._run.services:
            try:
                return ask_once(str(address), code, fields, within_s=_PATIENCE_S)
            except (OSError, FencepostError) as error:
                why = str(error)
        raise PreconditionError(f"{what}: {why}; expected the controller to do it")

    def _ask(self, address: str, code: Code, fields: Mapping[str, object], what: str) -> Frame:
        try:
            return ask_once(address, code, fields, within_s=_PATIENCE_S)
        except (OSError, FencepostError) as error:
            raise PreconditionError(f"{what}: {error}; expected it to be done") from error
