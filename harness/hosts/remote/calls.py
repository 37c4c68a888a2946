"""
Calls to an agent from any thread, each answered or failed within a bound; a machine that is silent is lost.

A lost machine fails every call from then on, with why, so that its run ends at once and is unknown.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from harness import limits
from harness.hosts.remote import wire
from harness.model import FencepostError, PreconditionError, UsageError

_RAISED: Final = {each.__name__: each for each in (UsageError, PreconditionError)}


class Channel(Protocol):
    """An SSH channel to a command: paramiko's, of which this much is used."""

    def sendall(self, data: bytes) -> None:
        """Send all of it."""

    def close(self) -> None:
        """End it; what reads from it sees the end."""


class Calls:
    """
    The calls to one agent.

    Args:
        whom: the machine, as errors name it.
        channel: where calls are sent.
        source: where answers come from; it has been read up to the mark.
        drain: called as drain(node) when the agent needs it, in a thread of its own.
        silence_s: after so many seconds without a word from the agent the machine is lost.
        last_words: returns what the agent printed as errors.
    """

    def __init__(
        self,
        whom: str,
        channel: Channel,
        source: wire.Source,
        *,
        drain: Callable[[str], None],
        silence_s: float,
        last_words: Callable[[], str] = lambda: "",
    ) -> None:
        self._whom = whom
        self._channel = channel
        self._source = source
        self._drain = drain
        self._silence_s = silence_s
        self._last_words = last_words
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[tuple[dict[str, Any], bytes]]] = {}
        self._mutex = threading.Lock()
        self._sending = threading.Lock()
        self._why_lost = ""
        self._ended = threading.Event()
        self._heard_at = time.monotonic()
        self._threads = [
            threading.Thread(target=work, name=f"{work.__name__.strip('_')} {whom}", daemon=True)
            for work in (self._listen, self._beat)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def ended(self) -> bool:
        """Whether no call can be made any more."""
        return self._ended.is_set()

    @property
    def lost(self) -> str:
        """Why the machine is lost, "" if it is not."""
        return self._why_lost

    def call(self, do: str, **arguments: Any) -> dict[str, Any]:
        """
        Have the agent do something; return what it says.

        Raises:
            PreconditionError, UsageError: As the host `local` raises them there; or the machine is lost.
        """
        return self.stream(do, lambda _part, _payload: None, **arguments)

    def stream(
        self, do: str, take: Callable[[Mapping[str, Any], bytes], None], **arguments: Any
    ) -> dict[str, Any]:
        """The same, for a call whose answer comes in parts: each is passed to `take`."""
        number, answers = next(self._numbers), queue.SimpleQueue[tuple[dict[str, Any], bytes]]()
        with self._mutex:
            self._require_found()
            self._waiting[number] = answers
        try:
            self._send({"id": number, "do": do, **arguments})
            while True:
                try:
                    message, payload = answers.get(timeout=limits.SSH_CALL_S_MAX)
                except queue.Empty:
                    self._lose(f"no answer to {do} within {limits.SSH_CALL_S_MAX:g} s")
                    continue
                if "part" in message:
                    take(message["part"], payload)
                elif "done" in message:
                    done: dict[str, Any] = message["done"]
                    return done
                else:
                    self._require_found()
                    raise self._error(do, message)
        finally:
            with self._mutex:
                self._waiting.pop(number, None)

    def end(self, *, release: bool) -> None:
        """
        End the conversation, and the threads; safe to call twice, and for a lost machine.

        Args:
            release: whether all is undone; else the agent's guard undoes what is left.
        """
        if not self._ended.is_set():
            self._ended.set()
            if release:
                self._send({"do": "end"})
                # Its output ends when it has ended.
                self._threads[0].join(limits.PROCESS_END_S_MAX)
        self._ended.set()
        self._close()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _error(self, do: str, message: Mapping[str, Any]) -> FencepostError:
        text = f"{self._whom}: {message.get('error', f'{do}: {message}')}"
        kind = _RAISED.get(str(message.get("kind")))
        # The agent's own bug: its traceback is what there is to say.
        return kind(text) if kind is not None else FencepostError(text)

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            with self._sending:
                self._channel.sendall(wire.pack(message))
        except (OSError, EOFError) as error:
            self._lose(f"the connection has ended ({str(error) or type(error).__name__})")

    def _listen(self) -> None:
        """Receive messages until the connection ends."""
        why = "the connection has ended"
        try:
            while (received := wire.receive(self._source)) is not None:
                self._heard_at = time.monotonic()
                message, payload = received
                if "ask" in message:
                    threading.Thread(target=self._answer, args=(message,), daemon=True).start()
                    continue
                with self._mutex:
                    answers = self._waiting.get(message.get("id", 0))
                if answers is not None:
                    answers.put((message, payload))
        except (OSError, EOFError, ValueError) as error:
            why = f"{why} ({error})"
        self._lose(why)

    def _beat(self) -> None:
        """Tell the agent that this process lives, and see that the agent does."""
        while not self._ended.wait(limits.SSH_BEAT_S):
            silent_s = time.monotonic() - self._heard_at
            if silent_s > self._silence_s:
                self._lose(f"it has been silent for {silent_s:.0f} s")
                return
            self._send({"id": 0, "do": "beat"})

    def _answer(self, ask: Mapping[str, Any]) -> None:
        """Do what the agent asked for, and say when it is done."""
        problem = ""
        try:
            self._drain(str(ask["drain"]))
        except FencepostError as error:
            problem = str(error)
        self._send({"answer": ask["ask"], "error": problem})

    def _require_found(self) -> None:
        if self._why_lost:
            raise PreconditionError(f"{self._whom}: lost: {self._why_lost}; expected it until the end of the run")
        if self._ended.is_set():
            raise UsageError(f"{self._whom}: closed; expected no call after close")

    def _lose(self, why: str) -> None:
        """Fail all calls, now and later."""
        with self._mutex:
            if self._why_lost or self._ended.is_set():
                why = ""
            else:
                said = self._last_words().strip()
                self._why_lost = f"{why}; the agent said: {said.splitlines()[-1]}" if said else why
            self._ended.set()
            for answers in self._waiting.values():
                answers.put(({}, b""))
        self._close()

    def _close(self) -> None:
        with suppress(OSError, EOFError):  # it says good-bye, on a connection that may be gone
            self._channel.close()
