"""
Names that histories had before events were given the words that all replicated logs share.

A family of systems hands them over as data: `OLDER`, in the module `older` of its package below targets/. So every
history that was ever written is read, and nothing here knows an old name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, Final

# In place of an op's f: any.
ANY_F: Final = "*"
_PACKAGES: Final = "targets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """
    What became of the ops of one old source and f.

    Attributes:
        source: the source now.
        f: old f -> f now; an f that is not there stays.
        keys: old key of the value -> key now.
        texts: old text -> text now: wherever it is the op's process, a value, or an item of a list in its value.
    """

    source: str
    f: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def now(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return an op's JSON with the names of today."""
        f, texts, value = raw["f"], self.texts, raw["value"]
        return {
            **raw,
            "source": self.source,
            "process": texts.get(raw["process"], raw["process"]),
            "f": self.f.get(f, f),
            "value": {self.keys.get(key, key): self._text(each) for key, each in value.items()},
        }

    def is_in(self, value: str) -> bool:
        """Return True if a value, as JSON, may have an old key or an old text."""
        return any(f'"{old}"' in value for old in (*self.keys, *self.texts))

    def _text(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.texts.get(value, value)
        if isinstance(value, list) and self.texts:
            return [self.texts.get(each, each) if isinstance(each, str) else each for each in value]
        return value


def renamed(source: str, f: str) -> Renamed | None:
    """Return what became of the ops of a source and f; None if they may only have the names of today."""
    table = _table()
    return table.get((source, f)) or table.get((source, ANY_F))


def counted(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts of a stored suite with the names of today."""
    return {_counted().get(name, name): count for name, count in counts.items()}


def handed_over(module: str, name: str) -> tuple[Any, ...]:
    """Return what the packages below targets/ have under this name, in their modules of that name."""
    packages = iter_modules(import_module(_PACKAGES).__path__, f"{_PACKAGES}.")
    modules = (f"{each.name}.{module}" for each in packages if each.ispkg)
    found = (import_module(each) for each in modules if find_spec(each) is not None)
    return tuple(getattr(each, name) for each in found if hasattr(each, name))


@cache
def _table() -> Mapping[tuple[str, str], Renamed]:
    """Return (source, f) -> what became of it."""
    return {key: each for table in handed_over("older", "OLDER") for key, each in table.items()}


@cache
def _counted() -> Mapping[str, str]:
    return {old: now for table in handed_over("older", "COUNTED") for old, now in table.items()}
