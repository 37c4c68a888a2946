"""
Whom a plain client asks: the node that did what was asked last, then every other one, until the time is over.

Source:  harness/target/log_client.py, which says what an answer proves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, TypeVar

from harness.cleanup.process import until
from harness.late import LateError, apart
from harness.target.log_client import Closes, LogClient, MakeLogClient, NotNow, Refused
from harness.workload.plan import ACKS_ALL, Place

T = TypeVar("T")

# How long one node may take; it may be paused. Whoever waits for one answer alone can wait longer.
PATIENCE_S: Final = 1.0
PATIENCE_OF_STEP_S: Final = 4.0
# After this a client that does not return is left behind, and what it was asked is unknown.
HANGS_S: Final = 5.0


class PlainNodes:
    """
    The clients of one process of the history, one for each node and partition.

    Args:
        addresses: returns "host:port" of the nodes to ask; called again for each round.
        patience_s: how long one node may take, less than HANGS_S.
        target: the target's name.
    """

    def __init__(
        self,
        make: MakeLogClient,
        addresses: Callable[[], Sequence[str]],
        patience_s: float = PATIENCE_S,
        *,
        target: str = "",
    ) -> None:
        self.whose = f"target {target}, clients" if target else "clients"
        self._make = make
        self._patience_s = patience_s
        self._addresses = addresses
        self._open: dict[tuple[str, Place], LogClient] = {}
        self._last: dict[Place, str] = {}

    @property
    def batches(self) -> bool:
        """Whether the target's client appends several values in one batch."""
        return hasattr(self._make, "produce_batch")

    @property
    def acks(self) -> Collection[int]:
        """What the target's client can wait for."""
        return acks_of(self._make)

    def ask(self, place: Place, within_s: float, question: Callable[[LogClient], T]) -> T:
        """
        Ask node after node, round after round, until one does not refuse.

        Raises:
            Refused: all did, until the time was over; nothing was done. It has the last word of each.
            Exception: as the client raised it; it may be done.
        """
        answers: list[T] = []
        why: dict[str, str] = {}

        def answered() -> bool:
            for address in self._in_order(place):
                try:
                    answers.append(self.ask_at(address, place, question))
                except NotNow as error:
                    why[address] = str(error)
                    return False
                except (Refused, ConnectionRefusedError) as error:
                    why[address] = str(error)
                    continue
                self._last[place] = address
                return True
            return False

        until(answered, within_s)
        if not answers:
            raise Refused("; ".join(f"{address}: {each}" for address, each in why.items()) or "no node runs")
        return answers[0]

    def ask_at(self, address: str, place: Place, question: Callable[[LogClient], T]) -> T:
        """Ask one node; a client that fails in any way but by a refusal is not used again."""
        client = self._open.get((address, place))
        if client is None:
            client = self._open[address, place] = self._make(address, place, self._patience_s)
        try:
            return bounded(partial(question, client), address, self.whose)
        except Refused:
            raise
        except Exception:
            self._drop(address, place)
            raise

    def close(self) -> None:
        """Close all clients."""
        for address, place in list(self._open):
            self._drop(address, place)

    def _in_order(self, place: Place) -> list[str]:
        addresses, last = list(self._addresses()), self._last.get(place)
        return sorted(addresses, key=lambda address: address != last)

    def _drop(self, address: str, place: Place) -> None:
        client = self._open.pop((address, place))
        if self._last.get(place) == address:
            del self._last[place]
        if isinstance(client, Closes):
            client.close()


def acks_of(make: MakeLogClient) -> Collection[int]:
    """Return what a target's client can wait for: acks=all alone, unless it says more."""
    found: Collection[int] = getattr(make, "acks", (ACKS_ALL,))
    return found


def bounded(call: Callable[[], T], address: str, whose: str = "clients") -> T:
    """Return what a call returns, or raise what it raises; a call that does neither raises TimeoutError."""
    try:
        return apart(call, HANGS_S)
    except LateError:
        raise TimeoutError(
            f"{whose}: no answer of the client at {address} for {HANGS_S:g} s; expected one, or an error, within "
            "its patience_s"
        ) from None
