"""
The table of what each fault is shown by: how it is set up, what is seen of it, what undoes it, what is left whole.

A step stands here as in a scenario. A leads, B follows, and C is another broker; each host plays the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Final
from unittest.mock import patch

import nemesis
from harness.hosts.unwritten import why_untold
from targets.kafka_family.nemeses import FAULTS
from tests.faults import NEMESES

STILL: Final = "{fault} [ABC]: still in force after its healing"
ALIVE: Final = "{fault} {node}: its process is still alive; expected it gone"
NO_RULE: Final = "{fault} {node}: no rule of its links is in force; expected one"
CLOCK: Final = "{fault} {node}: its clocks were not set: wall "
SAME_FILES: Final = "{fault} {node}: {node}'s files are read as if nothing had changed"
FRAMES: Final = r"frames {word}: .*\bB -> A"
SESSION: Final = "registered in session 0x[0-9a-f]+"
# The only steps here that write. What is written singly is of many pages, so that a part of it can be lost.
PRODUCE: Final = "produce m3 acks=all"
SINGLY: Final = f"{PRODUCE} singly"
COPIED: Final = "await isr = A B"
RIGHT: Final = r" before; wall .* now$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """
    How a fault is shown to bite and to end. `{fault}` and `{node}` stand for the fault's name and its node.

    Attributes:
        node: a node, or an aim.
        before: steps that it needs.
        busy: producers are at work meanwhile, since it bites only what works.
        meanwhile: steps that show its effect before it is undone.
        seen: a pattern of what its injection says.
        pretended: what a pretended injection is refused with.
        undo: the fault that undoes it; "" if it leaves nothing to undo.
        undone: a pattern of what that says.
        still: what a pretended one of that is refused with.
        after: steps that make the node whole again.
        untold: returns why this machine does not notice a pretended injection, "" if it does.
    """

    seen: str
    node: str = "B"
    before: tuple[str, ...] = ()
    busy: bool = False
    meanwhile: tuple[str, ...] = ()
    pretended: str
    undo: str = ""
    undone: str = ""
    still: str = STILL
    after: tuple[str, ...] = ()
    untold: Callable[[], str] = lambda: ""


def _ended(seen: str, *, pretended: str = ALIVE, busy: bool = False) -> Shown:
    """Return a fault after which the node is down."""
    return Shown(seen=seen, busy=busy, pretended=pretended, undo="restart", undone=SESSION, after=(COPIED,))


def _undoing(fault: str, seen: str, after: tuple[str, ...] = ()) -> Shown:
    """Return a fault that undoes another; a pretended one leaves that in force."""
    return Shown(
        before=(f"{fault} B",), seen=seen, pretended=f"{fault} B: still in force after its healing", after=after
    )


def _on_links(word: str, node: str = "B", *, seen: str = FRAMES) -> Shown:
    """Return a fault of links that takes frames of B's fetches."""
    return Shown(
        node=node,
        seen=seen.format(word=word),
        pretended=NO_RULE,
        undo="reconnect",
        undone=f"{{fault}}: frames {word}: .*; open again: ",
    )


def _on_packets(word: str, node: str) -> Shown:
    """Return a fault of the packets of a node, to which another sends."""
    return Shown(
        node=node,
        seen=f"packets {word}: [1-9]",
        pretended=f"{{fault}} {{node}}: its packets pass; expected some to be {word}",
        undo="pass-packets",
        undone=f"{{fault}}: packets {word}: [1-9]",
        after=(COPIED,),
    )


def _of_clocks(seen: str) -> Shown:
    return Shown(seen=seen, pretended=CLOCK, undo="clock-right", undone=RIGHT)


def _of_zookeeper(seen: str, pretended: str, undone: str, node: str = "A") -> Shown:
    return Shown(node=node, seen=seen, pretended=pretended, undo="zookeeper-back", undone=undone)


def _rot(seen: str) -> Shown:
    """Return a flipped byte; the follower then copies all again, onto an empty disk."""
    return Shown(
        seen=seen, pretended=SAME_FILES, after=("stop B", "await isr = A", "lose-disk B", "restart B", COPIED)
    )


