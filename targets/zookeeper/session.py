"""
A session of the harness in ZooKeeper, below the path of one run: what a target's view of its metadata stands on.

It does not go through the fabric: a node cut from ZooKeeper does not affect it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError
from kazoo.protocol.states import KazooState, ZnodeStat

from harness import limits
from harness.cleanup.process import until
from harness.launch import Address
from harness.model import HistoryError, PreconditionError
from harness.target.metadata import TargetRun
from targets.zookeeper.chroot import chroot_of
from targets.zookeeper.patience import impatient
from targets.zookeeper.server import mode_of
from targets.zookeeper.sessions import close_session, owner_of

_log = logging.getLogger("fencepost.zookeeper_view")
_log.setLevel(logging.CRITICAL)

_WRITES_MAX: Final = 100
# So many bytes of a node's data an error shows.
_SHOWN: Final = 200
# kazoo returns a session id as a signed number.
SESSION_MASK: Final = 0xFFFFFFFFFFFFFFFF


class ZooKeeperSession:
    """
    A session; all paths are below the run's.

    Args:
        run: its services are ZooKeeper's servers.

    Attributes:
        client: kazoo's client, for watches.
        lock: held while something is observed.

    Raises:
        PreconditionError: ZooKeeper does not answer in time.
    """

    def __init__(self, run: TargetRun) -> None:
        self.run = run
        self._servers = run.services
        self._address = run.services[0]
        # Why ZooKeeper is known to answer nobody, "" while it should answer.
        self._silent = ""
        self._chroot = chroot_of(run.folder)
        self.lock = threading.RLock()  # who listens to the history may read
        self._giving_up: threading.Timer | None = None
        self._ending = threading.Lock()
        hosts = ",".join(map(str, self._servers))
        root = _connect(hosts)
        try:
            root.ensure_path_async(self._chroot).get(timeout=limits.SERVICE_START_S_MAX)
        finally:
            _disconnect(root)
        self.client = _connect(f"{hosts}{self._chroot}")
        self.client.add_listener(self._state_changed)

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
        return int(self.client.client_id[0]) & SESSION_MASK if self.client.client_id else 0

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
                self.client.exists_async("/").get(timeout=limits.SERVICE_ANSWER_S_MAX)
            except (KazooException, self.client.handler.timeout_exception):
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
            _disconnect(self.client)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """In a watch: kazoo would print an error, and the run would go on without the observation."""
        try:
            with self.lock:
                yield
        except HistoryError:
            pass  # The history itself tells everybody that it cannot be written.
        except Exception as error:
            self.run.give_up(error)

    def look(self, path: str) -> tuple[bytes, ZnodeStat] | None:
        """Return a node's data and state; None if there is no such node."""
        self._require_answer()
        try:
            data, stat = self.client.get(path)
        except NoNodeError:
            return None
        except KazooException as error:
            raise PreconditionError(
                f"ZooKeeper at {self._address}: {error!r} on reading {path}; expected an answer"
            ) from error
        return data, stat

    def end_session(self, path: str) -> str:
        """End the session that owns an ephemeral node; return what was observed, as one line."""
        whole = f"{self._chroot}{path}"
        server = self._serving()
        session = owner_of(server, whole)
        if session is None:
            raise PreconditionError(f"no session owns {whole}; expected a registration to end")
        took_ms = close_session(server, session)
        return f"session 0x{session:x} closed in {took_ms:.0f} ms, {whole} gone"

    def read(self, path: str) -> bytes | None:
        """Return a node's data; None if there is no such node."""
        found = self.look(path)
        return None if found is None else found[0]

    def update(self, path: str, change: Callable[[bytes | None], bytes]) -> None:
        """
        Write what `change` makes of a node's data, None if there is no such node, with its parents.

        Raises:
            PreconditionError: ZooKeeper does not answer, or others write there each time in between; it says what.
        """
        there = "nothing"
        for _ in range(_WRITES_MAX):
            found = self.look(path)
            there = "nothing" if found is None else f"{found[0][:_SHOWN]!r} of version {found[1].version}"
            try:
                if found is None:
                    # With its data: a watcher would take an empty node for the request.
                    self.client.create(path, change(None), makepath=True)
                else:
                    self.client.set(path, change(found[0]), version=found[1].version)
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

    def delete(self, path: str) -> None:
        """Delete a node, if it is there."""
        try:
            self.client.delete(path)
        except NoNodeError:
            pass
        except KazooException as error:
            raise PreconditionError(f"ZooKeeper at {self._address}: {error!r} on deleting {path}") from error

    def close(self) -> None:
        """End the session; safe to call twice."""
        self.client.remove_listener(self._state_changed)
        if self._giving_up is not None:
            self._giving_up.cancel()
        self._end()


def owner(stat: ZnodeStat) -> int:
    """Return the session that owns an ephemeral node; 0 if the node is none."""
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
