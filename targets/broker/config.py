"""The broker's configuration file: JSON in, the core's Config and the driver's addresses out."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, get_type_hints

from targets.broker.core.inter_broker import protocol_rules
from targets.broker.core.log_port import LATEST_FORMAT
from targets.broker.core.rules import from_text
from targets.broker.core.settings import FORMATS
from targets.broker.core.state import Config, Together
from targets.broker.core.zookeeper import Registration
from targets.broker.limits import Limits

# Other users cannot read the environment, unlike a command line, or a file that is kept with a run's results.
SECRET_VARIABLE: Final = "FENCEPOST_COLLECTOR_SECRET"
FILE_BYTES_MAX: Final = 1024 * 1024
SEGMENT_BYTES: Final = 64 * 1024 * 1024
_PORT_MAX: Final = 65535
_KINDS: Final = get_type_hints(Config)
_TUNABLE: Final = {
    each.name: _KINDS[each.name]
    for each in fields(Config)
    if each.name not in ("broker_id", "registration", "protocol", "rules", "limits", "together")
}
_NEEDED: Final = frozenset(
    {
        "broker_id",
        "node",
        "listen_client",
        "listen_internal",
        "advertised_client",
        "advertised_internal",
        "zookeeper",
        "session_timeout_ms",
        "data_dir",
        "protocol",
    }
)
_OPTIONAL: Final = frozenset(
    {"collector", "rules", "segment_bytes", "segment_ms", "settings", "limits", "together"}
)
_LIMITS: Final = frozenset(each.name for each in fields(Limits))
_TOGETHER: Final = frozenset(each.name for each in fields(Together))


class ConfigError(Exception):
    """The configuration file is wrong: names the key, its value and what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """
    The driver's own settings. Addresses are (host, port); collector None: emit no events.

    Attributes:
        secret: what the collector expects of this node, from the environment (SECRET_VARIABLE).
    """

    node: str
    listen_client: tuple[str, int]
    listen_internal: tuple[str, int]
    zookeeper: str
    session_timeout_ms: int
    data_dir: Path
    collector: tuple[str, int] | None
    segment_bytes: int
    segment_ms: int = 0
    secret: str = field(default="", repr=False)


def load(path: Path) -> tuple[Config, Driver]:
    """
    Read a configuration file.

    Required keys: broker_id, node, listen_client, listen_internal, advertised_client, advertised_internal
    ([host, port] each), zookeeper (host:port/chroot), session_timeout_ms, data_dir, protocol. Optional keys:
    collector ([host, port]), rules {name: value} (all of them; the default is the protocol's own), segment_bytes,
    segment_ms, the core's tunables under "settings", how much it does at once under "together"
    (targets/broker/core/state.py), and the quotas of targets/broker/limits.py under "limits".

    Raises:
        ConfigError: one line that names the file, the key, its value and what was expected.
    """
    try:
        raw = _object("the file", json.loads(_text_of(path)))
        _only("key", raw, _NEEDED | _OPTIONAL)
        missing = sorted(_NEEDED - set(raw))
        if missing:
            raise ValueError(f"{', '.join(missing)}: not given; expected all of {', '.join(sorted(_NEEDED))}")
        return _config(raw), _driver(raw)
    # RecursionError: lists within lists, too deep for the reader of JSON.
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _text_of(path: Path) -> str:
    """Read a regular file of a sane size; a pipe or a device would never end."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("not a regular file; expected a configuration in JSON")
        data = file.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise ValueError(f"more than {FILE_BYTES_MAX} bytes; expected a configuration in JSON")
    return data.decode("utf-8")


def _config(raw: Mapping[str, Any]) -> Config:
    settings = _object("settings", raw.get("settings", {}))
    _only("setting", settings, frozenset(_TUNABLE))
    protocol = _text("protocol", raw["protocol"])
    own = protocol_rules(protocol)
    rules = _object("rules", raw.get("rules", {}))
    host, port = _address("advertised_client", raw["advertised_client"])
    internal_host, internal_port = _address("advertised_internal", raw["advertised_internal"])
    tunables: dict[str, Any] = {
        name: _setting(f"setting {name}", value, _TUNABLE[name]) for name, value in settings.items()
    }
    if tunables.get("message_format", LATEST_FORMAT) not in FORMATS:
        raise _wrong("setting message_format", tunables["message_format"], " or ".join(map(str, FORMATS)))
    return Config(
        broker_id=_number("broker_id", raw["broker_id"]),
        registration=Registration(
            node=_text("node", raw["node"]),
            host=host,
            port=port,
            internal_host=internal_host,
            internal_port=internal_port,
        ),
        protocol=protocol,
        rules=from_text({name: _text(f"rule {name}", value) for name, value in rules.items()}) if rules else own,
        limits=_limits(_object("limits", raw.get("limits", {}))),
        together=_together(_object("together", raw.get("together", {}))),
        **tunables,
    )


def _limits(raw: Mapping[str, Any]) -> Limits:
    _only("limit", raw, _LIMITS)
    return Limits(**{name: _number(f"limit {name}", value, least=1) for name, value in raw.items()})


def _together(raw: Mapping[str, Any]) -> Together:
    _only("number of things done together", raw, _TOGETHER)
    return Together(**{name: _number(f"together {name}", value, least=1) for name, value in raw.items()})


def _driver(raw: Mapping[str, Any]) -> Driver:
    collector = raw.get("collector")
    return Driver(
        node=_text("node", raw["node"]),
        listen_client=_address("listen_client", raw["listen_client"]),
        listen_internal=_address("listen_internal", raw["listen_internal"]),
        zookeeper=_text("zookeeper", raw["zookeeper"]),
        session_timeout_ms=_number("session_timeout_ms", raw["session_timeout_ms"], least=1),
        data_dir=Path(_text("data_dir", raw["data_dir"])),
        collector=None if collector is None else _address("collector", collector),
        segment_bytes=_number("segment_bytes", raw.get("segment_bytes", SEGMENT_BYTES), least=1),
        segment_ms=_number("segment_ms", raw.get("segment_ms", 0)),
        secret=os.environ.get(SECRET_VARIABLE, ""),
    )


# --- one value -----------------------------------------------------------------------------------------------
def _only(what: str, given: Mapping[str, Any], known: frozenset[str]) -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        raise ValueError(f"{what} {', '.join(unknown)}: unknown; expected some of {', '.join(sorted(known))}")


def _object(key: str, value: Any) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    raise _wrong(key, value, "a JSON object")


def _text(key: str, value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise _wrong(key, value, "a text")


def _number(key: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    # Python takes JSON's true for an int.
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= (most or value):
        return value
    raise _wrong(key, value, f"a whole number from {least} " + ("on" if most is None else f"to {most}"))


def _setting(key: str, value: Any, kind: type[Any]) -> int | bool:
    if kind is not bool:
        return _number(key, value)
    if isinstance(value, bool):
        return value
    raise _wrong(key, value, "true or false")


def _address(key: str, value: Any) -> tuple[str, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise _wrong(key, value, "[host, port]")
    return _text(f"{key}'s host", value[0]), _number(f"{key}'s port", value[1], least=1, most=_PORT_MAX)


def _wrong(key: str, value: Any, wanted: str) -> ValueError:
    return ValueError(f"{key} {value!r}: expected {wanted}")
