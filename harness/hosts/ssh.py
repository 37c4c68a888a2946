"""
Nodes as processes of machines that are reached over SSH; the harness, its links and the services stay here.

Nodes are given to the machines in turn. A machine has an agent (harness/hosts/remote/agent.py) that is the host
`local` there. What the harness reads of a node is a copy here, brought up to date at each look:

    RUN/nodes/NAME/data      of the node's data        RUN/nodes/NAME/log.txt   of what it printed
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from harness.ability import Ability
from harness.cleanup.ledger import Ledger, Reaped
from harness.clocks import Reading, Setting
from harness.cluster.disk_error import DiskError
from harness.hosts.local import LocalHost
from harness.hosts.machine_list import MachineList, read_machines
from harness.hosts.nodes import EVERYWHERE
from harness.hosts.remote.here import Here
from harness.hosts.remote.station import JAVA, Station
from harness.hosts.site import TIERS
from harness.launch import Launch, Place
from harness.model import FencepostError, PreconditionError, UsageError
from harness.packets import Packets

# Names the list of machines where no option does.
VARIABLE: Final = "FENCEPOST_HOSTS"
WATERMARK: Final = "watermark"
# Of the chance that a machine is sent: a seed that is drawn from the run's.
SEED_BITS: Final = 64


def listed(file: Path | None) -> Path:
    """Return the file that lists the machines: as given, or as the environment names it; UsageError for none."""
    named = os.environ.get(VARIABLE, "")
    if file is None and not named:
        raise UsageError(
            f"host ssh: no list of machines; expected --hosts FILE, or {VARIABLE}, a TOML file as in docs/hosts.md"
        )
    return file if file is not None else Path(named)


def require_listen(machines: MachineList) -> None:
    """Raise UsageError if the harness cannot listen on the address that the file names."""
    with socket.socket() as probe:
        try:
            probe.bind((machines.listen, 0))
        except OSError as error:
            raise UsageError(
                f"{machines.file}: listen: {machines.listen!r}: {error.strerror}; expected an address of this "
                "machine"
            ) from error


class SshHost:
    """The host `ssh`; see harness/hosts/base.py for every call."""

    java = JAVA

    def __init__(
        self,
        run_dir: Path,
        *,
        power_tier: str | None = None,
        drain: Callable[[str], None] | None = None,
        ports: range | None = None,
        machines: Path | None = None,
    ) -> None:
        """See harness.hosts.MakeHost."""
        if power_tier is not None and power_tier not in TIERS:
            raise UsageError(f"power tier {power_tier!r}: expected one of {', '.join(TIERS)}")
        self.name = "ssh"
        self.power_tier = ""
        self.power_reason = ""
        self._asked = power_tier
        self._run_dir = run_dir.absolute()
        self._drain = drain
        self._ports = ports
        self._file = machines
        self._list: MachineList | None = None
        # What is of the run on this machine: its folder, its ledger, its services.
        self._here = LocalHost(run_dir, power_tier=WATERMARK if power_tier == WATERMARK else None)
        self._stations: list[Station] = []
        self._of: dict[str, Station] = {}
        self._beside: dict[str, Here] = {}
        self._mutex = threading.Lock()
        self._closed = False

    def open(self) -> None:
        """Connect to all machines at once, reap what dead runs left on each, and choose the power tier."""
        self._list = read_machines(listed(self._file))
        require_listen(self._list)
        self._here.open()
        with ThreadPoolExecutor(len(self._list.machines)) as pool:
            opening = [pool.submit(self._connect, index) for index in range(len(self._list.machines))]
        try:
            # In the order of the file, whichever was there first.
            self._stations = [each.result() for each in opening]
            self._choose_tier()
        except BaseException:
            with suppress(FencepostError):
                self.close()
            raise

    def require_all(self) -> None:
        """Raise PreconditionError if a machine is lost."""
        for station in self._stations:
            if station.lost:
                raise PreconditionError(f"{station.lost}; expected it until the end of the run")

    @property
    def ledger(self) -> Ledger:
        """The ledger of what the run makes on this machine; each other has its own."""
        return self._here.ledger

    @property
    def reaped(self) -> Reaped:
        """What `open` undid of killed runs on this machine; those on others are undone there."""
        return self._here.reaped

    @property
    def bind_address(self) -> str:
        """The address of this machine that nodes can reach, from the list of machines."""
        assert self._list is not None, "open comes first"
        return self._list.listen

    def lacks(self, ability: Ability) -> str:
        """Return why this host cannot do it: what a machine lacks, since a fault may hit a node of any of them."""
        if ability in EVERYWHERE:
            return ""
        if ability is Ability.SERVICE_POWER_LOSS:
            reason = self._here.missing(ability)
            return f"host {self.name}: this machine: {reason}" if reason else ""
        for station in self._open_stations():
            if reason := station.lacks(ability):
                return f"host {self.name}: {station.machine}: {reason}"
        return ""

    def add_node(
        self, name: str, *, disk: bool, fails: bool = False, listeners: int = 2, beside: bool = False
    ) -> Place:
        """
        Make a node's disk on the next machine, and claim its ports there.

        One that is beside the harness is on this machine; nodes reach it through their links.
        """
        if beside:
            self._beside[name] = Here(self._here)
            return self._here.add_node(name, disk=disk, fails=fails, listeners=listeners)
        if listeners != 2:
            raise UsageError(f"node {name}: {listeners} listeners; expected 2 on another machine")
        with self._mutex:
            stations = self._open_stations()
            if name in self._of:
                raise UsageError(f"node {name}: added before; expected a new name")
            station = self._of[name] = stations[len(self._of) % len(stations)]
        return station.add_node(name, disk=disk, fails=fails, copy=self._run_dir / "nodes" / name)

    def start(self, name: str, launch: Launch) -> None:
        """Start the node's process."""
        self._station(name).start(name, launch)

    def alive(self, name: str) -> bool:
        """Return True if the node's process exists; a paused one does."""
        return self._station(name).alive(name)

    def kill(self, name: str) -> str:
        """SIGKILL the node's process; return when it has ended."""
        return self._station(name).act("kill", name)

    def stop(self, name: str) -> str:
        """SIGTERM the node's process; return when it has ended."""
        return self._station(name).act("stop", name)

    def pause(self, name: str) -> str:
        """Freeze the node's process; return when the kernel reports it as stopped."""
        return self._station(name).act("pause", name)

    def paused(self, name: str) -> bool:
        """Return True if the kernel reports the node's process as stopped."""
        return self._station(name).paused(name)

    def resume(self, name: str) -> str:
        """Resume a paused node; return when it runs."""
        return self._station(name).act("resume", name)

    def flush(self, name: str) -> str:
        """Make everything on the node's disk durable."""
        return self._station(name).act("flush", name)

    def unflushed(self, name: str) -> tuple[str, ...]:
        """Return the files of the node's disk that have bytes which a power loss would take now."""
        return self._station(name).unflushed(name)

    def power_loss(self, name: str, torn: Random | None = None) -> str:
        """Kill the node's process and undo what was not durable on its disk, but for some pages if torn."""
        seed = None if torn is None else torn.getrandbits(SEED_BITS)
        return self._station(name).act("power_loss", name, torn=seed)

    def lose_disk(self, name: str) -> str:
        """Give a node that is down an empty disk; a copy of what it had is kept in the run's folder here."""
        return self._station(name).lose_disk(name)

    def break_disk(self, name: str, error: DiskError) -> str:
        """Let the node's disk fail so from now on; return what was seen of it at once."""
        return self._station(name).see("break_disk", name, error=error)

    def disk_state(self, name: str) -> str:
        """Return what is wrong with the node's disk now, as the disk says."""
        return self._station(name).see("disk_state", name)

    def mend_disk(self, name: str) -> str:
        """Let the node's disk work again; return what it refused meanwhile."""
        return self._station(name).see("mend_disk", name)

    def set_clocks(self, name: str, setting: Setting, seen: Reading) -> None:
        """Set the clocks of the node's process."""
        self._station(name).set_clocks(name, setting, seen)

    def ask_clocks(self, name: str) -> Callable[[], str]:
        """Send the node's process the signal at which it prints its clocks; return what it has printed since."""
        return self._station(name).ask_clocks(name)

    def note_flushed(self, name: str, path: str, length: int) -> None:
        """Record that the node itself made the first `length` bytes of a file durable."""
        if self.power_tier == WATERMARK:  # the other tier has no use for it, and it would be a call for each flush
            self._station(name).act("note_flushed", name, path=path, length=length)

    def disk(self, name: str) -> Path:
        """Return a copy of the node's data directory as it is now; nothing written to it reaches the node."""
        return self._station(name).data(name)

    def unlink(self, name: str, path: str) -> None:
        """Remove a file from the node's disk."""
        self._station(name).act("unlink", name, path=path)

    def overwrite(self, name: str, path: str, position: int, was: bytes, now: bytes) -> None:
        """Write over bytes of a file of the node's disk in place, if they are still what they were."""
        self._station(name).act("overwrite", name, path=path, position=position, was=was.hex(), now=now.hex())

    def log_text(self, name: str) -> str:
        """Return everything that the node's processes have printed so far."""
        return self._station(name).log_text(name)

    def impair_packets(self, name: str, how: Packets) -> None:
        """Let this become of the node's packets from now on, on its machine."""
        self._station(name).act("impair_packets", name, how=how)

    def packets_impaired(self, name: str, how: Packets) -> bool:
        """Return True if this becomes of the node's packets now, as its machine's kernel says."""
        return self._station(name).packets_impaired(name, how)

    def packets_met(self, name: str, how: Packets) -> int:
        """Return how many packets of the node it was done to so far."""
        return self._station(name).packets_met(name, how)

    def pass_packets(self, name: str, how: Packets) -> None:
        """Let the node's packets pass again."""
        self._station(name).act("pass_packets", name, how=how)

    def close(self) -> None:
        """
        Undo everything on each machine that can be reached, then here; safe to call twice.

        Raises:
            FencepostError: A machine is lost, or something could not be undone.
        """
        with self._mutex:
            self._closed = True
            stations, self._stations = self._stations, []
        problems: list[str] = []
        try:
            if stations:
                with ThreadPoolExecutor(len(stations)) as pool:
                    problems = list(filter(None, pool.map(Station.close, stations)))
        finally:
            self._here.close()
        if problems:
            raise FencepostError(
                f"host in {self._run_dir}: not all is undone, each machine heals itself when it no longer hears "
                f"of this run: {'; '.join(problems)}"
            )

    def _connect(self, index: int) -> Station:
        """Open a machine's station, unless the host is closed meanwhile."""
        assert self._list is not None, "the list comes first"
        drain = self._drain or (lambda _: None)
        station = Station(self._list.machines[index], silence_s=self._list.silence_s, drain=drain)
        with self._mutex:
            if not self._closed:
                self._stations.append(station)
                return station
        station.close()
        raise UsageError(f"host in {self._run_dir}: closed while it was being opened; expected no close")

    def _choose_tier(self) -> None:
        """Open the run on each machine; all lose power in the same way, the best that all of them have."""
        assert self._list is not None, "the list comes first"
        with ThreadPoolExecutor(len(self._stations)) as pool:
            seen = list(pool.map(lambda each: each.open(tier=self._asked, ports=self._ports), self._stations))
        tiers = {str(each["tier"]) for each in seen}
        without = next((i for i, each in enumerate(seen) if each["tier"] == WATERMARK), 0)
        self.power_tier = WATERMARK if WATERMARK in tiers else TIERS[0]
        self.power_reason = f"{self._list.machines[without].name}: {seen[without]['reason']}"
        if len(tiers) > 1:
            for station, each in zip(self._stations, seen, strict=True):
                if each["tier"] != WATERMARK:
                    station.undo()
                    station.open(tier=WATERMARK, ports=self._ports)

    def _open_stations(self) -> list[Station]:
        if not self._stations:
            raise UsageError(f"host in {self._run_dir}: not open; expected open before any other call")
        return self._stations

    def _station(self, name: str) -> Station | Here:
        if name in self._beside:
            return self._beside[name]
        if name not in self._of:
            raise UsageError(f"node {name!r}: unknown; expected one of {', '.join(self._of) or 'none'}")
        return self._of[name]
