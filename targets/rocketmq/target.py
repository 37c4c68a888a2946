"""
Apache RocketMQ in controller mode as a target: brokers are nodes, a queue of a topic is a partition.

A controller elects masters, each in an epoch; a slave asks its master where each epoch began, and cuts its log to
what they have in common. The SyncStateSet is the in-sync set. Brokers emit no events: the harness asks controller
and brokers, and reads the wire and the brokers' files. DLedger's commit log, transactions, timers and the proxy
are no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.ability import Ability
from harness.launch import Address, Launch
from harness.model import UsageError
from harness.target.log_client import clients_of
from harness.target.metadata import Metadata, TargetRun
from harness.target.target import NodeSpec, Printed
from harness.target.traits import Commit, Epochs, Seen, Traits
from targets.rocketmq.building import class_path
from targets.rocketmq.clients.client import RocketClient
from targets.rocketmq.clients.library import JavaClient
from targets.rocketmq.config import OWNED, broker_conf, broker_launch, host_of
from targets.rocketmq.logs.reader import LOGS
from targets.rocketmq.printed import printed
from targets.rocketmq.services import CONTROLLER, NAMESRV, SERVICES
from targets.rocketmq.versions import NAME, RELEASE, RELEASES, VERSIONS, release_of
from targets.rocketmq.wire.wire import WIRE
from targets.rocketmq.words import WORDS

if TYPE_CHECKING:
    from targets.rocketmq.operating import RocketOperator
    from targets.rocketmq.view import RocketView

# A controller misses heartbeats for 10 s (controllerHeartBeatTimeoutMills). A slave without its master tries again
# after 5 s (AutoSwitchHAClient), and asks the name server where it is every 10 s at least.
_ELECTION_S: Final = 15.0
_CATCH_UP_S: Final = 30.0

_TRAITS: Final = Traits(
    metadata="the controller",
    epochs=Epochs.BESIDE,
    tells_flushes=False,
    begins_flushed=True,
    maps_log=True,
    one_group=True,
    seen=Seen.POLLED,
    election_s=_ELECTION_S,
    catch_up_s=_CATCH_UP_S,
)


class RocketTarget:
    """The target `rocketmq`; see harness/target/target.py for every call."""

    name = NAME
    wire = WIRE
    words = WORDS
    clients = clients_of(RocketClient, creates_topics=True, beside=JavaClient())
    logs = LOGS
    abilities = frozenset({Ability.ELECT})
    services = SERVICES
    faults: Mapping[str, object] = {}
    clocks = None
    downloads = None

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """Return the releases, each with three sets of settings."""
        return VERSIONS

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return the settings of a version; raise UsageError for what is no setting of a broker."""
        release_of(protocol)
        return {**VERSIONS[protocol], **dict(map(_setting, changes))}

    def traits(self, protocol: str, changes: Sequence[str]) -> Traits:
        """Return what is true of a version: by the defaults a record is acknowledged once the master has it."""
        waits = self.rules(protocol, changes).get("allAckInSyncStateSet") == "true"
        commit = Commit.IN_SYNC if waits else Commit.LEADER
        return replace(_TRAITS, named="" if changes else f"{self.name}:{protocol}", commit=commit)

    def require(self, rules: Mapping[str, str]) -> None:
        """Check that the jars of these rules' release are there, each as it is pinned."""
        class_path(RELEASES[rules[RELEASE]])

    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        """Return how to start a broker."""
        brokers = [spec.name, *(name for name in spec.peers if _kind_of(name) not in (NAMESRV, CONTROLLER))]
        conf = broker_conf(
            spec.name,
            spec.place,
            namesrvs=_named(spec, NAMESRV),
            controllers=_named(spec, CONTROLLER),
            priority=1 + sorted(brokers).index(spec.name),
            brokers=len(brokers),
            settings=spec.settings,
            rules=rules,
        )
        hosts = {spec.name: spec.place.client.host, **{name: each.host for name, each in spec.peers.items()}}
        return broker_launch(spec.place, release_of(protocol), conf, hosts)

    def metadata(self, run: TargetRun) -> RocketView:
        """Return what the controller says."""
        from targets.rocketmq.view import RocketView

        return RocketView(run)

    def operator(self, run: TargetRun, metadata: Metadata) -> RocketOperator:
        """Return who asks the controller and the brokers."""
        from targets.rocketmq.operating import RocketOperator

        return RocketOperator(run, metadata)

    def printed(self, line: str) -> Printed | None:
        """Return that its disk failed a broker, which goes on; all else that it prints names no topic."""
        return printed(line)


def _kind_of(name: str) -> str:
    """Return the service that a process is of."""
    return name.rpartition("-")[0]


def _named(spec: NodeSpec, service: str) -> list[Address]:
    """Return host and port of each process of a service, as the broker names it."""
    found = {name: each for name, each in spec.peers.items() if _kind_of(name) == service}
    return [Address(host=host_of(name), port=each.port) for name, each in sorted(found.items())]


def _setting(change: str) -> tuple[str, str]:
    name, equals, value = change.partition("=")
    if not equals or not name.isalnum() or not value or not change.isprintable() or "\\" in change:
        raise UsageError(f"rule {change!r}: expected a broker's setting, such as slaveTimeout=3000")
    if name in OWNED or name == RELEASE:
        raise UsageError(f"rule {change!r}: the harness sets {name} itself; expected another setting")
    return name, value


TARGET: Final = RocketTarget()
