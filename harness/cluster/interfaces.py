"""
The interfaces of a cluster that the runner and the nemeses use: machines, links, time.

Environments implement them, with real nodes on a host or with the simulator, in one process and in virtual time.
Code that plays a scenario must wait through `Time`, never by a clock of its own: the simulator makes progress only
while someone waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from harness.ability import Ability
from harness.bit_rot import Flip, Where
from harness.clocks import Reading, Setting
from harness.cluster.disk_error import DiskError
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.packets import Packets

T = TypeVar("T")


class Time(Protocol):
    """How time passes for a run."""

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds; return False if it does not within the time."""

    def together(self, act: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """Call `act` for several nodes at once; return the results in the order of names."""


class Machines(Protocol):
    """
    The machines on which nodes run, by node name.

    Methods that inject a fault return what its probe saw.

    Attributes:
        disk_error_s: how long a broker at work may take to meet an error of its disk.

    Raises:
        PreconditionError: a fault's probe saw that it did not bite.
    """

    name: str
    power_tier: str
    disk_error_s: float

    def lacks(self, ability: Ability) -> str:
        """Return why these machines cannot do it, "" if they can."""

    def unfit(self, name: str, ability: Ability) -> str:
        """Return why this node's process, as it was started, cannot have it done to it, "" if it can."""

    def boot(self, name: str) -> None:
        """Start the node's process; raise UsageError if it dies at once."""

    def install(self, name: str, protocol: str, rules: Mapping[str, str]) -> None:
        """Have a node that is down follow this protocol, with these rules, from its next start on."""

    def alive(self, name: str) -> bool:
        """Return True if the node's process exists, even if it is paused."""

    def kill(self, name: str) -> str:
        """Kill the process; what it wrote stays in the page cache."""

    def stop(self, name: str) -> str:
        """Ask the process to end, and return when it has ended."""

    def pause(self, name: str) -> str:
        """Suspend the process."""

    def paused(self, name: str) -> bool:
        """Return True if the process is seen to be suspended."""

    def resume(self, name: str) -> str:
        """Resume a paused process."""

    def clocks(self, name: str) -> Reading:
        """Return what the node's process reads of its clocks now; it must run."""

    def set_clocks(self, name: str, setting: Setting, seen: Reading) -> None:
        """Set the node's clocks; `seen` is what its process read of them last."""

    def flush(self, name: str) -> str:
        """Flush the node's disk, from outside the node."""

    def unflushed(self, name: str) -> tuple[str, ...]:
        """Return the files of the node's disk that have bytes which a power loss would take, if it is known."""

    def power_loss(self, name: str) -> str:
        """Kill the process and lose what was not flushed; the disk can be read afterwards."""

    def torn_power_loss(self, name: str) -> str:
        """As power_loss, but some pages that were not flushed are there, and zeros in place of others."""

    def lose_disk(self, name: str) -> str:
        """Give the node an empty disk in place of its own; it must be down."""

    def break_disk(self, name: str, error: DiskError) -> str:
        """Let the node's disk fail so from now on; return what was seen of it at once, "" for nothing."""

    def mend_disk(self, name: str) -> str:
        """Let the node's disk work again; return what it refused meanwhile, "" for nothing."""

    def disk_state(self, name: str) -> str:
        """Return what is wrong with the node's disk now, as the disk says: one of DiskError, "" for nothing."""

    def impair_packets(self, name: str, how: Packets) -> None:
        """Let this become of the node's packets from now on."""

    def packets_impaired(self, name: str, how: Packets) -> bool:
        """Return True if this becomes of the node's packets now, as the machine says."""

    def packets_met(self, name: str, how: Packets) -> int:
        """Return how many packets of the node it was done to so far."""

    def pass_packets(self, name: str, how: Packets) -> None:
        """Let the node's packets pass again."""

    def flip(self, name: str, topic: str, partition: int, where: Where) -> Flip:
        """
        Flip one byte of a replica's files, through the filesystem, whether the node runs or not.

        It is in the middle of the records of the middle batch of the active segment, or of the newest closed one
        that has batches; or it is the first digit of the number of entries in the replica's epoch checkpoint, or,
        if that has none, in the node's checkpoint of high watermarks. Of a file of a state the target chooses it.
        """

    def read_again(self, name: str, flip: Flip) -> str:
        """Return what a file of a state says since a byte of it was flipped, "" if nothing new."""

    def delete_active_segment(self, name: str, topic: str, partition: int) -> str:
        """Delete the newest segment of a replica's log with its index files; the node must be down."""

    def replica_log(self, name: str, topic: str, partition: int) -> ReplicaLog | None:
        """Return a replica's log as its disk holds it now, None if there is none."""

    def second_store(self, name: str, topic: str, partition: int) -> tuple[str, Sequence[BatchSeen]]:
        """Return what a replica's second store is called and has on the disk; "" and nothing for none."""

    def log_end(self, name: str, topic: str, partition: int) -> int:
        """Return where a replica's log ends now, as its disk holds it; -1 if there is none."""

    def log_text(self, name: str) -> str:
        """Return what the node's processes printed so far."""

    def drain(self, name: str) -> None:
        """Wait until the history has every event that the node's dead processes emitted."""

    def close(self) -> None:
        """Take everything down; safe to call twice."""


class Held(Protocol):
    """A hold on a link."""

    @property
    def held(self) -> Sequence[object]:
        """All frames that it has held so far, in order."""


class Links(Protocol):
    """
    The links between nodes, and from each node to the metadata, whose end are named "metadata".

    All clients together are "clients", whose links only a cut that names them takes. A link is (src, dst) in the
    direction of its requests. `direction` is "request" or "answer". `cut`, `delay` and `double` return the rule
    that `heal` takes.
    """

    def hold(
        self, api: str, src: str, dst: str, direction: str, from_offset: int | None = None, *, multi: bool = False
    ) -> Held:
        """
        Hold every matching frame from now on, and all behind it.

        Args:
            from_offset: only fetches from there on.
            multi: only requests of several operations that hold together.
        """

    def release(self, hold: Held) -> None:
        """End a hold and deliver its frames, in order."""

    def drop(self, hold: Held) -> None:
        """End a hold, lose its frames, and reset their connections."""

    def release_all(self) -> None:
        """Release every hold, oldest first."""

    def cut(self, src: str, dst: str, *, both_ways: bool = False, close: bool = False) -> object:
        """Lose everything sent on the link; with `close` reset its connections, now and later."""

    def cut_links(self, links: Iterable[tuple[str, str]], *, of_1000: int = 1_000, seed: int = 0) -> object:
        """Lose what is sent on these links; or, by the seed, so many of 1,000 frames, with their connections."""

    def delay(self, api: str, src: str, dst: str, direction: str, seconds: float) -> object:
        """Deliver every matching frame later by that time."""

    def double(self, api: str, src: str, dst: str) -> object:
        """Deliver every matching request twice from now on; the sender sees one answer."""

    def heal(self, rule: object) -> None:
        """Undo a cut, a delay or a doubling."""

    def lift(self, rule: object) -> None:
        """Undo a rule of any kind."""

    def stands(self, rule: object) -> bool:
        """Return True while a rule of any kind is in force."""

    def affected(self, rule: object) -> Mapping[tuple[str, str], int]:
        """Return the frames that a rule has taken, by link; 0 for a link where it took connections only."""

    def heal_all(self) -> None:
        """Undo every cut, delay and doubling, and release every hold."""

    def connections(self, src: str, dst: str) -> int:
        """Return how many connections of the link are open now."""

    def close(self) -> None:
        """End all links."""


class Services(Protocol):
    """
    The services of one run alone. Methods that inject or undo a fault return what was seen.

    Ordinary faults hit one process, as a node of the machines. What is here is of all processes of a kind.

    Raises:
        PreconditionError: what is asked for was not seen in time, or these services cannot do it.
    """

    @property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """The processes of each kind."""

    @property
    def linked(self) -> tuple[str, ...]:
        """The processes that nodes reach by links of their own, and not by links to the metadata."""

    @property
    def out(self) -> bool:
        """Whether nobody is answered about metadata."""

    def start(self, name: str) -> str:
        """Start a process that is down; return when it serves, or cannot since too few of its peers run."""

    def halt(self, kind: str) -> str:
        """Stop all processes of a kind from answering; no connection ends by it."""

    def lose_leader(self, kind: str) -> str:
        """Kill the process that leads the others; return when another leads and answers."""

    def lacking(self) -> str:
        """Return which processes do not serve, "" if all do."""

    def mend(self) -> str:
        """Let what the two faults above took away serve again; return when it does."""
