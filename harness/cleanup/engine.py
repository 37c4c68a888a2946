"""Reach a Docker engine, or say how to start one."""

from __future__ import annotations

import os
import socket
from typing import Any, Final

import docker
from docker.constants import DEFAULT_UNIX_SOCKET
from docker.errors import DockerException

from harness.model import UsageError

ANSWER_S_MAX: Final = 60


def connect() -> Any:
    """
    Give a client of the engine, which answered just now: a client alone is no engine.

    Raises:  UsageError when none answers.
    """
    client = None
    try:
        _dial()
        client = docker.from_env(timeout=ANSWER_S_MAX)
        client.ping()
    except (DockerException, OSError) as error:
        if client is not None:
            client.close()
        raise UsageError(
            f"Docker: no engine answers ({str(error).splitlines()[0][:200]}); expected one; start it "
            "(`systemctl start docker`, or as root `dockerd &`), or set DOCKER_HOST"
        ) from error
    return client


def _dial() -> None:
    """
    Connect to the engine's socket once, if it is one of this machine.

    The library leaves the socket open to which it could not connect, until some garbage collection finds it.

    Raises:
        OSError: there is no such socket, or nothing listens there.
    """
    path = os.environ.get("DOCKER_HOST", DEFAULT_UNIX_SOCKET).removeprefix("http+")
    if path.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as trial:
            trial.settimeout(ANSWER_S_MAX)
            trial.connect("/" + path.removeprefix("unix://").lstrip("/"))
