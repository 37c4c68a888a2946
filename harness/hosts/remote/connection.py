"""
One SSH connection to a machine: known host keys alone, one private key, no password, no agent, nothing forwarded.

Every command is a list of words that is quoted for the shell of the machine's user.
"""

from __future__ import annotations

import logging
import os
import shlex
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import paramiko

from harness import limits
from harness.hosts.machine_list import SSH_PORT, Machine
from harness.model import UsageError

# What a command prints that is not the agent.
OUTPUT_BYTES_MAX: Final = 1024 * 1024
_OTHERS_READ: Final = 0o077
# The library logs what it raises as well, with a traceback, to the terminal.
_LOG: Final = "fencepost.paramiko"
logging.getLogger(_LOG).addHandler(logging.NullHandler())
logging.getLogger(_LOG).propagate = False


class _Unknown(paramiko.RejectPolicy):  # type: ignore[misc]
    """Refuses a machine whose key is not known, and says which key it showed."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
        """Raise UsageError."""
        del client, hostname
        machine = self._machine
        port = "" if machine.port == SSH_PORT else f"-p {machine.port} "
        raise UsageError(
            f"{machine}: its host key {key.get_name()} {key.fingerprint} is not in {machine.known_hosts}; "
            "expected a known host; compare the fingerprint on the machine itself, then "
            f"`ssh-keyscan {port}{machine.address} >> {machine.known_hosts}`"
        )


class Connection:
    """An open connection to one machine; `close` ends it."""

    def __init__(self, machine: Machine) -> None:
        """
        Connect.

        Raises:
            UsageError: The machine does not answer, is not known, or refuses the key; the message is one line.
        """
        self.machine = machine
        self._client = paramiko.SSHClient()
        self._client.set_log_channel(_LOG)
        self._client.set_missing_host_key_policy(_Unknown(machine))
        try:
            key = _key(machine)
            self._client.load_host_keys(str(_readable(machine, machine.known_hosts, "known_hosts")))
            self._client.connect(
                machine.address,
                port=machine.port,
                username=machine.user,
                pkey=key,
                allow_agent=False,
                look_for_keys=False,
                timeout=limits.SSH_CONNECT_S_MAX,
                banner_timeout=limits.SSH_CONNECT_S_MAX,
                auth_timeout=limits.SSH_CONNECT_S_MAX,
                channel_timeout=limits.SSH_CONNECT_S_MAX,
            )
        except UsageError:
            self._client.close()
            raise
        except paramiko.BadHostKeyException as error:
            self._client.close()
            raise UsageError(
                f"{machine}: its host key {error.key.get_name()} {error.key.fingerprint} is not the one in "
                f"{machine.known_hosts}; expected {error.expected_key.fingerprint}: another machine may answer"
            ) from error
        except paramiko.AuthenticationException as error:
            self._client.close()
            raise UsageError(
                f"{machine}: refuses key {machine.key}: {_said(error)}; expected it in the user's authorized_keys"
            ) from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            self._client.close()
            raise UsageError(f"{machine}: {_said(error)}; expected an SSH server that answers") from error

    def run(self, words: Sequence[str]) -> str:
        """
        Run a command to its end; return what it printed.

        Raises:
            UsageError: It fails, or does not end in time.
        """
        try:
            channel = self.start(words)
            with channel, channel.makefile("rb") as output, channel.makefile_stderr("rb") as errors:
                said = output.read(OUTPUT_BYTES_MAX)
                complaint = errors.read(OUTPUT_BYTES_MAX)
                code = channel.recv_exit_status()
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise UsageError(
                f"{self.machine}: {words[0]}: {_said(error)}; expected a command that ends"
            ) from error
        if code != 0:
            lines = complaint.decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
            raise UsageError(f"{self.machine}: {words[0]}: {lines[-1]}; expected it to run")
        return bytes(said).decode(errors="replace")

    def start(self, words: Sequence[str]) -> Any:
        """Start a command and return its channel; raises what paramiko does."""
        transport = self._client.get_transport()
        if transport is None:
            raise EOFError("the connection is closed")
        channel = transport.open_session(timeout=limits.SSH_CONNECT_S_MAX)
        channel.settimeout(limits.SSH_CALL_S_MAX)
        channel.exec_command(shlex.join(words))
        return channel

    def put(self, data: bytes, path: str) -> None:
        """Write a new file on the machine; raise UsageError if it cannot be written."""
        try:
            with self._client.open_sftp() as sftp:
                sftp.get_channel().settimeout(limits.SSH_CALL_S_MAX)
                with sftp.open(path, "wx") as file:
                    file.chmod(0o600)
                    file.set_pipelined(True)
                    file.write(data)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise UsageError(f"{self.machine}: {path}: {_said(error)}; expected to write it by SFTP") from error

    def close(self) -> None:
        """End the connection; safe to call twice."""
        self._client.close()


def _key(machine: Machine) -> Any:
    """Return the machine's private key; raise UsageError if it is none that can be used."""
    path = _readable(machine, machine.key, "key")
    if os.stat(path).st_mode & _OTHERS_READ:
        raise UsageError(
            f"{machine}: key {path}: others may read it (mode {stat.S_IMODE(os.stat(path).st_mode):04o}); "
            f"expected a private key; `chmod 600 {path}`"
        )
    try:
        return paramiko.PKey.from_path(path)
    except TypeError as error:  # what paramiko's cryptography raises
        raise UsageError(f"{machine}: key {path}: it has a passphrase; expected one without") from error
    except (paramiko.SSHException, ValueError, OSError, UnicodeError) as error:
        text = "it has a passphrase" if isinstance(error, paramiko.PasswordRequiredException) else _said(error)
        raise UsageError(f"{machine}: key {path}: {text}; expected a private key without a passphrase") from error
    except Exception as error:
        if not type(error).__module__.startswith("paramiko"):
            raise
        raise UsageError(f"{machine}: key {path}: {_said(error)}; expected a private key") from error


def _readable(machine: Machine, path: Path, what: str) -> Path:
    """Return the path of a file that can be read; raise UsageError for another."""
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise UsageError(f"{machine}: {what} {path}: {error.strerror}; expected a file") from error


def _said(error: BaseException) -> str:
    """Return in one line what an error says."""
    lines = str(error).splitlines() or [""]
    return lines[0][:200] or type(error).__name__
