"""The list of machines is read whole, and what is wrong in it is told with file, key and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.hosts import HOSTS, machines_of
from harness.hosts.machine_list import read_machines
from harness.hosts.ssh import VARIABLE
from harness.model import UsageError

ONE = """
[[machine]]
name = "m1"
address = "127.0.0.2"
user = "kafka"
key = "keys/id"
folder = "/srv/fencepost"
"""


def other(**changed: str) -> str:
    """Return the table of a second machine, with these values changed."""
    values = {"name": "m2", "address": "127.0.0.3", "user": "kafka", "key": "id", "folder": "x", **changed}
    return "[[machine]]\n" + "".join(f'{key} = "{value}"\n' for key, value in values.items())


def test_machine_has_the_defaults_of_ssh_and_files_beside_the_list(tmp_path: Path) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text(ONE + other(python="/opt/python", known_hosts="/etc/known"))
    found = read_machines(file)
    first, second = found.machines
    assert ("127.0.0.1", 15.0) == (found.listen, found.silence_s)
    assert (22, "python3", tmp_path / "keys/id") == (first.port, first.python, first.key)
    assert Path("~/.ssh/known_hosts").expanduser() == first.known_hosts
    assert (Path("/etc/known"), "/opt/python") == (second.known_hosts, second.python)
    assert "machine m1 (kafka@127.0.0.2:22)" == str(first)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = [", "expected TOML"),
        ("", "machine: None; expected one [[machine]] at least"),
        ("machine = 3", "machine: 3; expected one [[machine]] at least"),
        (
            "liten = '127.0.0.1'" + ONE,
            "liten: unknown key; expected one of listen, silence_s, machine. Did you me",
        ),
        (ONE + "usr = 'x'", "machine m1: usr: unknown key; expected one of name, address, user, key"),
        (
            ONE.replace('user = "kafka"', ""),
            "machine m1: user: missing; expected name, address, user, key",
        ),
        (ONE.replace('name = "m1"', ""), "machine number 1: name: missing"),
        (ONE + "port = 0", "machine m1: port: 0; expected a number from 1 to 65535"),
        (ONE + "port = true", "machine m1: port: True; expected a number"),
        (ONE + "python = 3", "machine m1: python: 3; expected a text in quotes"),
        (ONE.replace("m1", "m 1"), "machine m 1: name: 'm 1'; expected at most 32 letters"),
        (ONE.replace('"kafka"', '"-oProxy"'), "machine m1: user: '-oProxy'; expected a user's name"),
        (ONE.replace("127.0.0.2", "-oX"), "machine m1: address: '-oX'; expected a name or an IPv4 address"),
        (ONE.replace("/srv/fencepost", "/"), "machine m1: folder: '/'; expected a folder for Fencepost alone"),
        (ONE.replace("/srv/fencepost", "~"), "machine m1: folder: '~'; expected a folder for Fencepost alone"),
        (ONE + other(name="m1"), "machine m1: name: 'm1'; expected another than that of machine m1"),
        (
            ONE + other(address="127.0.0.2"),
            "machine m2: address: '127.0.0.2'; expected another than that of machine",
        ),
        (ONE + other(address="192.0.2.7"), "listen: missing; expected an address of this machine that m"),
        ("listen = '0.0.0.0'" + ONE, "listen: '0.0.0.0'; expected one address of this machine"),
        ("listen = '::1'" + ONE, "listen: '::1'; expected one address of this machine"),
        (
            ONE.replace("127.0.0.2", "fe80::1"),
            "machine m1: address: 'fe80::1'; expected a name or an IPv4",
        ),
        ("silence_s = 1" + ONE, "silence_s: 1; expected seconds, from 2 to 3600"),
        ("silence_s = 'x'" + ONE, "silence_s: 'x'; expected seconds"),
        ("silence_s = nan" + ONE, "silence_s: nan; expected seconds"),
    ],
)
def test_wrong_list_is_told_with_file_key_and_value(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        read_machines(file)
    assert str(error.value).startswith(f"{file}: ")
    assert complaint in str(error.value)


def test_machines_elsewhere_need_the_address_that_they_can_reach(tmp_path: Path) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text("listen = '192.0.2.1'" + ONE + other(address="192.0.2.7"))
    assert "192.0.2.1" == read_machines(file).listen


def test_host_ssh_without_a_list_is_wrong_usage_and_so_is_a_list_for_another_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text(ONE)
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(
        UsageError, match="host ssh: no list of machines; expected --hosts FILE, or FENCEPOST_HOSTS"
    ):
        machines_of("ssh", None)
    with pytest.raises(UsageError, match=r"host ssh: no list of machines"):
        HOSTS["ssh"](tmp_path / "run").open()
    monkeypatch.setenv(VARIABLE, str(file))
    assert [file, None] == [machines_of("ssh", None), machines_of("local", None)]
    assert file == machines_of("ssh", file)
    for host in ("local", "docker"):
        with pytest.raises(
            UsageError, match=rf"--hosts .*: host {host} lists no machines; expected it with host ssh"
        ):
            HOSTS[host](tmp_path / "run", machines=file)
    with pytest.raises(UsageError, match="host sim lists no machines"):
        machines_of("sim", file)
