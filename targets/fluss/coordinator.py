"""The coordinator of a cluster of Fluss, which elects leaders: a service of each run, linked as servers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.launch import Address, Launch
from harness.model import FencepostError
from harness.target.services import Others, Process, Service
from harness.workload.plan import Place
from targets.fluss.clients.client import FlussClient
from targets.fluss.config import COORDINATOR
from targets.fluss.launching import launched
from targets.fluss.tables import COORDINATORS
from targets.zookeeper import server as zookeeper
from targets.zookeeper.chroot import chroot_of
from targets.zookeeper.sessions import close_session, owner_of

NAME: Final = "coordinator"
_ASKED_S: Final = 0.5


def launch(process: Process, peers: Sequence[Process], others: Others) -> Launch:
    """Return how a coordinator is started."""
    del peers, others  # it is alone, and reaches ZooKeeper by its own links
    run, place = process.run, process.place
    assert run is not None, "a coordinator serves one run"
    return launched(
        COORDINATOR,
        process.name,
        place,
        release=run.protocol,
        reached=run.reached,
        zookeeper=run.metadata,
        folder=run.folder,
        settings=run.settings,
        rules=run.rules,
    )


def end_registration(process: Process) -> None:
    """
    End the session of a coordinator that was killed, as its timeout would; else the next one gives up.

    Raises:
        PreconditionError: ZooKeeper does not end it.
        OSError: ZooKeeper does not answer.
    """
    run = process.run
    assert run is not None, "a coordinator serves one run"
    server = next((each for each in run.past_links if zookeeper.mode_of(each)), run.past_links[0])
    session = owner_of(server, f"{chroot_of(run.folder)}{COORDINATORS}")
    if session is not None:
        close_session(server, session)


def mode_of(address: Address) -> str:
    """Return "active" if a coordinator answers at the address, else ""."""
    client = FlussClient(str(address), Place("", 0), _ASKED_S)
    try:
        return "active" if client.serves() else ""
    except (FencepostError, OSError):
        return ""


SERVICE: Final = Service(
    name=NAME, launch=launch, mode=mode_of, before_restart=end_registration, listeners=2, linked=True
)
