"""A machine that is not known, or a key that will not do, is refused in one line, and nothing is started there."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from harness.hosts.ssh import SshHost
from harness.model import UsageError
from tests.hosts.conftest import MakeSsh
from tests.hosts.sshds import Sshd

pytestmark = pytest.mark.slow


def test_machine_whose_key_is_not_known_is_refused_with_its_fingerprint(
    make_ssh: MakeSsh, machines: list[Sshd], tmp_path: Path
) -> None:
    first = machines[0]
    known = first.known_hosts.read_text()
    try:
        first.known_hosts.write_text("")
        with pytest.raises(UsageError) as error:
            make_ssh()
        first.known_hosts.write_text(
            known.replace(known.split()[2], machines[1].known_hosts.read_text().split()[2])
        )
        with pytest.raises(
            UsageError, match=r"machine m1 .* is not the one in .*; expected SHA256:.*: another machine"
        ):
            make_ssh()
    finally:
        first.known_hosts.write_text(known)
    said = subprocess.run(
        ["ssh-keygen", "-lf", str(first.folder / "host-key.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    assert f"machine m1 ({first.user}@{first.address}:{first.port}): its host key ssh-ed25519 {said}" in str(
        error.value
    )
    assert f"`ssh-keyscan -p {first.port} {first.address} >> {first.known_hosts}`" in str(error.value)
    assert "\n" not in str(error.value)
    assert [[], [], []] == [each.processes() for each in machines]


def test_key_or_server_that_will_not_do_is_told_in_one_line(
    machines: list[Sshd], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second, _ = machines
    bad = tmp_path / "bad"
    bad.write_text("no key")
    bad.chmod(0o600)
    loose = tmp_path / "loose"
    loose.write_bytes(first.key.read_bytes())
    loose.chmod(0o644)
    secret = tmp_path / "secret"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "opensesame", "-f", str(secret)], check=True)
    with socket.socket() as probe:
        probe.bind((first.address, 0))
        nobody = probe.getsockname()[1]
        for changed, complaint in (
            ({"key": str(second.key)}, "refuses key .*: Authentication failed"),
            ({"key": str(tmp_path / "none")}, "key .*none: No such file or directory; expected a file"),
            ({"key": str(bad)}, "key .*bad: .*expected a private key"),
            ({"key": str(loose)}, r"others may read it \(mode 0644\); expected a private key; `chmod 600"),
            ({"key": str(secret)}, "key .*secret: it has a passphrase; expected one without"),
            ({"known_hosts": str(tmp_path / "none")}, "known_hosts .*none: No such file"),
            ({"port": nobody}, "expected an SSH server that answers"),
            ({"python": "/none/such"}, "/none/such: .*not found; expected it to run"),
            ({"address": "no-such-name.invalid"}, "expected a name that this machine can resolve"),
            ({"folder": "/proc/fencepost"}, "folder /proc/fencepost: .*; expected one of the user's alone"),
        ):
            file = tmp_path / "hosts.toml"
            file.write_text('listen = "127.0.0.1"\n' + first.table(**changed))
            with pytest.raises(UsageError, match=rf"machine m1 \(.*{complaint}") as error:
                SshHost(tmp_path / "run", machines=file).open()
            assert "\n" not in str(error.value)
    assert "" == capfd.readouterr().err
