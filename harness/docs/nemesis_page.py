"""Prints docs/nemeses.md from the table of faults, and what each host can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.ability import OF_TARGETS, Ability
from harness.cluster.fault import Fault
from harness.docs import markdown
from harness.docs.evidence import EVIDENCED, FOLDER, Cell, read
from harness.effect import UNFLUSHED_LOST, Band, Effect
from harness.suite.scenario_files import faults_on, known_faults
from targets import DEFAULT_TARGET

BAND_MEANINGS: Final[Mapping[Band, str]] = {
    Band.DOWN: "until the node restarts",
    Band.PAUSED: "until it resumes",
    Band.ZOMBIE: "until it returns",
    Band.IMPAIRED: "until it is healed, in a row below the node's role",
    Band.MARK: "a mark",
}
# What a real host must have for an ability; it probes it when it is opened, and says what is missing.
_NEEDED: Final[Mapping[Ability, str]] = {
    Ability.WALL_CLOCK: "libfaketime",
    Ability.CLOCKS: "libfaketime",
    Ability.DISK_FULL: "FUSE, or a loop filesystem",
    Ability.DISK_ERRORS: "FUSE, or a loop filesystem",
    Ability.DISK_READ_ERRORS: "FUSE",
    Ability.DISK_READ_ONLY: "FUSE, or a loop filesystem",
    Ability.DISK_SLOW: "FUSE",
    Ability.SERVICE_POWER_LOSS: "a loop filesystem",
    Ability.PACKETS_DROPPED: "root, iptables",
    Ability.PACKETS_THROTTLED: "root, tc, an interface for each node",
    Ability.PACKETS_LOSSY: "root, tc, netem, an interface for each node",
}
YES: Final = "yes"


def nemeses() -> str:
    """Return docs/nemeses.md, from the table of faults."""
    rows = [
        (
            f"`{name}`",
            fault.doc,
            markdown.first_line(fault.inject),
            _effect(fault),
            _healed_by(name),
            BAND_MEANINGS[fault.band],
        )
        for name, fault in known_faults().items()
    ]
    return markdown.page(
        "Nemeses",
        "nemesis/__init__.py",
        "Each fault has an injection, a probe that verifies its effect, and a healing before the final reads.\n"
        "If a probe sees no effect, the schedule ends and the run is unknown.\n"
        "[power-loss.md](power-loss.md) explains how a node loses power, [bit-rot.md](bit-rot.md) which byte is "
        "flipped and what brokers do about it, [clocks.md](clocks.md) how a node's clocks are set.",
        markdown.table(
            ("fault", "does", "and its probe", "effect on the node", "healed by", "shaded in timelines"), rows
        ),
        "Faults in force at the end are healed before the final reads, in this order of effects: "
        f"{', '.join(f'`{effect}`' for effect in Effect if effect.lasts)}.\n"
        "Each healing is verified; a fault that cannot be healed makes the run unknown, and a node that does not "
        "come back makes it a hang.",
        "The evidence is in the history, with the injection and with the heal; [below](#evidence) is what each "
        "host said. Faults of links quote the fabric's count of frames, link by link:\n"
        "`reconnect` says, for example, `partition-isolate: frames lost: 12 on B -> A, 3 on C -> A; open again: "
        "B -> A`.\n"
        "`lossy-link` loses a frame with its connection: TCP sends a lost packet again, so brokers see a loss as "
        "a reset.\n"
        "Faults of the servers that keep metadata say which of them led and what became of the sessions: "
        "`SERVER-2 led, pid 4711 ended by SIGKILL; now SERVER-1 follower, SERVER-2 gone, SERVER-3 leader; 3 of 3 "
        "sessions kept, 2 on another server`.\n"
        "A fault that makes metadata late is on a link that may be silent: its heal says how many frames were "
        "late.\n"
        "[hosts.md](hosts.md) says which runs have such servers of their own.",
        "## What each host can do",
        "A fault that needs something of a host is refused where the host lacks it (exit code 2, and the reason), "
        "and left out of random schedules, which say so. All others need nothing, and work on each host. "
        "On `ssh` every machine of the list must have what is needed; the reason names the one that lacks it. "
        "The simulator lacks nothing.",
        markdown.table(("faults", "need", "`local`, `docker`, `ssh`"), _host_rows()),
        "## What a target can be asked for",
        "A fault that asks the system itself for something needs a target that can be asked for it "
        "(`harness/target/operator.py`): an operator's request, or metadata that show whom it is about. Where the "
        "target lacks it, it is refused and left out in the same way, with the reason `TARGET has no move`. "
        "So is the step `remove`, which needs `remove`; Apache Kafka has none.",
        markdown.table(("faults", "need of the target"), _target_rows()),
        "Links have steps of their own: see [scenarios.md](scenarios.md#what-it-does-to-links).",
        "## Evidence",
        "Each cell was played by a test (`tests/nemesis/test_every_fault.py` in the simulator, "
        "`tests/nemesis/test_every_fault_live.py` on real nodes), which also makes the injection a no-op, and "
        "then the heal: both must be refused, as the table in `tests/nemesis/every_fault.py` says.\n"
        "Whether a disk is flushed is told by the kernel (`cachestat`, since Linux 6.5); on an older one a "
        "pretended `flush` shows at the next power loss alone.\n"
        "The figures are those of the run that wrote the files in `harness/docs/evidence/`; `make evidence "
        "HOST=local` plays all on one host again. Over SSH the machines were servers on loopback.\n"
        f"It was our broker that they hit; faults that it does not have are played by their target's scenarios: "
        f"{', '.join(f'`{name}`' for name in known_faults() if name not in faults_on(DEFAULT_TARGET))}.",
        *_evidence(),
    )


def _evidence() -> list[str]:
    """Return a table for each fault: what it and its heal said on each host, or why the host refuses it."""
    found = {host: read(host) for host in EVIDENCED}
    faults = faults_on(DEFAULT_TARGET)
    missing = [f"{fault} on {host}" for host, cells in found.items() for fault in faults if fault not in cells]
    if missing:
        raise ValueError(f"{FOLDER}: nothing of {', '.join(missing)}; expected every cell: make evidence HOST=…")
    return [
        part
        for fault in faults
        for part in (
            f"### {fault}",
            markdown.table(
                ("on", "its injection said", "its heal said"),
                [(f"`{host}`", *_quoted(cells[fault])) for host, cells in found.items()],
            ),
        )
    ]


def _quoted(cell: Cell) -> tuple[str, str]:
    if cell.refused:
        return f"refused: {cell.refused}", ""
    return f"`{cell.injected}`", f"`{cell.healed}`" if cell.healed else "needs none"


def _host_rows() -> list[tuple[str, ...]]:
    return [
        (_needing(ability), f"`{ability}`", f"with {_NEEDED[ability]}" if ability in _NEEDED else YES)
        for ability in Ability
        if ability not in OF_TARGETS
    ]


def _target_rows() -> list[tuple[str, ...]]:
    return [
        (_needing(ability), f"`{ability}`") for ability in Ability if ability in OF_TARGETS and _needing(ability)
    ]


def _needing(ability: Ability) -> str:
    if ability is Ability.SERVICE_POWER_LOSS:
        names = (name for name, fault in known_faults().items() if fault.of_services)
        found = ", ".join(f"`{name}`" for name in names if known_faults()[name].effect in UNFLUSHED_LOST)
        return f"{found} of a service"
    return ", ".join(f"`{name}`" for name, fault in known_faults().items() if ability in fault.needs)


def _effect(fault: Fault) -> str:
    ended = " and ".join(f"`{effect}`" for effect in Effect if effect in fault.heals)
    return f"ends {ended}" if ended else f"`{fault.effect}`"


def _healed_by(name: str) -> str:
    heal = known_faults()[name].heal
    by = [other for other, fault in known_faults().items() if heal is not None and fault.inject == heal]
    return f"`{by[0]}`" if by else "itself" if heal else "needs none"
