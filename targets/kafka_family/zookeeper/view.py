"""
The metadata and the operator of a cluster on ZooKeeper: reads what stands there, and records its changes.

It uses its own session, which does not go through the fabric: a broker cut from ZooKeeper does not affect it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError
from kazoo.protocol.states import KazooState, ZnodeStat

from harness import limits
from harness.cleanup.process import until
from harness.events import ControllerNamed, Members
from harness.launch import Address
from harness.metadata.recorder import Recorder
from harness.model import HistoryError, PreconditionError, TargetError
from harness.target.metadata import Metadata, Office, PartitionTruth, Place, TargetRun
from harness.target.operator import Operator
from targets.kafka_family.zookeeper.layout import Layout
from targets.kafka_family.zookeeper.opening import chroot_of
from targets.kafka_family.zookeeper.patience import impatient
from targets.kafka_family.zookeeper.server import mode_of
from targets.kafka_family.zookeeper.sessions import close_session, owner_of

# What kazoo calls with a node's data and state, None if there is no such node.
_Watch = Callable[[bytes | None, ZnodeStat | None], None]

_log = logging.getLogger("fencepost.zookeeper_view")
_log.setLevel(logging.CRITICAL)

_WRITES_MAX: Final = 100
# So many bytes of a node's data an error shows.
_SHOWN: Final = 200
# kazoo returns a session id as a signed number.
SESSION_MASK: Final = 0xFFFFFFFFFFFFFFFF


class RealZooKeeperView(Metadata, Operator):
    """
    The view of one cluster, below its chroot; see harness/target/metadata.py and operator.py for every call.

    Args:
        run: its services are ZooKeeper's servers.

    Raises:
        PreconditionError: ZooKeeper does not answer in time.
    """

    exact = True

    def __init__(self, *, run: TargetRun, layout: Layout) -> None:
        self._run = run
        self._servers = run.services
        self._address = run.services[0]
        # Why ZooKeeper is known to answer nobody, "" while it should answer.
        self._silent = ""
        self._chroot = chroot_of(run.folder)
        self._layout = layout
        self._ids = run.ids
        self._names = {broker_id: name for name, broker_id in run.ids.items()}
        self._recorder = Recorder(run.record, ())
        # Of each watched partition, the transaction that wrote the newest state recorded.
        self._newest: dict[tuple[str, int], int] = {}
        self._lock = threading.RLock()  # who listens to the history may read
        self._giving_up: threading.Timer | None = None
        self._ending = threading.Lock()
        hosts = ",".join(map(str, self._servers))
        root = _connect(hosts)
        try:
            root.ensure_path_async(self._chroot).get(timeout=limits.SERVICE_START_S_MAX)
        finally:
            _disconnect(root)
        self._client = _connect(f"{hosts}{self._chroot}")
        self._client.add_listener(self._state_changed)

    def _state_changed(self, state: str) -> None:
        """
        Give up when the connection stays lost; every call, also one in progress, then raises.

        Without it, kazoo waits for ever for a ZooKeeper that has ended.
        """
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None
        if state in {KazooState.SUSPENDED, KazooState.LOST} and not self._silent:
            self._giving_up = threading.Timer(limits.METADATA_LOST_S_MAX, self._end)
            self._giving_up.daemon = True
            self._giving_up.start()

    @property
    def session(self) -> int:
        """The harness's own session, 0 while it has none."""
        return int(self._client.client_id[0]) & SESSION_MASK if self._client.client_id else 0

    def expect_silence(self, why: str) -> None:
        """
        Know that ZooKeeper answers nobody from now on, because of a fault: no connection is given up for that.

        Until `await_answer` every call raises PreconditionError at once.
        """
        self._silent = why
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None

    def await_answer(self) -> None:
        """Return once ZooKeeper answers again; raise PreconditionError if it does not in time."""

        def answers() -> bool:
            try:
                self._client.exists_async("/").get(timeout=limits.SERVICE_ANSWER_S_MAX)
            except (KazooException, self._client.handler.timeout_exception):
                return False
            return True

        if not until(answers, limits.CONDITION_WAIT_S_MAX):
            raise PreconditionError(f"ZooKeeper at {self._address}: no answer; expected one, as its servers serve")
        self._silent = ""

    def _require_answer(self) -> None:
        if self._silent:
            raise PreconditionError(f"ZooKeeper answers nobody: {self._silent}; expected one that serves")

    def _serving(self) -> Address:
        """Return a server that serves; of a lone one nobody asks."""
        self._require_answer()
        if len(self._servers) == 1:
            return self._address
        return next((each for each in self._servers if mode_of(each)), self._address)

    def _end(self) -> None:
        with self._ending:
            _disconnect(self._client)

    def watch(self, places: Sequence[Place]) -> None:
        """Record every change of the partitions' nodes, the controller's and the registrations from now on."""
        self._recorder = Recorder(self._run.record, places)
        for topic, partition in places:
            self._newest[topic, partition] = 0
            self._client.DataWatch(
                self._layout.partition_path(topic, partition), self._state_changed_of(topic, partition)
            )
        for topic in dict.fromkeys(topic for topic, _ in places):
            self._client.DataWatch(self._layout.topic_path(topic), self._placement_changed_of(topic))
        self._client.DataWatch(self._layout.controller_path(), self._controller_changed)
        parent = self._layout.registration_path(0).rpartition("/")[0]
        self._client.ensure_path(parent)
        self._client.ChildrenWatch(parent, self._members_changed)

    # Each uses the data that its watch passes: another read could fail while ZooKeeper is being stopped.
    def _state_changed_of(self, topic: str, partition: int) -> _Watch:
        def changed(data: bytes | None, stat: ZnodeStat | None) -> None:
            with self._observing():
                if data is not None and stat is not None:
                    self._record_state((topic, partition), self._truth_in(data, stat), stat)

        return changed

    def _placement_changed_of(self, topic: str) -> _Watch:
        def changed(data: bytes | None, _stat: ZnodeStat | None) -> None:
            with self._observing():
                found: Mapping[int, tuple[int, ...]] = {}
                with suppress(ValueError, TargetError):  # what else somebody wrote there is for brokers to name
                    found = self._layout.assignment(data or b"")
                self._recorder.note_placed(topic, self._by_name(found))

        return changed

    def _record_state(self, place: Place, truth: PartitionTruth, stat: ZnodeStat) -> None:
        """Record a partition's state, from a watch or from a read, unless a newer one is recorded."""
        with self._lock:
            if stat.mzxid >= self._newest[place]:
                self._newest[place] = stat.mzxid
                self._recorder.note(truth.event(*place))

    def _controller_changed(self, data: bytes | None, _stat: ZnodeStat | None) -> None:
        with self._observing():
            node = None if data is None else self._name_of(self._layout.controller_id(data))
            self._recorder.note(ControllerNamed(node=node))

    def _members_changed(self, children: list[str]) -> None:
        with self._observing():
            names = (self._name_of(int(child)) for child in children)
            self._recorder.note(Members(nodes=tuple(sorted(names, key=str))))

    @contextmanager
    def _observing(self) -> Iterator[None]:
        """In a watch: kazoo would print an error, and the run would go on without the observation."""
        try:
            with self._lock:
                yield
        except HistoryError:
            pass  # The history itself tells everybody that it cannot be written.
        except Exception as error:
            self._run.give_up(error)

    def _name_of(self, broker_id: int) -> str | None:
        return self._names.get(broker_id)

    def _truth_in(self, data: bytes, stat: ZnodeStat) -> PartitionTruth:
        return self._layout.partition_state(data, stat.version).named(self._name_of)

    def truth(self, topic: str, partition: int) -> PartitionTruth | None:
        """
        Return the partition's state in ZooKeeper now; None while there is none.

        A state that the run acts on is in the history before that, though its watch may fire later.
        """
        found = self._read(self._layout.partition_path(topic, partition))
        if found is None:
            return None
        truth = self._truth_in(*found)
        if (topic, partition) in self._newest:
            self._record_state((topic, partition), truth, found[1])
        return truth

    def assignment(self, topic: str) -> Mapping[int, tuple[str | None, ...]]:
        """Return the nodes of each partition of a topic now; {} if there is no such topic."""
        data = self.read(self._layout.topic_path(topic))
        return self._by_name({} if data is None else self._layout.assignment(data))

    def _by_name(self, found: Mapping[int, tuple[int, ...]]) -> Mapping[int, tuple[str | None, ...]]:
        return {partition: tuple(map(self._name_of, ids)) for partition, ids in found.items()}

    def controller(self) -> str | None:
        """Return the current controller's node name; None if there is no controller."""
        office = self.office()
        return None if office is None else office.node

    def office(self) -> Office | None:
        """Return who made the controller's node, in which session, and by which transaction; None without it."""
        found = self._read(self._layout.controller_path())
        if found is None:
            return None
        node = self._name_of(self._layout.controller_id(found[0]))
        return Office(node=node, member=_owner(found[1]), incarnation=int(found[1].czxid))

    def incarnation(self, name: str) -> int:
        """Return the session that owns the node's registration now; 0 if it is not registered."""
        found = self._read(self._layout.registration_path(self._ids[name]))
        return 0 if found is None else _owner(found[1])

    def elections_asked(self) -> tuple[int, int]:
        """Return how often children of the request's parent came or went, and what wrote the one that is there."""
        path = self._layout.elections_path()
        parent, request = self._read(path.rpartition("/")[0]), self._read(path)
        return 0 if parent is None else int(parent[1].cversion), 0 if request is None else int(request[1].mzxid)

    def _read(self, path: str) -> tuple[bytes, ZnodeStat] | None:
        self._require_answer()
        try:
            data, stat = self._client.get(path)
        except NoNodeError:
            return None
        except KazooException as error:
            raise PreconditionError(
                f"ZooKeeper at {self._address}: {error!r} on reading {path}; expected an answer"
            ) from error
        return data, stat

    def expire(self, name: str) -> str:
        """End the session that owns the node's registration; return what was observed, as one line."""
        path = f"{self._chroot}{self._layout.registration_path(self._ids[name])}"
        server = self._serving()
        session = owner_of(server, path)
        if session is None:
            raise PreconditionError(f"expire {name}: no session owns {path}; expected a registration to end")
        took_ms = close_session(server, session)
        return f"session 0x{session:x} closed in {took_ms:.0f} ms, {path} gone"

    def depose(self) -> str:
        """Delete the controller's node, so that the controller loses its role without failing."""
        path = self._layout.controller_path()
        found = self._read(path)
        if found is None:
            raise PreconditionError(f"depose: there is no {path}; expected a controller to depose")
        holder = self._name_of(self._layout.controller_id(found[0]))
        self._delete(path)
        now = self.controller()
        return f"{path} of {holder} deleted; {'there is no controller' if now is None else f'{now} is controller'}"

    def elect(self, topic: str, partition: int, name: str) -> str:
        """Ask the controller to make an ISR member the leader, although no broker failed; return the request."""
        return self._layout.elect(self, topic, partition, self._ids[name])

    def move(self, topic: str, partition: int, names: Sequence[str]) -> str:
        """Ask the controller to move a partition to these nodes; return what was asked."""
        return self._layout.move(self, topic, partition, [self._ids[name] for name in names])

    def remove(self, topic: str, partitions: Sequence[int]) -> str:
        """Ask the controller to take these partitions, its highest, out of a topic; return what was asked."""
        return self._layout.remove(self, topic, partitions)

    def wanted(self, topic: str, partition: int) -> tuple[str | None, ...]:
        """Return the nodes that a partition is to be on: those asked for last, else those that it is on."""
        return tuple(map(self._name_of, self._layout.wanted(self, topic, partition)))

    # --- an operator's access to ZooKeeper (`Port` of layout.py) ------------------------------
    def read(self, path: str) -> bytes | None:
        """Return a node's data; None if there is no such node."""
        found = self._read(path)
        return None if found is None else found[0]

    def update(self, path: str, change: Callable[[bytes | None], bytes]) -> None:
        """
        Write what `change` makes of a node's data, None if there is no such node, with its parents.

        Raises:
            PreconditionError: ZooKeeper does not answer, or others write there each time in between; it says what.
        """
        there = "nothing"
        for _ in range(_WRITES_MAX):
            found = self._read(path)
            there = "nothing" if found is None else f"{found[0][:_SHOWN]!r} of version {found[1].version}"
            try:
                if found is None:
                    # With its data: a watcher would take an empty node for the request.
                    self._client.create(path, change(None), makepath=True)
                else:
                    self._client.set(path, change(found[0]), version=found[1].version)
            except (BadVersionError, NodeExistsError, NoNodeError):
                continue
            except KazooException as error:
                raise PreconditionError(
                    f"ZooKeeper at {self._address}: {error!r} on writing {path}, where {there} was"
                ) from error
            return
        raise PreconditionError(
            f"{path}: written by others {_WRITES_MAX} times between a read and the write after it, the last time "
            f"over {there}; expected to write it once; is another operator at work?"
        )

    def _delete(self, path: str) -> None:
        """Delete a node, if it is there."""
        try:
            self._client.delete(path)
        except NoNodeError:
            pass
        except KazooException as error:
            raise PreconditionError(f"ZooKeeper at {self._address}: {error!r} on deleting {path}") from error

    def close(self) -> None:
        """End the session; safe to call twice."""
        self._client.remove_listener(self._state_changed)
        if self._giving_up is not None:
            self._giving_up.cancel()
        self._end()


def _owner(stat: ZnodeStat) -> int:
    return int(stat.ephemeralOwner) & SESSION_MASK


def _connect(hosts: str) -> KazooClient:
    """Start a session; PreconditionError when ZooKeeper does not answer in time, with the client closed."""
    client = KazooClient(hosts=hosts, handler=impatient(), logger=_log)
    try:
        client.start(timeout=limits.SERVICE_START_S_MAX)
    except client.handler.timeout_exception as error:
        _disconnect(client)
        raise PreconditionError(
            f"ZooKeeper at {hosts}: no session within {limits.SERVICE_START_S_MAX:g} s; expected one; "
            "is it running, and is the machine overloaded?"
        ) from error
    return client


def _disconnect(client: KazooClient) -> None:
    client.stop()
    client.close()
