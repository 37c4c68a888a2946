"""Reach a Docker engine, or say how to start one."""

from __future__ import annotations

from typing import Any, Final

import docker
from docker.errors import DockerException

from harness.model import UsageError

ANSWER_S_MAX: Final = 60


def connect() -> Any:
    """
    Give a client of the engine, which answered just now: a client alone is no engine.

    Raises:  UsageError when none answers.
    """
    try:
        client = docker.from_env(timeout=ANSWER_S_MAX)
        client.ping()
    except DockerException as error:
        raise UsageError(
            f"Docker: no engine answers ({str(error).splitlines()[0][:200]}); expected one; start it "
            "(`systemctl start docker`, or as root `dockerd &`), or set DOCKER_HOST"
        ) from error
    return client
