"""One ZooKeeper for all tests that ask for it, and signals as a terminal has them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from harness.hosts import HOSTS
from harness.hosts.base import Address

# Whoever starts the tests behind a shell's & has Ctrl-C ignored, in them and in all that they start; what comes of
# it is what some of them are about.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A real ZooKeeper; whoever uses it keeps below a chroot of its own."""
    ground = HOSTS["local"](tmp_path_factory.mktemp("zookeeper"), power_tier="watermark")
    ground.open()
    try:
        yield ground.start_zookeeper()
    finally:
        ground.close()
