"""
NATS JetStream as a target: servers are nodes, a stream is a partition, its Raft group's term is the leader epoch.

There is no in-sync set: what is acknowledged is on a quorum, by default in memory. Servers emit no events: the
harness asks each one about itself, and reads the routes and the servers' logs. Consumers' state, mirrors,
key-value and object stores are no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.ability import Ability
from harness.launch import Launch
from harness.model import UsageError
from harness.target.log_client import clients_of
from harness.target.metadata import Metadata, TargetRun
from harness.target.services import Service
from harness.target.target import NodeSpec, Printed
from harness.target.traits import Commit, Epochs, Promise, Seen, Traits
from targets.nats.building import why_not
from targets.nats.clients.client import NatsClient
from targets.nats.clients.library import NatsPy
from targets.nats.config import FILE, MEMORY, conf
from targets.nats.logs.part import LOGS
from targets.nats.nemeses import FAULTS
from targets.nats.printed import Lines
from targets.nats.versions import ALWAYS, NAME, RELEASE, RELEASES, SYNC, VERSIONS, library, program_of, release_of
from targets.nats.wire.wire import WIRE
from targets.nats.words import WORDS

if TYPE_CHECKING:
    from targets.nats.operating import NatsOperator
    from targets.nats.view import NatsView

# raft.go: an election begins after 4 to 9 s without a word of a leader, a leader without its quorum steps down
# after 10 s, and a follower's catch-up that stalls is begun anew within 10 s more.
_ELECTION_S: Final = 20.0
_CATCH_UP_S: Final = 20.0

_TRAITS: Final = Traits(
    metadata="the Raft groups",
    epochs=Epochs.BESIDE,
    commit=Commit.QUORUM,
    seen=Seen.POLLED,
    dense=False,
    first_offset=1,
    tells_flushes=False,
    files_move=True,
    begins_flushed=True,
    election_s=_ELECTION_S,
    catch_up_s=_CATCH_UP_S,
)


class NatsTarget:
    """The target `nats`; see harness/target/target.py for every call."""

    name = NAME
    wire = WIRE
    words = WORDS
    clients = clients_of(NatsClient, creates_topics=True, beside=NatsPy())
    logs = LOGS
    abilities = frozenset({Ability.ELECT, Ability.MOVE, Ability.REMOVE, Ability.DEPOSE, Ability.CONTROLLER})
    services: tuple[Service, ...] = ()
    faults = FAULTS
    clocks = None
    downloads = None

    def __init__(self) -> None:
        self._lines = Lines()

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """Return the releases, each with its default `sync_interval` and with `always`."""
        return VERSIONS

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return the settings of a version; raise UsageError for a change: its variants are versions."""
        release_of(protocol)
        if changes:
            raise UsageError(
                f"rule {changes[0]!r}: nats has none; expected a version, one of {', '.join(VERSIONS)}"
            )
        return VERSIONS[protocol]

    def traits(self, protocol: str, changes: Sequence[str]) -> Traits:
        """Return what is true of a version: with `always` a record is on the disks of a quorum."""
        promise = Promise.DISK if self.rules(protocol, changes)[SYNC] == ALWAYS else Promise.MEMORY
        return replace(_TRAITS, named=f"{self.name}:{protocol}", promise=promise)

    def require(self, rules: Mapping[str, str]) -> None:
        """Check that the program of these rules' release is there, as it was built."""
        if why := why_not(RELEASES[rules[RELEASE]], library()):
            raise UsageError(f"{self.name}: {why}")

    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        """Return how to start a server; raise UsageError if its program is not the one that was built."""
        release, folder = release_of(protocol), library()
        if why := why_not(release, folder):
            raise UsageError(f"{spec.name}: {why}")
        program = program_of(release, folder)
        place = spec.place
        inside = f"{place.library}/{program.relative_to(folder)}" if place.library else str(program)
        return Launch(
            argv=(inside, "-c", f"{place.conf_dir}/{FILE}"),
            files={
                FILE: conf(
                    spec.name,
                    listens=place.client,
                    routes=place.internal,
                    peers=spec.peers,
                    data_dir=place.data_dir,
                    settings=spec.settings,
                    rules=rules,
                )
            },
            env={"GOMEMLIMIT": MEMORY},
            library=folder,
        )

    def metadata(self, run: TargetRun) -> NatsView:
        """Return what its servers say of their Raft groups."""
        from targets.nats.view import NatsView

        return NatsView(run)

    def operator(self, run: TargetRun, metadata: Metadata) -> NatsOperator:
        """Return who asks its JetStream API."""
        from targets.nats.operating import NatsOperator

        return NatsOperator(run, metadata)

    def printed(self, line: str) -> Printed | None:
        """Return what a line of a server's log reports about a stream."""
        return self._lines.read(line)


TARGET: Final = NatsTarget()
