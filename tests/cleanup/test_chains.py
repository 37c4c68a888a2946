"""A chain drops a node's packets and never SSH's, and its undoing takes away what is its own and no other rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cleanup import chains, ledger
from harness.cleanup.chains import Chain
from harness.cleanup.ledger import Ledger
from harness.cleanup.undo import UNDO
from harness.model import PreconditionError, UsageError

OTHERS = ["-A INPUT -j DOCKER", "-A DOCKER -p tcp -m tcp --dport 22 -j ACCEPT", "-A INPUT -j FENCEPOST-other"]


def at(*ports: int, host: str = "10.0.0.2") -> list[tuple[str, int]]:
    """Return listeners of a node."""
    return [(host, port) for port in ports]


class Tables:
    """An iptables that has rules as lines, and fails at a command that it was told."""

    def __init__(self) -> None:
        self.chains = ["DOCKER", "FENCEPOST-other"]
        self.rules = list(OTHERS)
        self.fails = ""
        self.packets = 0

    def run(self, *words: str) -> tuple[str, str]:
        verb, rest = words[0], list(words[1:])
        if self.fails and self.fails in " ".join(words):
            return "", "Permission denied"
        match verb:
            case "-S":
                return "\n".join(["-P INPUT ACCEPT", *(f"-N {name}" for name in self.chains), *self.rules]), ""
            case "-N":
                self.chains.append(rest[0])
            case "-A":
                self.rules.append(" ".join(["-A", *rest]))
            case "-I":
                self.rules.insert(0, " ".join(["-A", *rest]))
            case "-D":
                self.rules.remove(" ".join(["-A", *rest]))
            case "-C" if " ".join(["-A", *rest]) not in self.rules:
                return "", "Bad rule"
            case "-F":
                self.rules = [rule for rule in self.rules if rule.split()[1] != rest[0]]
            case "-X":
                if any(rest[0] in rule.split() for rule in self.rules):
                    return "", "Too many links."
                self.chains.remove(rest[0])
            case "-nvxL":
                drops = [rule for rule in self.rules if rule.startswith(f"-A {rest[0]} ") and "DROP" in rule]
                lines = [f"   {self.packets}    480 DROP  tcp -- * * 0.0.0.0/0 0.0.0.0/0" for _ in drops]
                return "\n".join(["Chain", " pkts bytes target", "  9 480 RETURN tcp", *lines]), ""
        return "", ""

    def of(self, name: str) -> list[str]:
        return [rule for rule in self.rules if name in rule.split()]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Tables:
    made = Tables()
    monkeypatch.setattr(chains, "_run", made.run)
    monkeypatch.setattr(chains.shutil, "which", lambda _: "/sbin/iptables")
    return made


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger.open(tmp_path, root=tmp_path / "runs")
    yield made
    made.close()


def test_packets_of_listeners_are_dropped_after_those_of_ssh_have_passed(tables: Tables, book: Ledger) -> None:
    chain = Chain(book, [2222])
    assert (False, 0) == (chain.stands("A"), chain.dropped("A"))
    chain.drop("A", at(20000, 20001))
    tables.packets = 3
    rules = [
        rule.removeprefix(f"-A {chain.name} ") for rule in tables.rules if rule.startswith(f"-A {chain.name}")
    ]
    assert [
        *(f"-p tcp {way} {port} -j RETURN" for port in (22, 2222) for way in ("--dport", "--sport")),
        *(
            f"-p tcp {of} 10.0.0.2 {way} {port} -j DROP"
            for port in (20000, 20001)
            for of, way in (("-d", "--dport"), ("-s", "--sport"))
        ),
    ] == rules
    hooks = [rule for rule in tables.rules if rule.endswith(f"-j {chain.name}")]
    assert {"-A INPUT -p tcp", "-A OUTPUT -p tcp"} == {rule.removesuffix(f" -j {chain.name}") for rule in hooks}
    assert (True, 12) == (chain.stands("A"), chain.dropped("A"))


def test_nodes_are_dropped_counted_and_passed_one_by_one(tables: Tables, book: Ledger) -> None:
    chain = Chain(book)
    chain.drop("A", at(20000))
    chain.drop("B", at(20000, 20001, host="10.0.0.3"))
    tables.packets = 3
    assert (6, 12, 0) == (chain.dropped("A"), chain.dropped("B"), chain.dropped("C"))
    chain.clear("A")
    assert (False, True) == (chain.stands("A"), chain.stands("B"))
    assert (0, 12) == (chain.dropped("A"), chain.dropped("B"))
    assert all("10.0.0.3" in rule for rule in tables.rules if "DROP" in rule)
    chain.clear("B")
    assert [] == [rule for rule in tables.rules if "DROP" in rule]
    chain.drop("A", at(20000))
    assert 2 == len([rule for rule in tables.rules if "DROP" in rule])


def test_rule_that_somebody_else_has_removed_stands_no_more(tables: Tables, book: Ledger) -> None:
    chain = Chain(book)
    chain.drop("A", at(20000))
    tables.rules.remove(next(rule for rule in tables.rules if "DROP" in rule))
    assert not chain.stands("A")


@pytest.mark.parametrize("port", [22, 2222, 0, 65536])
def test_port_of_ssh_and_what_is_no_port_are_refused_and_nothing_is_made(
    tables: Tables, book: Ledger, port: int
) -> None:
    with pytest.raises(UsageError, match=rf"drop packets of 10.0.0.2:{port}: "):
        Chain(book, [2222]).drop("A", at(20000, port))
    assert (OTHERS, ["DOCKER", "FENCEPOST-other"]) == (tables.rules, tables.chains)


def test_end_of_a_run_removes_its_chain_and_no_other_rule(tables: Tables, book: Ledger) -> None:
    Chain(book).drop("A", at(20000))
    assert book.close() == []
    assert (OTHERS, ["DOCKER", "FENCEPOST-other"]) == (tables.rules, tables.chains)


def test_chain_of_a_killed_run_is_removed_by_the_reap(tables: Tables, tmp_path: Path) -> None:
    book = Ledger.open(tmp_path, root=tmp_path / "runs")
    chain = Chain(book)
    chain.drop("A", at(20000))
    book.abandon()
    assert (f"chain {chain.name}",) == ledger.reap(tmp_path / "runs").undone
    assert (OTHERS, ["DOCKER", "FENCEPOST-other"]) == (tables.rules, tables.chains)


def test_chain_that_was_never_made_or_is_gone_counts_as_removed(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "" == UNDO["chain"]({"name": "FENCEPOST-abc"})
    assert OTHERS == tables.rules
    monkeypatch.setattr(chains.shutil, "which", lambda _: None)
    assert "" == UNDO["chain"]({"name": "FENCEPOST-abc"})


@pytest.mark.parametrize("step", ["-N", "-A FENCEPOST", "-I INPUT", "-I OUTPUT"])
def test_chain_that_cannot_be_made_is_made_by_no_half(tables: Tables, book: Ledger, step: str) -> None:
    tables.fails = step
    with pytest.raises(PreconditionError, match=r"iptables -.*: Permission denied; expected it to succeed"):
        Chain(book).drop("A", at(20000))
    assert (OTHERS, ["DOCKER", "FENCEPOST-other"]) == (tables.rules, tables.chains)


def test_ports_are_dropped_all_or_none(tables: Tables, book: Ledger) -> None:
    chain = Chain(book)
    chain.drop("A", at(20000))
    before = list(tables.rules)
    tables.fails = "--sport 20002"
    with pytest.raises(PreconditionError, match="Permission denied"):
        chain.drop("A", at(20001, 20002))
    assert before == tables.rules


@pytest.mark.parametrize("step", ["-S", "-D", "-X"])
def test_chain_that_cannot_be_removed_stays_in_the_ledger_with_why(
    tables: Tables, tmp_path: Path, step: str
) -> None:
    book = Ledger.open(tmp_path, root=tmp_path / "runs")
    chain = Chain(book)
    chain.drop("A", at(20000))
    tables.fails = step
    (left,) = book.close()
    assert left.startswith(f"chain {chain.name}: ")
    tables.fails = ""
    assert (f"chain {chain.name}",) == ledger.reap(tmp_path / "runs").undone
    assert OTHERS == tables.rules


def test_names_of_others_are_never_removed(tables: Tables) -> None:
    with pytest.raises(AssertionError, match="chain DOCKER; expected one of ours"):
        chains.remove("DOCKER")
    assert OTHERS == tables.rules
