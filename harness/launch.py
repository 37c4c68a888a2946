"""How to start a node: its addresses, its paths on the host, and its command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from harness.clocks import Which


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A TCP address."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """
    The paths and addresses of a node, as the node itself sees them.

    Attributes:
        data_dir: the disk that loses power.
        conf_dir: the folder of the launch's files, which never loses power.
        python: the Python interpreter on the node.
        client: the address on which the node listens for clients.
        internal: the address on which the node listens for other brokers.
        client_outside: the address of `client` for the harness's process.
        internal_outside: the address of `internal` for the harness's process.
        further: more addresses on which the node listens, if it asked for some.
        java: the Java on the node; "" for this machine's own.
        library: the path of the launch's library on the node; "" for this machine's own.
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
    further: tuple[Address, ...] = ()


class Runtime(StrEnum):
    """What a node's command line needs; a host may not provide each on every node."""

    PYTHON = "python"
    JAVA = "java"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """
    What to run on a node.

    Attributes:
        argv: the command line.
        files: name -> text of the files to write to conf_dir.
        env: additional environment variables.
        library: a folder of this machine that the node reads, None for none.
        clocks: the clocks that can be set apart from the machine's, None for none.
    """

    argv: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    runtime: Runtime = Runtime.PYTHON
    library: Path | None = None
    clocks: Which | None = None
