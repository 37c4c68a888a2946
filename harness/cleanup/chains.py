"""
A chain of our own in iptables: packets of a run's nodes are dropped there, and nothing else is ever changed.

The chain is named after the run, and INPUT and OUTPUT jump to it. Its first rules return every packet from or to a
port of SSH, whatever comes after; a rule that names such a port is refused. Removing the chain, with both jumps,
heals everything. Needs root.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from harness.model import PreconditionError, UsageError

if TYPE_CHECKING:  # the ledger's table of what to undo imports this module
    from harness.cleanup.ledger import Ledger

PREFIX: Final = "FENCEPOST-"
SSH_PORT: Final = 22
_HOOKS: Final = ("INPUT", "OUTPUT")
# iptables waits so many seconds for another program that changes rules.
_WAIT_S: Final = "10"
_PORT_MAX: Final = 65_535


def why_not() -> str:
    """Return why no chain can be made here, "" if one can."""
    if os.geteuid() != 0:
        return "not root"
    if shutil.which("iptables") is None:
        return "no iptables on PATH"
    return _run("-S", "INPUT")[1]


class Chain:
    """A run's chain, made when the first rule is."""

    def __init__(self, ledger: Ledger, ssh_ports: Collection[int] = ()) -> None:
        """Make nothing yet; port 22 counts as SSH's, whatever is given."""
        self.name = f"{PREFIX}{ledger.token}"
        self._ledger = ledger
        self._ssh_ports = sorted({SSH_PORT, *ssh_ports})
        self._made = False
        # Each node with one of its rules, in the order of the chain.
        self._drops: list[tuple[str, tuple[str, ...]]] = []
        self._mutex = threading.Lock()

    def drop(self, node: str, listeners: Collection[tuple[str, int]]) -> None:
        """
        Drop every packet from and to these TCP listeners of a node, addresses and ports, until `clear`.

        Raises:
            UsageError: A port is SSH's, or no port; nothing was done.
            PreconditionError: iptables refuses; none of these packets is dropped.
        """
        for address, port in listeners:
            if not 1 <= port <= _PORT_MAX:
                raise UsageError(f"drop packets of {address}:{port}: expected a port from 1 to {_PORT_MAX}")
            if port in self._ssh_ports:
                raise UsageError(f"drop packets of {address}:{port}: it is SSH's; expected a port of a node")
        with self._mutex:
            if not self._made:
                self._make()
            added: list[tuple[str, tuple[str, ...]]] = []
            try:
                for rule in (rule for address, port in listeners for rule in _of(address, port)):
                    self._do("-A", self.name, *rule)
                    added.append((node, rule))
            except PreconditionError:
                for _, rule in added:
                    _run("-D", self.name, *rule)
                raise
            self._drops += added

    def stands(self, node: str) -> bool:
        """Return True if iptables has all rules of a node, and it has one at least."""
        with self._mutex:
            rules = self._rules_of(node)
            return bool(rules) and not any(_run("-C", self.name, *rule)[1] for rule in rules)

    def dropped(self, node: str) -> int:
        """Return how many packets the rules of a node have dropped since they were made."""
        with self._mutex:
            if not self._rules_of(node):
                return 0
            text = self._do("-nvxL", self.name)
            found = re.findall(r"^\s*(\d+)\s+\d+\s+DROP\s", text, flags=re.MULTILINE)
            return sum(int(count) for (of, _), count in zip(self._drops, found, strict=True) if of == node)

    def clear(self, node: str) -> None:
        """Drop no packet of a node any more."""
        with self._mutex:
            for rule in self._rules_of(node):
                self._do("-D", self.name, *rule)
                self._drops.remove((node, rule))

    def _rules_of(self, node: str) -> list[tuple[str, ...]]:
        return [rule for of, rule in self._drops if of == node]

    def _make(self) -> None:
        entry = self._ledger.note("chain", name=self.name)
        with self._ledger.making():
            try:
                self._do("-N", self.name)
                for port in self._ssh_ports:
                    for which in ("--dport", "--sport"):
                        self._do("-A", self.name, "-p", "tcp", which, str(port), "-j", "RETURN")
                for hook in _HOOKS:
                    self._do("-I", hook, "-p", "tcp", "-j", self.name)
            except PreconditionError:
                if not remove(self.name):
                    self._ledger.done(entry)
                raise
        self._made = True

    def _do(self, *words: str) -> str:
        said, problem = _run(*words)
        if problem:
            raise PreconditionError(f"iptables {' '.join(words)}: {problem}; expected it to succeed")
        return said


def remove(name: str) -> str:
    """Remove a chain of this name, with every jump to it; return what is left and why, "" if nothing is."""
    assert name.startswith(PREFIX), f"chain {name}; expected one of ours"
    if shutil.which("iptables") is None:
        return ""  # nothing can have made one
    rules, problem = _run("-S")
    if problem:
        return f"chain {name}: {problem}; expected iptables to list its rules"
    lines = [line.split() for line in rules.splitlines()]
    for words in lines:
        if words[0] == "-A" and words[-2:] == ["-j", name]:
            _run("-D", *words[1:])
    if any(words[:2] == ["-N", name] for words in lines):
        _run("-F", name)
        _run("-X", name)
    rules, problem = _run("-S")
    if problem or any(name in line.split() for line in rules.splitlines()):
        return f"chain {name}: {problem or 'is still there'}; expected to be able to remove it"
    return ""


def _of(address: str, port: int) -> list[tuple[str, ...]]:
    """Return the rules for packets to and from a listener."""
    ways = (("-d", "--dport"), ("-s", "--sport"))
    return [("-p", "tcp", of, address, at, str(port), "-j", "DROP") for of, at in ways]


def _run(*words: str) -> tuple[str, str]:
    """Run iptables; return what it said, and its error, "" if it succeeded."""
    done = subprocess.run(
        ["iptables", "-w", _WAIT_S, *words], capture_output=True, text=True, check=False, start_new_session=True
    )
    if done.returncode == 0:
        return done.stdout, ""
    return done.stdout, done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"code {done.returncode}"
