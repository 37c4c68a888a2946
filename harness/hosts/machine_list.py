"""
Reads the TOML file that lists the machines of the host `ssh`; an error names the file, the key and the value.

    listen = "192.0.2.1"              # where the harness listens; 127.0.0.1 if all machines are on loopback
    silence_s = 15                    # after so long without the harness, a machine heals itself

    [[machine]]
    name = "m1"
    address = "192.0.2.11"            # of the machine itself, for SSH and for the nodes on it
    user = "fencepost"
    key = "~/.ssh/id_ed25519"
    folder = "/srv/fencepost"         # all that is made there is in it
    port = 22
    known_hosts = "~/.ssh/known_hosts"
    python = "python3"                # 3.11 or later
"""

from __future__ import annotations

import ipaddress
import math
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from harness import limits
from harness.input_file import read_text
from harness.model import UsageError

LOOPBACK: Final = "127.0.0.1"
SSH_PORT: Final = 22
PORT_MAX: Final = 65_535
KNOWN_HOSTS: Final = "~/.ssh/known_hosts"
PYTHON: Final = "python3"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
_ADDRESS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}\$?")
_TOP: Final = ("listen", "silence_s", "machine")
_NEEDED: Final = ("name", "address", "user", "key", "folder")
_OTHERS: Final = ("port", "known_hosts", "python")
# What a line of an error shows of a wrong value.
_SHOWN_CHARACTERS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """
    One machine, as its file describes it.

    Attributes:
        address: where its SSH server and the nodes on it listen: an IPv4 address of the machine, or a name that is
            resolved here.
        key: the private key's file here.
        known_hosts: the file here with the machine's own key.
        folder: the folder there; relative to the user's home if it is relative.
        python: the Python there.
    """

    name: str
    address: str
    port: int
    user: str
    key: Path
    known_hosts: Path
    folder: str
    python: str

    def __str__(self) -> str:
        return f"machine {self.name} ({self.user}@{self.address}:{self.port})"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineList:
    """
    The machines of a run.

    Attributes:
        listen: the address of this machine on which the harness listens for nodes.
        silence_s: after so many seconds without a sign of the other, harness and machine take each other for gone.
    """

    file: Path
    machines: tuple[Machine, ...]
    listen: str
    silence_s: float


def read_machines(file: Path) -> MachineList:
    """
    Read the file.

    Raises:
        UsageError: It cannot be read, is no TOML, or describes no machines; the message names file, key and value.
    """
    text = read_text(file, "a list of machines, in TOML", limits.MACHINES_BYTES_MAX)
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{file}: {error}; expected TOML (docs/hosts.md has an example)") from error
    return _List(file).read(raw)


@dataclass(frozen=True, slots=True)
class _List:
    """Reads one file's values; each error begins with the file's name."""

    file: Path

    def read(self, raw: Mapping[str, Any]) -> MachineList:
        self._known_keys(raw, _TOP, "")
        tables = raw.get("machine")
        if not isinstance(tables, list) or not tables or not all(isinstance(each, dict) for each in tables):
            raise self._wrong("machine", tables, "one [[machine]] at least")
        if len(tables) > limits.MACHINES_MAX:
            raise self._wrong("machine", f"{len(tables)} of them", f"at most {limits.MACHINES_MAX}")
        machines = [self._machine(number, each) for number, each in enumerate(tables, start=1)]
        for attribute in ("name", "address"):
            seen: dict[str, str] = {}
            for machine in machines:
                value = getattr(machine, attribute)
                if value in seen:
                    expected = f"another than that of machine {seen[value]}"
                    raise self._wrong(f"machine {machine.name}: {attribute}", value, expected)
                seen[value] = machine.name
        return MachineList(
            file=self.file,
            machines=tuple(machines),
            listen=self._listen(raw, machines),
            silence_s=self._silence(raw.get("silence_s", limits.SSH_SILENCE_S)),
        )

    def _machine(self, number: int, raw: Mapping[str, Any]) -> Machine:
        where = f"machine {raw['name']}" if isinstance(raw.get("name"), str) else f"machine number {number}"
        self._known_keys(raw, (*_NEEDED, *_OTHERS), f"{where}: ")
        missing = [key for key in _NEEDED if key not in raw]
        if missing:
            raise UsageError(f"{self.file}: {where}: {missing[0]}: missing; expected {', '.join(_NEEDED)}")
        port = raw.get("port", SSH_PORT)
        if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= PORT_MAX:
            raise self._wrong(f"{where}: port", port, f"a number from 1 to {PORT_MAX}")
        texts = {key: self._text(f"{where}: {key}", raw[key]) for key in _NEEDED}
        for key, pattern, expected in (
            ("name", _NAME, "at most 32 letters, digits and any of _.-"),
            ("user", _USER, "a user's name"),
        ):
            if not pattern.fullmatch(texts[key]):
                raise self._wrong(f"{where}: {key}", texts[key], expected)
        if not _ADDRESS.fullmatch(texts["address"]):
            raise self._wrong(f"{where}: address", texts["address"], "a name or an IPv4 address")
        if texts["folder"].rstrip("/") in ("", ".", "~"):
            raise self._wrong(f"{where}: folder", texts["folder"], "a folder for Fencepost alone")
        return Machine(
            name=texts["name"],
            address=texts["address"],
            port=port,
            user=texts["user"],
            key=self._path(texts["key"]),
            known_hosts=self._path(
                self._text(f"{where}: known_hosts", raw.get("known_hosts", KNOWN_HOSTS)),
            ),
            folder=texts["folder"],
            python=self._text(f"{where}: python", raw.get("python", PYTHON)),
        )

    def _listen(self, raw: Mapping[str, Any], machines: Collection[Machine]) -> str:
        if "listen" not in raw:
            far = [machine.name for machine in machines if not _is_loopback(machine.address)]
            if not far:
                return LOOPBACK
            raise UsageError(
                f"{self.file}: listen: missing; expected an address of this machine that machine {far[0]} can "
                "reach"
            )
        listen = self._text("listen", raw["listen"])
        try:
            usable = not ipaddress.IPv4Address(listen).is_unspecified
        except ValueError:
            usable = False
        if not usable:
            raise self._wrong("listen", listen, "one address of this machine, as 192.0.2.1")
        return listen

    def _silence(self, value: object) -> float:
        least, most = limits.SSH_SILENCE_S_MIN, limits.SSH_SILENCE_S_MAX
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self._wrong("silence_s", value, f"seconds, from {least:g} to {most:g}")
        if not least <= value <= most:
            raise self._wrong("silence_s", value, f"seconds, from {least:g} to {most:g}")
        return float(value)

    def _path(self, text: str) -> Path:
        """Return a file's path; a relative one is relative to the list."""
        return self.file.absolute().parent / Path(text).expanduser()

    def _text(self, key: str, value: object) -> str:
        if not isinstance(value, str) or not value or not value.isprintable():
            raise self._wrong(key, value, "a text in quotes")
        return value

    def _known_keys(self, raw: Mapping[str, Any], keys: Collection[str], where: str) -> None:
        for key in raw:
            if key not in keys:
                near = get_close_matches(key, keys, n=1)
                hint = f". Did you mean {near[0]!r}?" if near else ""
                raise UsageError(
                    f"{self.file}: {where}{key}: unknown key; expected one of {', '.join(keys)}{hint}"
                )

    def _wrong(self, key: str, value: object, expected: str) -> UsageError:
        return UsageError(f"{self.file}: {key}: {repr(value)[:_SHOWN_CHARACTERS]}; expected {expected}")


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
