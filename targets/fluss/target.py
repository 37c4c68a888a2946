"""
Apache Fluss as a target: tablet servers are nodes, log tables are topics, buckets are partitions.

Its servers emit no events: the harness watches ZooKeeper, the wire and the servers' logs. Key tables, partitioned
tables and tiered storage are no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.ability import Ability
from harness.downloads import Download
from harness.launch import Launch
from harness.model import UsageError
from harness.target.log_client import clients_of
from harness.target.metadata import Metadata, TargetRun
from harness.target.target import NodeSpec, Printed
from harness.target.traits import Epochs, Traits
from targets.fluss import coordinator, printed
from targets.fluss.clients.client import FlussClient
from targets.fluss.clients.pyfluss import Pyfluss
from targets.fluss.config import OWNED, TABLET
from targets.fluss.launching import launched
from targets.fluss.logs.reader import LOGS
from targets.fluss.versions import NAME, RELEASES, class_path, library, release_of
from targets.fluss.wire.wire import WIRE
from targets.fluss.words import WORDS
from targets.zookeeper.nemeses import FAULTS
from targets.zookeeper.server import ZOOKEEPER

if TYPE_CHECKING:
    from targets.fluss.view import FlussView

_TRAITS: Final = Traits(
    metadata="ZooKeeper",
    epochs=Epochs.NONE,
    marks_file="high-watermark-checkpoint",
    tells_flushes=False,
    refuses_old_membership=True,
)


class FlussTarget:
    """The target `fluss`; see harness/target/target.py for every call."""

    name = NAME
    wire = WIRE
    words = WORDS
    clients = clients_of(FlussClient, creates_topics=True, beside=Pyfluss())
    logs = LOGS
    abilities = frozenset({Ability.ELECT, Ability.EXPIRE, Ability.MEMBERS})
    services = (ZOOKEEPER, coordinator.SERVICE)
    faults = FAULTS
    clocks = None

    def downloads(self, version: str) -> Sequence[Download]:
        """Return the jars of a release; of all releases for ""."""
        wanted = [release_of(version)] if version else RELEASES.values()
        return tuple({each.path: each for release in wanted for each in release.files}.values())

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """Return the releases; each has the settings that Fluss has by itself."""
        return {name: {} for name in RELEASES}

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return the settings that a release is given; raise UsageError for what is no setting of a server."""
        release_of(protocol)
        return dict(_setting(change) for change in changes)

    def traits(self, protocol: str, changes: Sequence[str]) -> Traits:
        """Return what is true of a release."""
        return replace(_TRAITS, named="" if changes else f"{self.name}:{protocol}")

    def require(self, rules: Mapping[str, str]) -> None:
        """Check that the cache has every jar, as it is pinned."""
        del rules
        for name in RELEASES:
            class_path(name, library())

    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        """Return how to start a tablet server."""
        return launched(
            TABLET,
            spec.name,
            spec.place,
            release=protocol,
            reached=spec.reached,
            zookeeper=spec.services,
            folder=spec.folder,
            settings=spec.settings,
            rules=rules,
            further={"tablet-server.id": str(spec.broker_id)},
        )

    def metadata(self, run: TargetRun) -> FlussView:
        """Return what stands in ZooKeeper."""
        from targets.fluss.view import FlussView

        return FlussView(run)

    def operator(self, run: TargetRun, metadata: Metadata) -> FlussView:
        """Return the same view of ZooKeeper, in which requests are made."""
        from targets.fluss.view import FlussView

        del run
        assert isinstance(metadata, FlussView), "these metadata are a view of ZooKeeper"
        return metadata

    def printed(self, line: str) -> Printed | None:
        """Return what a line of a server's log reports about a replica."""
        return printed.read(line)


def _setting(change: str) -> tuple[str, str]:
    name, equals, value = change.partition("=")
    if not equals or not name or not value or "\n" in change or ":" in name:
        raise UsageError(f"rule {change!r}: expected a server's setting, such as default.replication.factor=3")
    if name in OWNED:
        raise UsageError(f"rule {change!r}: the harness sets {name} itself; expected another setting")
    return name, value


TARGET: Final = FlussTarget()
