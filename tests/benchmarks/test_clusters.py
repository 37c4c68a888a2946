"""The launch of each peer for the benchmark, as opposed to a run of the harness."""

from __future__ import annotations

import json
import os
import pstats
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import clusters, profiled
from benchmarks.clusters import JVM, OURS_SETTINGS, PROFILE, THEIRS_PROPERTIES, our_peer, their_peer
from harness import limits
from harness.hosts.local import ROOT
from harness.launch import Address, Launch, Place
from harness.target.target import NodeSpec
from targets.broker.config import load
from targets.kafka.properties import server_properties
from targets.kafka.releases import Entry, release_of

HERE = Address(host="127.0.0.1", port=19001)
SPEC = NodeSpec(
    name="A",
    broker_id=1,
    place=Place(
        data_dir="/data",
        conf_dir="/conf",
        python="python",
        client=HERE,
        internal=HERE,
        client_outside=HERE,
        internal_outside=HERE,
    ),
    advertised_internal=HERE,
    services=(HERE,),
    folder=Path("suite/run"),
    collector=HERE,
)


def test_our_broker_is_told_of_no_collector_and_has_its_own_defaults(tmp_path: Path) -> None:
    peer = our_peer("ours", protocol="kip320")
    launch = peer.tune(peer.target.launch(SPEC, peer.protocol, peer.target.rules(peer.protocol, peer.changes)))
    file = tmp_path / "broker.json"
    file.write_text(launch.files["broker.json"], encoding="utf-8")
    config, settings = load(file)
    assert ("kip320", None) == (config.protocol, settings.collector)
    assert OURS_SETTINGS == {name: getattr(config, name) for name in OURS_SETTINGS}
    assert ("python", "-m", "targets.broker", "--config", "/conf/broker.json") == launch.argv


def test_our_broker_writes_its_profile_beside_its_configuration() -> None:
    peer = our_peer("ours", profile=True)
    config = json.dumps({"settings": {}, "collector": []})
    launch = peer.tune(
        Launch(argv=("python", "-m", "x", "--config", "/c/broker.json"), files={"broker.json": config})
    )
    expected = ("python", "-m", "benchmarks.profiled", f"/c/{PROFILE}", "x", "--config", "/c/broker.json")
    assert expected == launch.argv


def test_profile_has_what_ran_between_the_signals_and_nothing_else(tmp_path: Path) -> None:
    lines = ("def before(): pass", "def between(): pass", "def after(): pass")
    calls = ("before()", f"os.kill(os.getpid(), {int(profiled.BEGIN)})", "between()")
    last = (f"os.kill(os.getpid(), {int(profiled.END)})", "after()", "assert sys.argv[1:] == ['an', 'argument']")
    (tmp_path / "ran.py").write_text("\n".join(("import os, sys", *lines, *calls, *last)), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    file = tmp_path / PROFILE
    argv = (sys.executable, "-m", "benchmarks.profiled", str(file), "ran", "an", "argument")
    subprocess.run(argv, check=True, env=env, timeout=limits.CONDITION_WAIT_S_MAX)
    names = {name for _, _, name in pstats.Stats(str(file)).stats}  # type: ignore[attr-defined]
    assert {"between"} == names & {"before", "between", "after"}


def test_their_broker_is_compiled_for_the_long_run_and_has_its_own_defaults() -> None:
    peer = their_peer("theirs", "3.9.1")
    release = release_of("3.9.1")
    launch = peer.tune(Launch(argv=("java", *release.jvm, "-cp", "x")))
    assert ("java", *JVM) == launch.argv[: 1 + len(JVM)]
    assert not {"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"} & set(launch.argv)
    assert ("-cp", "x") == launch.argv[-2:]
    rules = peer.target.rules(peer.protocol, peer.changes)
    assert set(THEIRS_PROPERTIES) <= {f"{name}={value}" for name, value in rules.items()}
    changed = dict(change.split("=") for change in peer.changes)
    written = server_properties(SPEC, Entry(name="3.9.1", release=release, properties=changed)).splitlines()
    assert set(THEIRS_PROPERTIES) <= set(written)


def test_what_a_run_of_the_harness_gives_a_jvm_is_what_is_taken_out() -> None:
    """Without this test a change of a run's JVM options could slow down Kafka in the benchmark unnoticed."""
    assert set(clusters._JVM_OF_A_RUN) <= set(release_of("3.9.1").jvm)


@pytest.mark.parametrize("name", sorted(OURS_SETTINGS))
def test_settings_are_the_same_on_both(name: str) -> None:
    theirs = {
        "replica_lag_ms_max": "replica.lag.time.max.ms",
        "fetch_wait_ms_max": "replica.fetch.wait.max.ms",
        "high_watermark_checkpoint_ms": "replica.high.watermark.checkpoint.interval.ms",
    }
    assert f"{theirs[name]}={OURS_SETTINGS[name]}" in THEIRS_PROPERTIES
