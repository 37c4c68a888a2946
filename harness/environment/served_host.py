"""A run's host whose faults of a service's process are told to the run's services before and after they act."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any, cast

from harness.environment.own_services import OwnServices
from harness.hosts.base import Host
from harness.packets import Packets


class ServedHost:
    """
    A host, with the calls that take a service's process away or bring it back; see harness/hosts/base.py for them.

    Everything else is the host's own.
    """

    def __init__(self, host: Host, services: OwnServices) -> None:
        self._host = host
        self._services = services

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    def kill(self, name: str) -> str:
        """SIGKILL the node's process."""
        with self._losing(name):
            return self._host.kill(name)

    def stop(self, name: str) -> str:
        """SIGTERM the node's process."""
        with self._losing(name):
            return self._host.stop(name)

    def power_loss(self, name: str, torn: Random | None = None) -> str:
        """Kill the node's process, and lose what its disk had not flushed."""
        with self._losing(name):
            return self._host.power_loss(name, torn)

    def pause(self, name: str) -> str:
        """Freeze the node's process."""
        with self._losing(name):
            return self._host.pause(name)

    def resume(self, name: str) -> str:
        """Resume a paused node."""
        with self._regaining(name):
            return self._host.resume(name)

    def impair_packets(self, name: str, how: Packets) -> None:
        """Let this become of the node's packets."""
        with self._losing(name) if how is Packets.DROPPED else nullcontext():
            self._host.impair_packets(name, how)
            if name in self._services:
                self._services.ask(name)

    def pass_packets(self, name: str, how: Packets) -> None:
        """Let the node's packets pass again."""
        with self._regaining(name) if how is Packets.DROPPED else nullcontext():
            self._host.pass_packets(name, how)

    def _losing(self, name: str) -> AbstractContextManager[None]:
        return self._services.losing(name) if name in self._services else nullcontext()

    def _regaining(self, name: str) -> AbstractContextManager[None]:
        return self._services.regaining(name) if name in self._services else nullcontext()


def served(host: Host, services: OwnServices | None) -> Host:
    """Return the host of a run with these services of its own; None for a run that shares all, or has none."""
    return host if services is None else cast(Host, ServedHost(host, services))
