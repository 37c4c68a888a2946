"""What the runner needs of a workload's client; workloads/ has them, and the simulator one of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from harness.model import PreconditionError


class Underway(Protocol):
    """A produce that was begun and not waited for."""

    @property
    def done(self) -> bool:
        """Whether every record has its outcome."""

    def result(self) -> list[int]:
        """Give the offsets of what is done; PreconditionError when a record was not acknowledged."""


class Client(Protocol):
    """
    The clients of one run; every call is one process of the history.

    Raises:  PreconditionError when the cluster does not do what the scenario needs of it; UsageError when the
             client cannot do what is asked.
    """

    @property
    def sends_once(self) -> bool:
        """Whether no record is ever sent again, so that it stands at the offset that was told and nowhere else."""

    def create_topic(self, topic: str, replicas: Sequence[int]) -> None:
        """Make the topic."""

    def produce(
        self,
        topic: str,
        partition: int,
        name: str,
        values: Sequence[str],
        *,
        acks: int,
        codec: str = "none",
        singly: bool = False,
        via: str = "",
        timeout_s: float | None = None,
    ) -> list[int]:
        """
        Send records; give their offsets.

        Shapes:  via is who is sent to, whoever leads: its address, or its name where nodes have no addresses;
                 "" for who leads by the cluster's word.
        Units:   timeout_s is for the whole call; None: as long as any operation of a client may take.
        Raises:  PreconditionError when a record was not acknowledged.
        """

    def begin_produce(
        self,
        topic: str,
        partition: int,
        name: str,
        values: Sequence[str],
        *,
        acks: int,
        codec: str = "none",
        singly: bool = False,
        via: str = "",
        timeout_s: float | None = None,
    ) -> Underway:
        """Send records as `produce` does, and do not wait for their outcome."""

    def read_all(self, topic: str, partition: int, *, via: str = "") -> list[tuple[int, str]]:
        """Read what a consumer may see; via as for produce."""


class InThread:
    """
    A produce under way in a thread of its own, for clients whose calls block.

    Raises:  whatever the call raised, from result; nothing before.
    """

    def __init__(self, call: Callable[[], list[int]]) -> None:
        self._offsets: list[int] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call,), name="produce", daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], list[int]]) -> None:
        try:
            self._offsets = call()
        except BaseException as error:
            self._error = error

    @property
    def done(self) -> bool:
        """Whether the call has ended."""
        return not self._thread.is_alive()

    def result(self) -> list[int]:
        """Give what the call gave."""
        if not self.done:
            raise PreconditionError("a produce is still under way; expected its outcome")
        if self._error is not None:
            raise self._error
        return self._offsets
