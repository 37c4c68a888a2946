"""Load modules of the core from changed sources, in this process: a mutant, or probes; no file is written."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType
from typing import TypeAlias

from benchmarks.mutants.mutant import Mutant, MutantError

# Makes another source, or its tree, of a module's source.
Change: TypeAlias = Callable[[str], str | ast.Module]


class ChangedLoader(SourceFileLoader):
    """Loads a changed module. It reads and writes no bytecode, which would outlive the process."""

    def __init__(self, name: str, path: str, change: Change) -> None:
        super().__init__(name, path)
        self.change = change

    def get_code(self, fullname: str) -> CodeType:
        """Compile the changed source."""
        path = self.get_filename(fullname)
        source = self.change(self.get_data(path).decode())
        code: CodeType = compile(source, path, "exec", dont_inherit=True)
        return code


class ChangedFinder(MetaPathFinder):
    """Finds the modules that change, by their full names; every other is left to the finders behind it."""

    def __init__(self, changes: Mapping[str, Change]) -> None:
        self.changes = changes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a changed module, None for any other."""
        found = PathFinder.find_spec(fullname, path, target) if fullname in self.changes else None
        if found is None or found.origin is None:
            return None
        loader = ChangedLoader(fullname, found.origin, self.changes[fullname])
        return spec_from_file_location(fullname, found.origin, loader=loader)


def install(mutant: Mutant) -> None:
    """
    Let this process load the mutant in place of its module, from the first import on.

    Raises:
        MutantError: the module is loaded already; its parts have been imported elsewhere.
    """
    install_changes({mutant.full_module: mutant.applied}, f"mutant {mutant.name}")


def install_changes(changes: Mapping[str, Change], what: str) -> None:
    """Do so for several modules; `what` names the change in an error."""
    for name in changes:
        if name in sys.modules:
            raise MutantError(
                f"{what}: {name} is loaded already; install it in a fresh process, before anything "
                "imports the core"
            )
    sys.meta_path.insert(0, ChangedFinder(changes))
