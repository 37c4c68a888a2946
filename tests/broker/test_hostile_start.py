"""A broker's process on a hostile data directory says in one line which file it refuses, and ends with 1."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.hosts.local import ROOT
from targets.broker.core.messages import TopicPartition
from targets.broker.log import open_data_dir
from tests.broker.log.batches import singles

pytestmark = pytest.mark.slow

TP = TopicPartition("orders", 0)
# A start needs some 60 MB; a file of 20 GB in memory would need more than this.
MEMORY_BYTES = 2**30


def _link(data: Path, outside: Path) -> Path:
    path = data / str(TP) / f"{0:020d}.log"
    path.unlink()
    path.symlink_to(outside)
    return path


def _fifo(data: Path, _outside: Path) -> Path:
    path = data / str(TP) / "leader-epoch-checkpoint"
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


def _locked_by_a_fifo(data: Path, _outside: Path) -> Path:
    os.mkfifo(data / ".lock")
    return data / ".lock"


def _giant(data: Path, _outside: Path) -> Path:
    path = data / "replication-offset-checkpoint"
    os.truncate(path, 20 * 2**30)
    return path


def _no_folder(data: Path, _outside: Path) -> Path:
    data.rename(data.with_name("moved"))
    os.mkfifo(data)
    return data


@pytest.mark.parametrize("spoil", [_link, _fifo, _locked_by_a_fifo, _giant, _no_folder])
def test_broker_refuses_it_in_one_line(tmp_path: Path, spoil: Callable[[Path, Path], Path]) -> None:
    data, outside = tmp_path / "data", tmp_path / "kept"
    outside.write_bytes(b"what an operator keeps\n")
    opened = open_data_dir(data).data
    singles(opened.create_log(TP), 3)
    opened.close_cleanly({TP: 3})
    path = spoil(data, outside)
    config = {
        "broker_id": 1,
        "node": "A",
        **{f"{kind}_{of}": ["127.0.0.1", 1] for kind in ("listen", "advertised") for of in ("client", "internal")},
        "zookeeper": "127.0.0.1:1/none",
        "session_timeout_ms": 6_000,
        "data_dir": str(data),
        "protocol": "kip380",
    }
    file = tmp_path / "broker.json"
    file.write_text(json.dumps(config))
    ended = subprocess.run(
        [sys.executable, "-m", "targets.broker", "--config", str(file)],
        check=False,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES)),
    )
    lines = [line for line in ended.stdout.splitlines() if '{"node"' not in line]
    assert (1, 1) == (ended.returncode, len(lines)), ended.stdout
    assert repr(str(path)) in lines[0]
    assert "expected" in lines[0]
    assert b"what an operator keeps\n" == outside.read_bytes()