SHOWN: Final[dict[str, Shown]] = {
    "kill": _ended("SIGKILL|killed"),
    "restart": _undoing("kill", SESSION, (COPIED,)),
    "pause": Shown(
        seen="stopped|frozen|paused", pretended="{fault} {node}: its process runs; expected it stopped",
        undo="resume", undone="runs|running|resumed",
    ),
    "resume": _undoing("pause", "runs|running|resumed"),
    "expire": Shown(
        seen="session 0x[0-9a-f]+ closed", pretended="{fault} {node}: {node}'s membership of incarnation 0x",
        after=("await registered B", COPIED),
    ),
    "zombie": Shown(
        seen="session 0x[0-9a-f]+ closed.*; its process lives on, cut from ZooKeeper",
        pretended="{fault} {node}: registered again in session 0x", undo="return", undone=SESSION,
        after=(COPIED,),
    ),
    "return": _undoing("zombie", SESSION, (COPIED,)),
    "elect": Shown(
        seen="broker [0-9]+ asked for at /",
        pretended="{fault} {node}: no election was asked for; expected a request",
        after=("await leader = B", COPIED),
    ),
    "move-away": Shown(
        seen=r"replicas \[.*\] of .* asked for at /",
        pretended="{fault} {node}: {node} is wanted as a replica of",
        undo="move-back", undone=r"replicas \[.*\] of .* asked for at /", after=(COPIED,),
    ),
    "move-back": replace(
        _undoing("move-away", r"replicas \[.*\] of .* asked for at /"), before=("move-away B",),
    ),
    "depose-controller": Shown(
        node="controller", seen="/controller of [ABC] deleted",
        pretended=r"{fault} [ABC]: [ABC] still holds the office that it had",
    ),
    "flush": Shown(
        before=(PRODUCE,), seen="[1-9][0-9]* files were not durable; |^syncfs in ",
        pretended="{fault} {node}: .* is not durable; expected it flushed", untold=why_untold,
    ),
    "power-loss": _ended("and [1-9][0-9]* are gone|[1-9][0-9]* files undone|batches became "),
    "delete-active-segment": Shown(
        before=("kill B", "expire B", "await isr = A"),
        seen=r"deleted; its log ended at [0-9]+, and ends at [0-9]+",
        pretended="{fault} {node}: its log ends at [0-9]+; expected below ", after=("restart B", COPIED),
    ),
    "stop": _ended("SIGTERM|ended cleanly|exit code"),
    "disk-full": _ended("it met .*ENOSPC at ", busy=True),
    "flush-error": _ended("it met .*EIO at ", busy=True),
    "lose-disk": Shown(
        before=("stop B", "await isr = A"), seen="the disk is empty|1 logs lost",
        pretended="{fault} {node}: its log ends at [0-9]+; expected a disk without one",
        after=("restart B", COPIED),
    ),
    "write-error": _ended("it met .*EIO at ", busy=True),
    "read-error": Shown(
        node="A", busy=True, seen="it met .*EIO at |, read of ", pretended=ALIVE, undo="restart", undone=SESSION,
        after=(COPIED,),
    ),
    "disk-read-only": _ended("it met .*EROFS at ", busy=True),
    "disk-slow": Shown(
        seen="every call takes 20 ms longer",
        pretended="{fault} {node}: its disk is as it should be; expected it to be slow",
        meanwhile=(PRODUCE,), undo="mend-disk", undone="calls took longer",
    ),
    "mend-disk": replace(_undoing("disk-slow", "calls took longer"), before=("disk-slow B", PRODUCE)),
    "power-loss-torn": replace(
        _ended("and [1-9][0-9]* are gone|files undone|batches became .* torn or zeros"), before=(SINGLY,),
    ),
    "partition-halves": _on_links("lost", "A"),
    "partition-isolate": _on_links("lost"),
    "partition-ring": _on_links("lost"),
    "partition-one-way": _on_links("lost"),
    "partition-brokers": _on_links("lost"),
    "partition-clients": replace(
        _on_links("lost", "A", seen=r"frames lost: .* on clients -> A"),
        busy=True, undone="{fault}: frames lost: ",
    ),
    "jam": _on_links("held"),
    "slow-link": _on_links("late"),
    "lossy-link": _on_links("lost"),
    "reconnect": _undoing("partition-isolate", "partition-isolate: frames lost: .*; open again: "),
    "drop-packets": _on_packets("dropped", "A"),
    "throttle": replace(_on_packets("made to wait", "A"), busy=True),
    "lossy-packets": _on_packets("late or lost", "A"),
    "pass-packets": replace(
        _undoing("drop-packets", "drop-packets: packets dropped: [1-9]"), before=("drop-packets A",), node="A",
        pretended="drop-packets A: still in force after its healing",
    ),
    "zookeeper-outage": _of_zookeeper(
        "servers frozen|; nobody is answered",
        "{fault} {node}: ZooKeeper answers; expected it out", "now ",
    ),
    "zookeeper-leader-lost": _of_zookeeper(
        " led", "{fault} {node}: every server of ZooKeeper serves; expected one to be gone", "now ",
    ),
    "zookeeper-late": replace(
        _on_links("late", "controller", seen="in force; frames late: "),
        pretended="{fault} [ABC]: no rule of its links is in force; expected one",
        meanwhile=("elect B", "await leader = B"), undone="{fault}: frames late: [0-9]+ on [ABC] -> metadata",
    ),
    "zookeeper-multi-lost": Shown(
        node="controller", seen="; the answer to a multi of [ABC] was lost with its connection; [ABC] leads",
        pretended="{fault} [ABC]: no election was asked for; expected a request",
        after=("await leader = B", COPIED),
    ),
    "cut-from-metadata": _of_zookeeper(
        "frames lost: .* on B -> metadata", NO_RULE, "; B is registered in session 0x", "B",
    ),
    "zookeeper-back": _undoing("cut-from-metadata", "; B is registered in session 0x"),
    "client-crash": Shown(
        busy=True, seen=" ended by SIGKILL, waited for: signal 9, | killed at .*, [1-9][0-9]* of its ops open$",
        pretended="{fault} {node}: no client was killed; expected one",
    ),
    "bit-rot-closed": replace(_rot("batch of offsets .*CRC-32C"), before=(SINGLY,)),
    "bit-rot-active": _rot("batch of offsets .*CRC-32C"),
    "bit-rot-checkpoint": _rot("a checkpoint; "),
    "clock-freeze": _of_clocks("; wall .*, -?0.[0-9]+ s/s, monotonic .* now$"),
    "clock-forward": _of_clocks(r"; wall \+(99|100)\..* now$"),
    "clock-back": _of_clocks(r"; wall -(99|100)\..* now$"),
    "clock-strobe": _of_clocks(r"; wall \+(29|30)\..* now$"),
    "clock-fast": _of_clocks(r"monotonic (9|1[0-9])\.[0-9]+ s/s now$"),
    "clock-slow": _of_clocks(r"monotonic 0\.[01][0-9]* s/s now$"),
    "clock-right": _undoing("clock-forward", RIGHT),
    "suspend": Shown(
        seen=" before; ", pretended="{fault} {node}: its process runs; expected it stopped",
        undo="wake", undone="its monotonic clock moved on by ",
    ),
    "wake": _undoing("suspend", "its monotonic clock moved on by (99|100)"),
}  # fmt: skip


@contextmanager
def pretending(name: str) -> Iterator[None]:
    """Make the injection of a fault of the table do nothing, and say that it did."""
    pretended = {name: replace(NEMESES[name], inject=lambda _cluster, _name: "done")}
    tables = (NEMESES, nemesis._FIRST, nemesis._OF_METADATA, nemesis._LAST, FAULTS)
    with ExitStack() as stack:
        for table in (each for each in tables if name in each):
            stack.enter_context(patch.dict(table, pretended))
        yield
