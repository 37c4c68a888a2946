"""How a node is started: addresses, the places that a host gives it, and what to run there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A TCP address as somebody sees it."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """
    Where a node lives, in paths and addresses as the node itself sees them.

    Shapes:  data_dir is the disk that loses power; conf_dir holds the launch's files and never does.
             client and internal are what the node listens on; both are reachable from the harness's
             process at client_outside and internal_outside. `python` is the interpreter inside, `java` the Java
             inside and `library` where the node finds its launch's library: "" for this machine's own.
    """

    data_dir: str
    conf_dir: str
    python: str
    client: Address
    internal: Address
    client_outside: Address
    internal_outside: Address
    java: str = ""
    library: str = ""


class Runtime(StrEnum):
    """What a node's command line is run by, for hosts on which not every node has everything."""

    PYTHON = "python"
    JAVA = "java"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """
    What to run in a node: a command line, files for conf_dir (name -> text), extra environment.

    Shapes:  library is a folder of this machine that the node reads, None for none.
    """

    argv: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    runtime: Runtime = Runtime.PYTHON
    library: Path | None = None
