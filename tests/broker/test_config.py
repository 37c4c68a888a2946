"""The broker reads every key of a valid configuration and rejects an invalid one with a one-line error."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.launch import Address, Place
from harness.target.target import NodeSpec
from targets.broker.config import FILE_BYTES_MAX, ConfigError, Driver, load
from targets.broker.core.rules import PROTOCOLS, as_text
from targets.broker.core.state import Config
from targets.broker.core.zookeeper import Registration
from targets.broker.limits import Limits
from targets.broker_target.target import SESSION_TIMEOUT_MS, SETTINGS, TARGET

GOOD: dict[str, Any] = {
    "broker_id": 7,
    "node": "A",
    "listen_client": ["127.0.0.1", 1001],
    "listen_internal": ["127.0.0.1", 1002],
    "advertised_client": ["a", 1003],
    "advertised_internal": ["b", 1004],
    "zookeeper": "127.0.0.1:1005/run",
    "session_timeout_ms": 6000,
    "data_dir": "/data",
    "collector": ["127.0.0.1", 1006],
    "protocol": "kip101",
    "rules": as_text(PROTOCOLS["hw"]),
    "segment_bytes": 4096,
    "settings": {"min_isr": 2, "unclean_election": True, "fetch_wait_ms_max": 50},
}


def loaded(folder: Path, raw: object) -> tuple[Config, Driver]:
    """Write a configuration file and load it."""
    path = folder / "broker.json"
    path.write_text(raw if isinstance(raw, str) else json.dumps(raw), encoding="utf-8")
    return load(path)


def test_every_key_arrives(tmp_path: Path) -> None:
    config, driver = loaded(tmp_path, GOOD)
    registration = Registration(node="A", host="a", port=1003, internal_host="b", internal_port=1004)
    expected = Config(
        broker_id=7,
        registration=registration,
        protocol="kip101",
        rules=PROTOCOLS["hw"],
        min_isr=2,
        unclean_election=True,
        fetch_wait_ms_max=50,
    )
    assert expected == config
    assert (
        Driver(
            node="A",
            listen_client=("127.0.0.1", 1001),
            listen_internal=("127.0.0.1", 1002),
            zookeeper="127.0.0.1:1005/run",
            session_timeout_ms=6000,
            data_dir=Path("/data"),
            collector=("127.0.0.1", 1006),
            segment_bytes=4096,
        )
        == driver
    )


def test_what_may_be_left_out_has_its_default(tmp_path: Path) -> None:
    left_out = ("collector", "rules", "segment_bytes", "settings")
    config, driver = loaded(tmp_path, {key: value for key, value in GOOD.items() if key not in left_out})
    assert PROTOCOLS["kip101"] == config.rules
    assert (1, False) == (config.min_isr, config.unclean_election)
    assert (None, 64 * 1024 * 1024) == (driver.collector, driver.segment_bytes)


def test_rule_is_changed_by_its_old_name_too() -> None:
    """The old name is accepted for one release."""
    old, new = (TARGET.rules("kip380", (f"{name}=no",)) for name in ("bounce_seen", "fence_broker_epoch"))
    assert new == old != TARGET.rules("kip380", ())


def spec_of(secret: str = "") -> NodeSpec:
    here = Address(host="127.0.0.1", port=1001)
    place = Place(
        data_dir="/data",
        conf_dir="/conf",
        python="python",
        client=here,
        internal=here,
        client_outside=here,
        internal_outside=here,
    )
    return NodeSpec(
        name="A",
        broker_id=3,
        place=place,
        advertised_internal=here,
        services=(Address(host="127.0.0.1", port=1005),),
        folder=Path("suite/run"),
        collector=here,
        secret=secret,
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_launch_of_every_protocol_loads_with_its_rules_and_the_targets_settings(
    tmp_path: Path, protocol: str
) -> None:
    launch = TARGET.launch(spec_of(), protocol, TARGET.rules(protocol, ()))
    config, driver = loaded(tmp_path, launch.files["broker.json"])
    assert PROTOCOLS[protocol] == config.rules
    assert SETTINGS == {name: getattr(config, name) for name in SETTINGS}
    assert (3, "A", SESSION_TIMEOUT_MS) == (config.broker_id, driver.node, driver.session_timeout_ms)


def test_secret_is_in_the_environment_alone_where_other_users_cannot_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of("s3cret")
    launch = TARGET.launch(spec, "hw", TARGET.rules("hw", ()))
    assert "s3cret" not in repr((launch.argv, launch.files, spec))
    for name, value in launch.env.items():
        monkeypatch.setenv(name, value)
    _, driver = loaded(tmp_path, launch.files["broker.json"])
    assert "s3cret" == driver.secret
    assert "s3cret" not in repr(driver)


@pytest.mark.parametrize("key", sorted(set(GOOD) - {"collector", "rules", "segment_bytes", "settings"}))
def test_missing_key_is_named(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=rf"broker\.json: {key}: not given; expected all of advertised_client, "):
        loaded(tmp_path, {name: value for name, value in GOOD.items() if name != key})


WRONG = [
    ("broker_id", "7", "broker_id '7': expected a whole number from 0 on"),
    ("broker_id", True, "broker_id True: expected a whole number from 0 on"),
    ("broker_id", -1, "broker_id -1: expected a whole number from 0 on"),
    ("node", "", "node '': expected a text"),
    ("node", 5, "node 5: expected a text"),
    ("listen_client", "127.0.0.1:1", "listen_client '127.0.0.1:1': expected [host, port]"),
    ("listen_internal", ["127.0.0.1"], "listen_internal ['127.0.0.1']: expected [host, port]"),
    ("listen_internal", ["h", 70000], "listen_internal's port 70000: expected a whole number from 1 to 65535"),
    ("advertised_client", ["h", "1"], "advertised_client's port '1': expected a whole number from 1 to 65535"),
    ("advertised_internal", [1, 1], "advertised_internal's host 1: expected a text"),
    ("zookeeper", ["127.0.0.1", 1], "zookeeper ['127.0.0.1', 1]: expected a text"),
    ("session_timeout_ms", 0, "session_timeout_ms 0: expected a whole number from 1 on"),
    ("session_timeout_ms", 6.5, "session_timeout_ms 6.5: expected a whole number from 1 on"),
    ("data_dir", None, "data_dir None: expected a text"),
    ("collector", [], "collector []: expected [host, port]"),
    ("segment_bytes", 0, "segment_bytes 0: expected a whole number from 1 on"),
    ("settings", [], "settings []: expected a JSON object"),
    ("settings", {"min_isr": "two"}, "setting min_isr 'two': expected a whole number from 0 on"),
    ("settings", {"unclean_election": "no"}, "setting unclean_election 'no': expected true or false"),
    ("settings", {"flush_messages": -1}, "setting flush_messages -1: expected a whole number from 0 on"),
    ("settings", {"min_isrs": 2}, "setting min_isrs: unknown; expected some of check_bytes_max, "),
    ("settings", {"broker_id": 2}, "setting broker_id: unknown; expected some of check_bytes_max, "),
    ("rules", [], "rules []: expected a JSON object"),
    ("rules", {"truncate_to": "high_watermark"}, "rules ['truncate_to']: expected exactly ["),
    ("rules", {**as_text(PROTOCOLS["hw"]), "epochs": True}, "rule epochs True: expected a text"),
    ("rules", {**as_text(PROTOCOLS["hw"]), "epochs": "maybe"}, "rule epochs='maybe': expected one of no, yes"),
    ("protocol", "kip102", "protocol 'kip102': expected one of hw, "),
    ("segment_byte", 5, "key segment_byte: unknown; expected some of advertised_client, "),
]


@pytest.mark.parametrize(("key", "value", "said"), WRONG)
def test_wrong_value_is_told_in_one_line_with_what_was_expected(
    tmp_path: Path, key: str, value: object, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, {**GOOD, key: value})
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'broker.json'}: {said}")
    assert 1 == len(text.splitlines())


def test_every_key_has_a_wrong_value_that_is_told() -> None:
    assert set(GOOD) <= {key for key, _, _ in WRONG}


@pytest.mark.parametrize(
    ("text", "said"), [("{", "Expecting property name"), ("[]", "the file \\[\\]: expected a JSON object")]
)
def test_file_that_is_no_json_object_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"broker\.json: {said}"):
        loaded(tmp_path, text)


def test_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json: .*No such file"):
        load(tmp_path / "none.json")


def test_limits_are_read_and_unknown_or_impossible_ones_are_refused(tmp_path: Path) -> None:
    config, _ = loaded(tmp_path, GOOD | {"limits": {"connections_max": 7}})
    assert Limits(connections_max=7) == config.limits
    for limits, words in (
        ({"conections_max": 7}, "limit conections_max: unknown"),
        ({"connections_max": 0}, "from 1 on"),
    ):
        with pytest.raises(ConfigError, match=words):
            loaded(tmp_path, GOOD | {"limits": limits})


def test_what_is_no_file_of_a_sane_size_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    large = tmp_path / "large"
    large.write_bytes(b" " * (FILE_BYTES_MAX + 1))
    for path, words in (
        (pipe, "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
        (large, "more than"),
    ):
        with pytest.raises(ConfigError, match=words):
            load(path)
