"""
What a client in a process of its own and the run say to each other, over one pair of sockets.

    run -> client   one line that says which client it is, then a byte for each invoke that is in the history, and
                    one byte that lets it end
    client -> run   a line for each op

A client waits for its byte before it sends the request: so an invoke is in the history before any broker can know
of it, whenever the client is killed. An outcome needs no byte: what a process wrote stays when it is killed.
A client ends itself when the run has closed its side, as it does when it is killed.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.events import Event
from harness.model import Op, OpType
from harness.workload.plan import ConsumerPlan, Library, ProducerPlan
from harness.workload.script import Life
from harness.workload.text import line_of as text_of
from harness.workload.text import place_of, read_consumer, read_producer

RECORDED: Final = b"."
LEAVE: Final = b"!"
END: Final = b"\n"
_CHUNK: Final = 4_096
# The exit code of a client whose run has gone.
ALONE: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """
    Which client a process is.

    Attributes:
        library: that it stands on.
        process: its name in the history, of this life.
        nodes: a node's name -> "host:port".
    """

    plan: ProducerPlan | ConsumerPlan
    library: Library
    seed: int
    process: str
    life: Life
    nodes: Mapping[str, str]

    def to_line(self) -> bytes:
        """Return the role as one line."""
        value = {
            "kind": "producer" if isinstance(self.plan, ProducerPlan) else "consumer",
            "plan": text_of(self.plan),
            "places": [str(place) for place in self.plan.places],
            "library": self.library.value,
            "seed": self.seed,
            "process": self.process,
            "life": self.life.number,
            "positions": {str(place): position for place, position in self.life.positions.items()},
            "nodes": dict(self.nodes),
        }
        return json.dumps(value).encode() + END

    @staticmethod
    def from_line(line: bytes) -> Role:
        """Return the role in a line; an error in it is one of ours."""
        value: dict[str, Any] = json.loads(line)
        read = read_producer if value["kind"] == "producer" else read_consumer
        positions = {place_of(name): position for name, position in value["positions"].items()}
        return Role(
            plan=read("role", value["plan"], [place_of(name) for name in value["places"]]),
            library=Library(value["library"]),
            seed=value["seed"],
            process=value["process"],
            life=Life(number=value["life"], positions=positions),
            nodes=value["nodes"],
        )


def line_of(op: Op) -> bytes:
    """Return the line of an op."""
    return op.to_json().encode() + END


class Wire:
    """
    The client's side: a recorder whose ops go to the run.

    Args:
        end: ends the process, with that exit code.

    Attributes:
        leave: set once the client is to end.
    """

    def __init__(self, run: socket.socket, end: Callable[[int], object] = os._exit) -> None:
        self._end = end
        self.leave = threading.Event()
        self._run = run
        self._recorded = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._count = 0

    def role(self) -> Role:
        """Return the first line of the run, and from then on listen to it."""
        line = b""
        while not line.endswith(END):
            # Byte by byte: what follows the line is not for it.
            line += self._run.recv(1) or self._alone()
        threading.Thread(target=self._listen, name="run", daemon=True).start()
        return Role.from_line(line)

    def record(self, process: str, type_: OpType, event: Event) -> None:
        """Write an op; of an invoke, return once it is in the history."""
        with self._lock:
            op = Op.of(event, index=self._count, time_ns=0, process=process, type=type_)
            self._count += 1
            try:
                self._run.sendall(line_of(op))
            except OSError:
                self._alone()
            if type_ is OpType.INVOKE:
                self._recorded.acquire()

    def _listen(self) -> None:
        while said := self._received():
            for byte in said:
                if byte == LEAVE[0]:
                    self.leave.set()
                else:
                    self._recorded.release()
        self._alone()

    def _received(self) -> bytes:
        try:
            return self._run.recv(_CHUNK)
        except OSError:
            return b""

    def _alone(self) -> bytes:
        """End at once, whatever other threads do: nobody records what this process does any more."""
        self._end(ALONE)
        return END
