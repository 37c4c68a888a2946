"""Print which target has which method of the seam, and whose it is, from the seam's interfaces and the targets."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import FunctionType
from typing import Any, Final

from harness.ability import Ability
from harness.docs import markdown
from harness.target import found as finder
from harness.target.clients import Client, TargetClients
from harness.target.logs import Logs, QuickEnds, ReplicaFolders, Rots, RotsState, Segments
from harness.target.metadata import Metadata
from harness.target.operator import REQUESTS, Operator
from harness.target.parts import members
from harness.target.services import Service
from harness.target.target import Target
from harness.target.traits import Traits
from harness.target.wire import Hearing, Reading, Wire

_LACKS: Final = "–"
_VALUE_CHARACTERS_MAX: Final = 40
_LINK: Final = ("A", "B")
# A method that a target may have and still not be asked for, as its `abilities` say.
_ABLE: Final[Mapping[str, Ability]] = {
    **{f"{Operator.__name__}.{each.value}": each for each in REQUESTS},
    "Metadata.incarnation": Ability.MEMBERS,
    "Metadata.controller": Ability.CONTROLLER,
    "Metadata.office": Ability.CONTROLLER,
}


def methods() -> Sequence[str]:
    """Return the parts of a section: for each method of the seam, whose it is in each target."""
    targets: list[Target] = [each.load() for each in finder.found().values() if each.module]
    names = [target.name for target in targets]
    rows = [
        (f"`{interface.__name__}.{member}`", *(_whose(each, interface, member) for each in targets))
        for interface in _PARTS
        for member in members(interface)
    ]
    folder = [(f"`{name}.py`", *(_in_folder(target, name) for target in targets)) for name in finder.PARTS]
    traits = [(f"`{each.name}`", *(_trait(target, each.name) for target in targets)) for each in fields(Traits)]
    return (
        "*own*: in the target's folder; *family*: in a folder that it shares with its like, such as "
        "`targets/kafka_family`;\n*plain*: the harness's ready-made one, or its default; "
        f"*{_LACKS}*: there is none. What needs it is then not played, or not needed.",
        markdown.table(("of the seam", *names), [*rows, *folder]),
        "What is true of each, as the judge asks it (`Traits`); a value that its versions do not share is *by "
        "version*.",
        markdown.table(("trait", *names), traits),
    )


# --- the parts of a target ------------------------------------------------------------------------------------
def _readings(target: Target) -> list[Reading]:
    if target.wire is None:
        return []
    hearing = target.wire.hear({})
    return [each for kind in target.wire.links if (each := hearing.reading(kind, _LINK)) is not None]


def _made(function: Callable[..., Any]) -> list[object]:
    """Return the class of what a method of a target returns, as its annotation says."""
    name, module = inspect.get_annotations(function)["return"], sys.modules[function.__module__]
    if hasattr(module, name):
        return [getattr(module, name)]
    # Imported for those who check types alone: what it stands on takes long to import.
    for each in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(each, ast.ImportFrom) and name in {alias.name for alias in each.names}:
            assert each.module is not None, f"{function.__module__}: a relative import"
            return [getattr(import_module(each.module), name)]
    raise AssertionError(f"{function.__module__}: nothing is named {name}; expected what {function} returns")


def _client(target: Target) -> list[object]:
    nothing: Any = None  # it records nothing while it is asked for nothing
    return [target.clients.make(target.clients.names[0], history=nothing, bootstrap=list)]


# Interface -> what a target has of it: objects, or their classes; [] for nothing.
_PARTS: Final[Mapping[type, Callable[[Target], Sequence[object]]]] = {
    Target: lambda target: [target],
    Wire: lambda target: [target.wire] if target.wire else [],
    Hearing: lambda target: [target.wire.hear({})] if target.wire else [],
    Reading: _readings,
    Logs: lambda target: [target.logs],
    QuickEnds: lambda target: [target.logs],
    ReplicaFolders: lambda target: [target.logs],
    Rots: lambda target: [target.logs],
    RotsState: lambda target: [target.logs],
    Segments: lambda target: [target.logs],
    Metadata: lambda target: _made(type(target).metadata),
    Operator: lambda target: _made(type(target).operator),
    Service: lambda target: list(target.services),
    TargetClients: lambda target: [target.clients],
    Client: _client,
}


# --- whose it is ----------------------------------------------------------------------------------------------
def _whose(target: Target, interface: type, member: str) -> str:
    """Return whose a member of an interface is: a word for each that a target has of it, if they differ."""
    ability = _ABLE.get(f"{interface.__name__}.{member}")
    if ability is not None and ability not in target.abilities:
        return _LACKS
    parts = _PARTS[interface](target)
    words = dict.fromkeys(word for part in parts for word in _words(target, member, part))
    return ", ".join(words) or _LACKS


def _words(target: Target, member: str, part: object) -> Iterator[str]:
    kind = part if isinstance(part, type) else type(part)
    if not hasattr(kind, member) and member not in {each.name for each in _fields(kind)}:
        return
    value = getattr(part, member, None)
    if part is target and not callable(value):
        if value not in (None, (), {}):
            yield _word(target, next(_modules(value), kind.__module__))
    elif isinstance(part, Service):
        usual = next((each.default for each in _fields(kind) if each.name == member), value)
        yield "plain" if value is usual else _word(target, part.launch.__module__)
    else:
        yield _word(target, next(each.__module__ for each in kind.__mro__ if _defines(each, member)))


def _word(target: Target, module: str) -> str:
    if not module.startswith("targets."):
        return "plain"
    return "own" if module.startswith(f"{type(target).__module__.rpartition('.')[0]}.") else "family"


def _defines(kind: type, member: str) -> bool:
    return member in vars(kind) or member in inspect.get_annotations(kind)


def _fields(kind: type) -> Sequence[Any]:
    return fields(kind) if is_dataclass(kind) else ()


def _modules(value: Any) -> Iterator[str]:
    """Yield where what a value is made of comes from, of the modules of targets."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        yield from (module for each in value for module in _modules(each))
        return
    module = value.__module__ if isinstance(value, FunctionType | type) else type(value).__module__
    if module.startswith("targets."):
        yield module
    elif is_dataclass(value) and not isinstance(value, type):
        yield from (module for each in fields(value) for module in _modules(getattr(value, each.name)))


def _in_folder(target: Target, name: str) -> str:
    folder = finder.entry(target.name).folder
    return "own" if folder is not None and (folder / f"{name}.py").is_file() else _LACKS


def _trait(target: Target, name: str) -> str:
    values = {target.traits(version, ()).as_text()[name] for version in target.protocols()}
    if len(values) > 1:
        return "by version"
    (value,) = values
    return "a pattern" if len(value) > _VALUE_CHARACTERS_MAX else value or _LACKS
