"""No code is run both by a broker's process and by a witness of what it does: one bug could fool both."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable, Collection, Mapping

import pytest

from tests.package import sources

CONTRACT = "a witness shares no code with what is judged"
# `python -m targets.broker`, and what only that imports on demand.
BROKER = ("targets.broker",)

# A module's name -> its source.
Sources = Mapping[str, str]


def witnesses() -> tuple[str, ...]:
    """Return the packages that the contract of pyproject.toml calls witnesses."""
    table = tomllib.loads((sources.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (each for each in table["tool"]["importlinter"]["contracts"] if each["name"] == CONTRACT)
    return tuple(contract["source_modules"])


def reached(roots: Collection[str], imports: Callable[[str], Collection[str]], names: Collection[str]) -> set[str]:
    """Return the modules below these roots, and all that they import, whenever; a package with its modules."""
    left = [name for name in names if any(name == root or name.startswith(f"{root}.") for root in roots)]
    found = set[str]()
    while left:
        name = left.pop()
        if name not in found and name in names:
            found.add(name)
            left += [*imports(name), *([name.rpartition(".")[0]] if "." in name else [])]
    return found


def in_common(texts: Sources, imports: Callable[[str], Collection[str]], judges: Collection[str]) -> list[str]:
    """Return the modules with code that both a broker's process and a witness import, sorted."""
    both = reached(BROKER, imports, texts) & reached(judges, imports, texts)
    return sorted(name for name in both if _has_code(texts[name]))


def _has_code(text: str) -> bool:
    """Return False for a docstring, imports and tables of literals, which nothing is computed by."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Call)
    return any(isinstance(node, kinds) for node in ast.walk(ast.parse(text)))


def product() -> Sources:
    """Return the sources of all modules that users get."""
    return {
        sources._name(path): (sources.ROOT / path).read_text(encoding="utf-8")
        for path in sources.files()
        if path.suffix == ".py"
    }


def imports_of(name: str) -> Collection[str]:
    """Return what a module of the product imports, whenever."""
    module = sources.modules()[name]
    return module.first | module.later


def test_no_code_is_common_to_a_broker_and_a_witness() -> None:
    texts, judges = product(), witnesses()
    assert [] == in_common(texts, imports_of, judges)
    assert len(reached(BROKER, imports_of, texts)) > 100
    assert all(reached([judge], imports_of, texts) for judge in judges)


@pytest.mark.parametrize(
    ("importing", "imported"),
    [
        pytest.param("targets.kafka_family.clients.connection", "targets.broker.wire.scalars", id="the accused's"),
        pytest.param("targets.broker.wire.codec", "targets.kafka_family.wire.answers", id="a witness's"),
        pytest.param("targets.broker.wire.codec", "harness.numerals", id="what is beneath a witness"),
        pytest.param("targets.kafka.printed", "targets.broker.config", id="of a system's own witness"),
        pytest.param("targets.broker_target.layout", "targets.broker.core.wishes", id="of our broker's witness"),
        pytest.param("targets.broker.core.wishes", "targets.broker_target.layout", id="our broker's witness"),
    ],
)
def test_code_that_both_import_is_found(importing: str, imported: str) -> None:
    def planted(name: str) -> Collection[str]:
        return {*imports_of(name), imported} if name == importing else imports_of(name)

    assert imported in in_common(product(), planted, witnesses())


def test_module_of_both_is_found_by_its_code_alone() -> None:
    texts = {"targets": "", "targets.broker": "import common\n", "seer": "import common\n", "common": "A = 1\n"}

    def imports(name: str) -> Collection[str]:
        return ("common",) if "common" in texts[name] else ()

    assert [] == in_common(texts, imports, ["seer"])
    assert ["common"] == in_common({**texts, "common": "def f(): ...\n"}, imports, ["seer"])
