"""
Finds targets, without importing one before it is asked for.

A target is a folder, a package with `TARGET` in its module `target` or its `__init__`; the folder's name is the
target's name (without an ending `_target`). It is one of

- the packages below targets/;
- what an installed package names in the group `fencepost.targets` of its entry points, `NAME = PACKAGE`;
- a folder of one's own, or a folder of such folders: the option --targets, or the variable FENCEPOST_TARGETS.

A folder of one's own is imported as `fencepost_targets.NAME`, so that it needs no installation and shadows
nothing: its modules import each other relatively (`from .wire import WIRE`).

The folders are handed on in the environment: worker processes find what this one finds.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

import targets
from harness.model import UsageError
from harness.registry import pick
from harness.target.guarded import guarded
from harness.target.parts import why_incomplete
from harness.target.target import Target

GROUP: Final = "fencepost.targets"
VARIABLE: Final = "FENCEPOST_TARGETS"
OPTION: Final = "--targets"
# `make test-NAME` means something else for these; a test holds them equal to the Makefile's.
RESERVED: Final = frozenset({"all", "bare", "faults", "jvm", "kip101", "package", "quick", "releases", "slow"})
# Modules of a target's folder that are read apart from it.
PARTS: Final = ("commands", "needs")
NAMESPACE: Final = "fencepost_targets"
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
_MODULE: Final = "target.py"
_PACKAGE: Final = "__init__.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    A target that was found, or a folder that is none.

    Attributes:
        where: the folder, or the entry point, as it is shown.
        folder: where its files are; None for an entry point whose package is not there.
        module: what is imported; "" for a folder of one's own.
        given: the folder of --targets or of the variable in which it was found, "" for any other.
        problem: why it cannot be used, as far as that is known before it is imported.
    """

    name: str
    where: str
    folder: Path | None
    module: str = ""
    given: str = ""
    problem: str = ""

    def load(self) -> Target:
        """
        Import it once, and check that it has what it says.

        Raises:
            UsageError: it cannot be used; names the folder and the part that is wrong.
        """
        if self.problem:
            raise self.refused(self.problem)
        return _loaded(self)

    def why_not(self) -> str:
        """Return why it cannot be used, "" if it can; imports it."""
        try:
            self.load()
        except UsageError as error:
            return str(error).removeprefix(f"target {self.name}: {self.where}: ")
        return ""

    def refused(self, why: str) -> UsageError:
        """Return the error that says why it cannot be used."""
        return UsageError(f"target {self.name}: {self.where}: {why}")

    def module_of(self, part: str) -> ModuleType | None:
        """
        Import a module of its folder, apart from `target`; None if the folder has none of this name.

        Raises:
            UsageError: it does not import.
        """
        if self.problem or self.folder is None or not (self.folder / f"{part}.py").is_file():
            return None
        return _imported(self, f"{self.module.removesuffix('.target') or _package(self)}.{part}", f"{part}.py")


def target(name: str) -> Target:
    """
    Return the target of this name.

    Raises:
        UsageError: there is none, or it cannot be used.
    """
    return entry(name).load()


def entry(name: str) -> Found:
    """Return what was found under this name; raise UsageError if nothing was."""
    return pick("target", found(), name)


def found() -> Mapping[str, Found]:
    """Return every target that can be found now, and every folder that is none, by name; imports none of them."""
    return _found(os.environ.get(VARIABLE, ""))


def again(name: str) -> list[str]:
    """Return the option that finds this target when a command is given again, [] if none is needed."""
    known = found()
    return [OPTION, known[name].given] if name in known and known[name].given else []


@contextmanager
def also_in(folders: Sequence[str]) -> Iterator[None]:
    """
    Find targets in these folders too, during the block, and in the processes that it starts.

    Raises:
        UsageError: one is no folder, or its name cannot stand in a list of paths.
    """
    before = os.environ.get(VARIABLE)
    places = [_place(text) for text in folders]
    if places:
        os.environ[VARIABLE] = os.pathsep.join([*places, *filter(None, [before])])
    try:
        yield
    finally:
        if places:
            os.environ.pop(VARIABLE)
            os.environ |= {} if before is None else {VARIABLE: before}


def _place(text: str) -> str:
    place = os.path.abspath(text) if text else ""
    if not os.path.isdir(place):
        raise UsageError(f"option {OPTION} {text}: no such folder; expected one of a target, or of several")
    if os.pathsep in place:
        raise UsageError(f"option {OPTION} {text}: a {os.pathsep!r} in its path; expected a folder without one")
    return place


# --- finding ---------------------------------------------------------------------------------------------------
@cache
def _found(folders: str) -> Mapping[str, Found]:
    """Return what is found with these folders of one's own; two of one name are one that cannot be used."""
    places = dict.fromkeys(os.path.abspath(each) for each in folders.split(os.pathsep) if each)
    by_name: dict[str, Found] = {}
    for each in (*_below_targets(), *_installed(), *(one for place in places for one in _in_folder(place))):
        other = by_name.get(each.name)
        if other is None:
            by_name[each.name] = each
        elif other.folder != each.folder:
            why = f"its name is also that of {each.where}; expected one target of each name: rename a folder"
            by_name[each.name] = replace(other, problem=other.problem or why)
    return by_name


