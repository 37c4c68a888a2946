"""Install a mutant in this process: its module of the core is loaded from a changed source; no file is written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType

from benchmarks.mutants.mutant import Mutant, MutantError


class MutantLoader(SourceFileLoader):
    """Loads a mutant's module. It reads and writes no bytecode, which would outlive the process."""

    def __init__(self, mutant: Mutant, path: str) -> None:
        super().__init__(mutant.full_module, path)
        self.mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """Compile the changed source."""
        path = self.get_filename(fullname)
        source = self.mutant.applied(self.get_data(path).decode())
        code: CodeType = compile(source, path, "exec", dont_inherit=True)
        return code


class MutantFinder(MetaPathFinder):
    """Finds one module, the mutant's; every other is left to the finders behind it."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the mutant's module, None for any other."""
        found = PathFinder.find_spec(fullname, path, target) if fullname == self.mutant.full_module else None
        if found is None or found.origin is None:
            return None
        return spec_from_file_location(fullname, found.origin, loader=MutantLoader(self.mutant, found.origin))


def install(mutant: Mutant) -> None:
    """
    Let this process load the mutant in place of its module, from the first import on.

    Raises:
        MutantError: the module is loaded already; its parts have been imported elsewhere.
    """
    if mutant.full_module in sys.modules:
        raise MutantError(
            f"mutant {mutant.name}: {mutant.full_module} is loaded already; install it in a fresh process, before "
            "anything imports the core"
        )
    sys.meta_path.insert(0, MutantFinder(mutant))
