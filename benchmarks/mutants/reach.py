"""
Which lines must run before a mutant can differ from the core as it is.

The syntax trees of both sources are compared: all that differs lies in some blocks (the bodies of functions, of
branches, of loops). A run of the core as it is that enters none of them is, step by step, the mutant's run too, as
runs in the simulator are deterministic. A block that is not in a function runs with the import, so nothing is said
of it; and where a bug changes which names are local to a function, its whole body counts.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Final, TypeAlias

from benchmarks.mutants.mutant import Mutant

ROOT: Final = Path(__file__).resolve().parents[2]
# The position of a block's first statement, which begins no other block.
Block: TypeAlias = tuple[int, int]
# A module's full name, a block in it, and the mutants whose changes lie there.
Places: TypeAlias = Sequence[tuple[str, Block, Sequence[str]]]
# The function that a probed source calls with the number of each probed block that is entered.
PROBE: Final = "__probe__"
BODIES: Final = ("body", "orelse", "finalbody")
CLAUSES: Final = ("handlers", "cases")


def places_of(mutants: Iterable[Mutant]) -> tuple[Places, frozenset[str]]:
    """Return the blocks of all these mutants, and the names of those of which nothing can be said."""
    names: dict[tuple[str, Block], list[str]] = defaultdict(list)
    unknown: set[str] = set()
    for mutant in mutants:
        path = ROOT.joinpath(*mutant.full_module.split(".")).with_suffix(".py")
        blocks = differing_blocks(mutant, path.read_text(encoding="utf-8"))
        if blocks is None:
            unknown.add(mutant.name)
        for block in blocks or ():
            names[mutant.full_module, block].append(mutant.name)
    return [(module, block, found) for (module, block), found in names.items()], frozenset(unknown)


def differing_blocks(mutant: Mutant, source: str) -> frozenset[Block] | None:
    """Return the smallest blocks in functions with all that a mutant changes; None if some is in no function."""
    before, after = ast.parse(source), ast.parse(mutant.applied(source))
    found: set[Block] = set()
    return frozenset(found) if _descend(before.body, after.body, False, found) else None


def probed(source: str, numbers: Mapping[Block, int]) -> ast.Module:
    """Return the source's tree with a call at the start of each of these blocks, of PROBE with its number."""
    tree = ast.parse(source)
    found: set[int] = set()
    for statements in list(_blocks(tree)):
        number = numbers.get(_start(statements))
        if number is not None:
            found.add(number)
            call = ast.Call(func=ast.Name(id=PROBE, ctx=ast.Load()), args=[ast.Constant(number)], keywords=[])
            documented = isinstance(statements[0], ast.Expr) and isinstance(statements[0].value, ast.Constant)
            statements.insert(int(documented), ast.Expr(call))
    assert len(found) == len(numbers), f"{len(numbers)} blocks, and {len(found)} of them are in the source"
    return ast.fix_missing_locations(tree)


def _descend(before: Sequence[ast.stmt], after: Sequence[ast.stmt], inside: bool, found: set[Block]) -> bool:
    """
    Add the smallest blocks within this one that have all of its differences, or this one itself.

    Args:
        inside: whether the block is in a function.

    Returns:
        False if a difference is in no function.
    """
    pairs = [pair for pair in zip(before, after, strict=False) if not _same(*pair)]
    deeper: set[Block] = set()
    if len(before) == len(after) and all(_descend_statement(*pair, inside, deeper) for pair in pairs):
        found |= deeper
    elif inside:
        found.add(_start(before))
    else:
        return False
    return True


def _descend_statement(before: ast.AST, after: ast.AST, inside: bool, found: set[Block]) -> bool:
    """Do so for a pair of statements, or of clauses, that differ; return False if more than their blocks does."""
    if type(before) is not type(after):
        return False
    function = isinstance(before, ast.FunctionDef | ast.AsyncFunctionDef)
    for name in before._fields:
        one, other = getattr(before, name), getattr(after, name)
        if name in CLAUSES and len(one) == len(other):
            differ = [pair for pair in zip(one, other, strict=True) if not _same(*pair)]
            if not all(_descend_statement(*pair, inside, found) for pair in differ):
                return False
        elif name in BODIES and isinstance(one, list) and one and other:
            if all(_same(*pair) for pair in zip(one, other, strict=False)) and len(one) == len(other):
                continue
            if function and _names(before) != _names(after):
                found.add(_start(one))
            elif not _descend(one, other, inside or function, found):
                return False
        elif not _same(one, other):
            return False
    return True


def _same(one: object, other: object) -> bool:
    """Return whether two parts of trees are the same, wherever they stand."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, ast.AST) and isinstance(other, ast.AST):
        return ast.dump(one) == ast.dump(other)
    return one == other


def _names(function: ast.AST) -> tuple[object, ...]:
    """Return which names are whose in a function and all functions in it, and which of them are generators."""
    assert isinstance(function, ast.stmt)
    code = compile(ast.Module(body=[function], type_ignores=[]), "function", "exec", dont_inherit=True)
    return _names_of(code)


def _names_of(code: CodeType) -> tuple[object, ...]:
    inner = tuple(_names_of(each) for each in code.co_consts if isinstance(each, CodeType))
    own = (frozenset(names) for names in (code.co_varnames, code.co_cellvars, code.co_freevars))
    return (code.co_name, code.co_flags, *own, inner)


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in BODIES:
            statements = getattr(node, name, None)
            if isinstance(statements, list) and statements:
                yield statements


def _start(statements: Sequence[ast.stmt]) -> Block:
    return (statements[0].lineno, statements[0].col_offset)