def _below_targets() -> Iterator[Found]:
    for folder in sorted(Path(place) for path in targets.__path__ for place in Path(path).iterdir()):
        if (folder / _MODULE).is_file():
            name = folder.name.removesuffix("_target")
            yield Found(
                name=name, where=str(folder), folder=folder, module=f"{targets.__name__}.{folder.name}.target"
            )


def _installed() -> Iterator[Found]:
    for point in importlib.metadata.entry_points(group=GROUP):
        of = f" of {point.dist.name}" if point.dist else ""
        where = f"entry point {point.name} = {point.value}{of}"
        yield _named(Found(name=point.name, where=where, folder=_folder_of(point.module), module=point.module))


def _folder_of(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _in_folder(given: str) -> Iterator[Found]:
    """Yield the target that a folder is, or those that it holds; else the folder itself as one that is none."""
    folder = Path(given)
    if _is_target(folder):
        yield _of_own(folder, given)
        return
    held = [each for each in _children(folder) if _is_target(each)]
    for each in held:
        yield _of_own(each, given)
    if not held:
        missing = "" if folder.is_dir() else "no such folder; "
        why = f"{missing}no target; expected a package with TARGET in {_PACKAGE} or {_MODULE}, or a folder of such"
        yield replace(_of_own(folder, given), problem=why)


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir())
    except OSError:
        return []


def _is_target(folder: Path) -> bool:
    """Return whether it has a module `target`, or an `__init__` with the word TARGET; nothing is imported."""
    try:
        return (folder / _MODULE).is_file() or bool(
            re.search(rb"\bTARGET\b", (folder / _PACKAGE).read_bytes()) if (folder / _PACKAGE).is_file() else False
        )
    except OSError:
        return False


def _of_own(folder: Path, given: str) -> Found:
    name = folder.name.removesuffix("_target")
    return _named(Found(name=name, where=str(folder), folder=folder, given=given))


def _named(one: Found) -> Found:
    """Return it, with a problem if it cannot have its name."""
    if not _NAME.fullmatch(one.name):
        why = f"name {one.name!r}; expected small letters, digits, - and _, a letter first: rename the folder"
    elif one.name in RESERVED:
        why = f"name {one.name!r}: `make test-{one.name}` is taken; expected another name: rename the folder"
    else:
        return one
    return replace(one, problem=why)


# --- importing -------------------------------------------------------------------------------------------------
@cache
def _loaded(one: Found) -> Target:
    if one.module:
        module = _imported(one, one.module, "its module")
    else:
        assert one.folder is not None, "a folder of one's own is a folder"
        module = _imported(one, _package(one), _PACKAGE)
        if (one.folder / _MODULE).is_file():
            module = _imported(one, f"{_package(one)}.target", _MODULE)
    if not hasattr(module, "TARGET"):
        raise one.refused(
            f"no TARGET in {Path(module.__file__ or '').name or _PACKAGE}; expected the target there"
        )
    made: Target = module.TARGET
    if getattr(made, "name", None) != one.name:
        raise one.refused(f"part name: {getattr(made, 'name', None)!r}; expected {one.name!r}, as the folder says")
    if why := why_incomplete(made):
        raise one.refused(why)
    for part in PARTS:
        one.module_of(part)  # which the target need not import
    # Those below targets/ are of the harness itself, and fast.
    return made if one.module.startswith(f"{targets.__name__}.") else guarded(made)


def _package(one: Found) -> str:
    """Return the name of a folder's package; the package is there to be imported from then on."""
    name = f"{NAMESPACE}.{one.name.replace('-', '_')}"
    module = sys.modules.get(name)
    if module is None or one.folder is None or [str(one.folder)] != list(module.__path__):
        _forget(name)
        _open(one, name)
    return name


def _open(one: Found, name: str) -> None:
    assert one.folder is not None, "only a folder of one's own is opened"
    file, places = one.folder / _PACKAGE, [str(one.folder)]
    spec: ModuleSpec | None
    if file.is_file():
        spec = spec_from_file_location(name, file, submodule_search_locations=places)
    else:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = places
    assert spec is not None, "a .py file has a loader"
    sys.modules[name] = module_from_spec(spec)
    if spec.loader is not None:
        try:
            spec.loader.exec_module(sys.modules[name])
        except BaseException as error:
            _forget(name)
            raise _broken(one, _PACKAGE, error) from error


def _forget(name: str) -> None:
    for each in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        del sys.modules[each]


def _imported(one: Found, name: str, part: str) -> ModuleType:
    try:
        return import_module(name)
    except BaseException as error:
        raise _broken(one, part, error) from error


def _broken(one: Found, part: str, error: BaseException) -> BaseException:
    """Return the error that says why a part does not import; an interrupt stays one."""
    if isinstance(error, KeyboardInterrupt | UsageError):
        return error
    return one.refused(f"{part} does not import: {type(error).__name__}: {error}")
