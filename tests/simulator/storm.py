"""
A storm: random faults on a random world, all drawn from one seed; for properties that hold under any faults.

As a program (`python -m tests.simulator.storm FIRST COUNT`) it prints each seed with its trace's hash.
"""

from __future__ import annotations

import sys
from random import Random
from typing import Final

from harness.fabric.core.rules import METADATA, Hold
from targets.broker.core.zookeeper import CONTROLLER, broker_path
from targets.broker_target.target import SETTINGS
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.world import Randomness, World
from targets.simulator.engine.trace import Detail, Trace
from targets.simulator.zookeeper import ops

IDS: Final = {"A": 1, "B": 2, "C": 3}
APIS: Final = ("fetch", "epoch-question", "command", "*")
SESSION_TIMEOUT_MS: Final = 2_000
QUIET_S: Final = 15.0
PAUSE_S_MAX: Final = 0.2
# The actions and their relative frequencies.
WEIGHTS: Final = {
    "produce": 6,
    "kill": 1,
    "lose_power": 1,
    "boot": 4,
    "pause": 1,
    "resume": 2,
    "expire": 1,
    "lose_write": 1,
    "cut": 1,
    "hold": 1,
    "delay": 1,
    "double": 1,
    "heal": 4,
    "reset": 1,
    "flush": 1,
    "depose": 1,
}


class Storm:
    """One world and the random actions on it; `bit` counts the actions that took effect, by name."""

    def __init__(self, seed: int, *, protocol: str = "kip380", trace: Trace | None = None) -> None:
        settings = {**SETTINGS, "replica_lag_ms_max": 500, "flush_messages": 3}
        self.world = World(
            seed=seed,
            protocol=protocol,
            ids=IDS,
            settings=settings,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            randomness=Randomness(),
            trace=trace,
        )
        self.random = Random(seed)
        self.bit: dict[str, int] = {}
        self._client = SimClient(self.world)
        self._produced = 0
        self._rules: list[object] = []

    def run(self, actions: int = 60) -> Storm:
        """Take random actions with pauses between them; then heal all faults and wait until the world is quiet."""
        world = self.world
        for node in world.nodes.values():
            node.boot()
        world.run(0.1)
        self._client.create_topic("log", list(IDS.values()))
        names, weights = list(WEIGHTS), list(WEIGHTS.values())
        for _ in range(actions):
            (what,) = self.random.choices(names, weights)
            if getattr(self, what)(self.random.choice(sorted(IDS))):
                self.bit[what] = self.bit.get(what, 0) + 1
            world.run(self.random.random() * PAUSE_S_MAX)
        self.calm()
        return self

    def calm(self) -> None:
        """Heal every fault, start the nodes that are down, and wait."""
        self.world.links.heal_all()
        for name in IDS:
            self.resume(name)
            self.boot(name)
        self.world.run(QUIET_S)

    # --- random actions --------------------------------------------------------------------------------------
    def produce(self, _name: str) -> bool:
        self._produced += 1
        values = [f"m{self._produced}.{n}" for n in range(self.random.randint(1, 3))]
        self._client.begin_produce("log", 0, f"m{self._produced}", values, acks=self.random.choice((-1, -1, 1, 0)))
        return True

    def kill(self, name: str) -> bool:
        up = self.world.nodes[name].process is not None
        if up:
            self.world.nodes[name].kill()
        return up

    def lose_power(self, name: str) -> bool:
        self.world.nodes[name].lose_power()
        return True

    def boot(self, name: str) -> bool:
        down = self.world.nodes[name].process is None
        if down:
            self.world.nodes[name].boot()
        return down

    def pause(self, name: str) -> bool:
        node = self.world.nodes[name]
        bites = node.process is not None and not node.paused
        if bites:
            node.pause()
        return bites

    def resume(self, name: str) -> bool:
        paused = self.world.nodes[name].paused
        if paused:
            self.world.nodes[name].resume()
        return paused

    def expire(self, name: str) -> bool:
        session = self.world.zookeeper.session_of(broker_path(IDS[name]))
        self.world.zookeeper.expire(session)
        return session != 0

    def lose_write(self, name: str) -> bool:
        self.world.zookeeper.losing[name] = bool(self.random.getrandbits(1))
        return True

    def cut(self, name: str) -> bool:
        other = self.random.choice((*sorted(IDS), METADATA))
        close = bool(self.random.getrandbits(1))
        self._rules.append(self.world.links.cut(name, other, both_ways=other != METADATA, close=close))
        return True

    def hold(self, name: str) -> bool:
        direction = self.random.choice(("request", "answer"))
        self._rules.append(self.world.links.hold(self.random.choice(APIS), name, "*", direction))
        return True

    def delay(self, name: str) -> bool:
        self._rules.append(self.world.links.delay("*", name, "*", "answer", self.random.random()))
        return True

    def double(self, name: str) -> bool:
        self._rules.append(self.world.links.double("*", name, "*"))
        return True

    def heal(self, _name: str) -> bool:
        if not self._rules:
            return False
        rule = self._rules.pop(self.random.randrange(len(self._rules)))
        if isinstance(rule, Hold):
            (self.world.links.drop if self.random.random() < 0.3 else self.world.links.release)(rule)
        else:
            self.world.links.heal(rule)
        return True

    def reset(self, name: str) -> bool:
        return self.world.links.close_links(name, "*") > 0

    def flush(self, name: str) -> bool:
        return self.world.nodes[name].disk.sync() > 0

    def depose(self, _name: str) -> bool:
        gone = self.world.zookeeper.tree.write((ops.Delete(path=CONTROLLER),), 0)
        return isinstance(gone, ops.Done)


def main() -> None:
    """Print the trace hash of every requested seed."""
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        trace = Trace(Detail.FULL)
        Storm(seed, trace=trace).run()
        print(seed, trace.digest)


if __name__ == "__main__":
    main()
