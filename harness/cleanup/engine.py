"""
Connect to a Docker engine, and list and remove containers and networks while other runs do the same.

The engine serves all users of the machine: between any two calls, what was listed may be removed by somebody else.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import docker
from docker.constants import DEFAULT_UNIX_SOCKET
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from requests.exceptions import RequestException

from harness import limits
from harness.cleanup.process import until
from harness.model import UsageError

ANSWER_S_MAX: Final = 60
# What a request raises if the engine refuses it, or does not answer any more.
ENGINE_ERRORS: Final = (DockerException, RequestException)
# HTTP's code for a request that another one, still at work, excludes.
_CONFLICT: Final = 409


def connect() -> Any:
    """
    Return a client of an engine that has just answered; making a client alone does not contact the engine.

    Raises:
        UsageError: No engine answers.
    """
    client = None
    try:
        dial()
        client = docker.from_env(timeout=ANSWER_S_MAX)
        client.ping()
    except (DockerException, OSError) as error:
        if client is not None:
            client.close()
        raise UsageError(
            f"Docker: no engine answers at {address()} ({str(error).splitlines()[0][:200]}); expected one; "
            "start it (`systemctl start docker`, or as root `dockerd &`), or set DOCKER_HOST"
        ) from error
    return client


@contextmanager
def answering(what: str) -> Iterator[None]:
    """Raise UsageError for a request in the block that the engine refuses, or does not answer any more."""
    try:
        yield
    except ENGINE_ERRORS as error:
        raise UsageError(f"Docker: {what}: {said_by(error)}; expected an engine that answers") from error


def said_by(error: Exception) -> str:
    """Return in one line what the engine said, or that it does not answer."""
    if isinstance(error, APIError):
        return f"the engine {address()} refuses: {error.explanation}"
    return f"the engine {address()} does not answer: {str(error).splitlines()[0][:200]}"


def address() -> str:
    """Return where the engine is, as DOCKER_HOST says it."""
    return (os.environ.get("DOCKER_HOST") or DEFAULT_UNIX_SOCKET).removeprefix("http+")


def containers(client: Any, label: str) -> list[Any]:
    """
    Return the containers that have the label, running or not.

    The library inspects each container that the engine listed; one that was removed meanwhile is left out.
    """
    found: list[Any] = client.containers.list(all=True, filters={"label": label}, ignore_removed=True)
    return found


def networks(client: Any, label: str) -> list[Any]:
    """Return the networks that have exactly the label KEY=VALUE."""
    # The list alone has all that we read; inspecting each (greedy) would race with removals.
    key, _, value = label.partition("=")
    found = client.networks.list(filters={"label": label}, greedy=False)
    return [each for each in found if labels_of(each).get(key) == value]


def labels_of(found: Any) -> Mapping[str, str]:
    """Return the labels of a container or network."""
    labels: Mapping[str, str] | None
    labels = found.labels if isinstance(found, Container) else found.attrs.get("Labels")
    return labels or {}


def remove(found: Any) -> None:
    """
    Remove a container, with its volumes and even if it runs, or a network; return when it is gone.

    It is no error if another process has removed it, or is removing it.

    Raises:
        APIError: The engine refuses.
    """
    how = {"force": True, "v": True} if isinstance(found, Container) else {}
    try:
        found.remove(**how)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != _CONFLICT or not until(lambda: _is_gone(found), limits.PROCESS_END_S_MAX):
            raise


def _is_gone(found: Any) -> bool:
    """Return True if the engine no longer has it."""
    try:
        found.reload()
    except NotFound:
        return True
    return False


def dial() -> None:
    """
    Connect to the engine's socket once, if it is a Unix socket of this machine.

    Without this check the library would leak a socket whose connection fails, until a garbage collection.

    Raises:
        OSError: There is no such socket, or no process listens on it.
    """
    path = address()
    if path.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(ANSWER_S_MAX)
            probe.connect("/" + path.removeprefix("unix://").lstrip("/"))
