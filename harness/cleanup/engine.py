"""Connect to a Docker engine, or raise an error that says how to start one."""

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
    Return a client of an engine that has just answered; making a client alone does not contact the engine.

    Raises:
        UsageError: No engine answers.
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
    Connect to the engine's socket once, if it is a Unix socket of this machine.

    Without this check the library would leak a socket whose connection fails, until a garbage collection.

    Raises:
        OSError: There is no such socket, or no process listens on it.
    """
    path = os.environ.get("DOCKER_HOST", DEFAULT_UNIX_SOCKET).removeprefix("http+")
    if path.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(ANSWER_S_MAX)
            probe.connect("/" + path.removeprefix("unix://").lstrip("/"))
