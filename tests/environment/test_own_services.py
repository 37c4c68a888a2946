"""A run's own services: what their disks can lose, and what is told of a process that does not come back."""

from __future__ import annotations

from typing import cast

import pytest

from harness.ability import Ability
from harness.environment.own_services import OwnServices
from harness.environment.served_host import served
from harness.environment.services import Own, start_own
from harness.hosts.base import Host
from harness.launch import Address, Launch, Place
from harness.model import PreconditionError
from harness.packets import Packets
from harness.target.services import Service

ADDRESS = Address(host="127.0.0.1", port=1)
START_S_MAX = 0.2
SAID = "2026-11-29 08:00:00 ERROR coordinator: no epoch in its file"


class FakeHost:
    """A host whose processes run from their start until they are killed, or end at once if they are to."""

    def __init__(self, *, lacks: str = "") -> None:
        self.disks: dict[str, bool] = {}
        self.running: set[str] = set()
        self.flushed: list[str] = []
        self.silent: list[str] = []
        self.asked = 0
        self.ends = False
        self.slow = False
        self.starts: list[str] = []
        self._lacks = lacks

    def lacks(self, ability: Ability) -> str:
        return self._lacks if ability is Ability.SERVICE_POWER_LOSS else ""

    def add_node(self, name: str, *, disk: bool, listeners: int, beside: bool) -> Place:
        assert (1, True) == (listeners, beside)
        self.disks[name] = disk
        return Place(
            data_dir="data",
            conf_dir="conf",
            python="python3",
            client=ADDRESS,
            internal=ADDRESS,
            client_outside=ADDRESS,
            internal_outside=ADDRESS,
        )

    def flush(self, name: str) -> str:
        assert self.alive(name), "it serves before"
        self.flushed.append(name)
        return "flushed"

    def start(self, name: str, launch: Launch) -> None:
        self.starts.append(name)
        if not self.ends:
            self.running.add(name)

    def kill(self, name: str) -> str:
        self.running.remove(name)
        return "killed"

    def impair_packets(self, name: str, how: Packets) -> None:
        self.silent.append(name)

    def alive(self, name: str) -> bool:
        return name in self.running

    def paused(self, name: str) -> bool:
        return False

    def mode(self) -> str:
        self.asked += 1
        return "standalone" if self.running and not self.slow else ""

    def log_text(self, name: str) -> str:
        return f"{name} starts\n{SAID}\n"


def opened(host: FakeHost, *, loses_power: bool = False) -> OwnServices:
    """Start one process of a service that serves as long as it runs."""
    service = Service(
        name="coordinator",
        launch=lambda process, peers, others: Launch(argv=("coordinator", process.name)),
        mode=lambda address: host.mode(),
        start_s_max=START_S_MAX,
    )
    own = Own(counts={"coordinator": 1}, loses_power=loses_power)
    started, _ = start_own(cast(Host, host), (service,), own, {})
    return OwnServices(cast(Host, host), started, None)


@pytest.mark.parametrize(("lacks", "disk"), [("", True), ("power tier watermark", False)])
def test_disk_of_a_service_loses_power_only_where_the_host_keeps_what_was_flushed(lacks: str, disk: bool) -> None:
    host = FakeHost(lacks=lacks)
    opened(host, loses_power=True)
    assert {"coordinator-1": disk} == host.disks
    assert ["coordinator-1"] * disk == host.flushed  # what it made before it served


def test_process_that_is_back_is_told_by_what_it_is() -> None:
    host = FakeHost()
    services = opened(host)
    with services.losing("coordinator-1"):
        host.kill("coordinator-1")
    assert "coordinator-1 is standalone" == services.start("coordinator-1")


def test_process_that_ends_while_it_starts_is_not_waited_for_and_its_words_are_told() -> None:
    host = FakeHost()
    services = opened(host)
    with services.losing("coordinator-1"):
        host.kill("coordinator-1")
    host.ends = True
    with pytest.raises(PreconditionError) as caught:
        services.start("coordinator-1")
    said = f"coordinator-1 is back, and ended: coordinator-1 gone; it said: coordinator-1 starts | {SAID}"
    assert said == str(caught.value)


def starting_slowly() -> tuple[FakeHost, OwnServices]:
    """Return a host, and services of which the process was started again and did not serve in time."""
    host = FakeHost()
    services = opened(host)
    with services.losing("coordinator-1"):
        host.kill("coordinator-1")
    host.slow = True
    with pytest.raises(PreconditionError, match="coordinator-1"):
        services.start("coordinator-1")
    return host, services


def test_process_that_did_not_serve_in_time_is_awaited_and_not_started_again() -> None:
    host, services = starting_slowly()
    host.slow = False
    assert "coordinator-1 is standalone" == services.start("coordinator-1")
    assert 2 == len(host.starts)  # the first of them before the run
    with pytest.raises(PreconditionError, match="it runs already"):
        services.start("coordinator-1")


def test_process_that_was_killed_while_it_was_awaited_is_started_again() -> None:
    host, services = starting_slowly()
    with services.losing("coordinator-1"):
        host.kill("coordinator-1")
    host.slow = False
    assert "coordinator-1 is standalone" == services.start("coordinator-1")
    assert 3 == len(host.starts)


def test_service_whose_packets_are_dropped_is_asked_once_so_that_one_is() -> None:
    host = FakeHost()
    services = opened(host)
    machines, before = served(cast(Host, host), services), host.asked
    machines.impair_packets("coordinator-1", Packets.DROPPED)
    assert (["coordinator-1"], before + 1) == (host.silent, host.asked)
    machines.impair_packets("A", Packets.DROPPED)
    assert (["coordinator-1", "A"], before + 1) == (host.silent, host.asked)
