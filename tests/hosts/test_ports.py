"""A port is claimed at most once at a time, and ports that have a listener are skipped."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness import limits
from harness.hosts.ports import PortClaims
from harness.model import UsageError

ROOT = Path(__file__).resolve().parents[2]

OTHER_PROCESS = """
from harness.hosts.ports import PortClaims
claims = PortClaims()
print(claims.claim(), flush=True)
input()
"""


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> int:
    """Narrow the port range to two adjacent free ports, and return the first."""
    with socket.socket() as first, socket.socket() as second:
        for port in range(limits.PORT_LAST - 2, limits.PORT_FIRST, -2):
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            break
    monkeypatch.setattr(limits, "PORT_FIRST", port)
    monkeypatch.setattr(limits, "PORT_LAST", port + 1)
    return port


def test_claims_of_one_process_exclude_each_other(narrow: int) -> None:
    one, other = PortClaims(), PortClaims()
    assert {narrow, narrow + 1} == {one.claim(), other.claim()}
    with pytest.raises(UsageError, match=r"all taken; expected a free one; end what listens there"):
        one.claim()
    other.close()
    assert one.claim() in (narrow, narrow + 1)
    one.close()
    one.close()


def test_one_claims_object_never_gives_a_port_twice(narrow: int) -> None:
    claims = PortClaims()
    assert {narrow, narrow + 1} == {claims.claim(), claims.claim()}
    claims.close()


@pytest.mark.slow
def test_claim_of_another_process_holds_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        theirs = int(process.stdout.readline())
        monkeypatch.setattr(limits, "PORT_FIRST", theirs)
        monkeypatch.setattr(limits, "PORT_LAST", theirs)
        claims = PortClaims()
        with pytest.raises(UsageError, match="all taken"):
            claims.claim()
        process.kill()
        process.wait()
        assert theirs == claims.claim()
        claims.close()


def test_port_that_somebody_listens_on_is_passed_over(narrow: int) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", narrow))
        listener.listen()
        claims = PortClaims()
        assert claims.claim() == narrow + 1
        claims.close()
