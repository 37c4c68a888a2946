"""
Random walks over a stage: elections, late commands, late links and writes, with two oracles after every step.

No disk loses data, so no member of the ISR, a possible next leader, may lack a record acknowledged with acks=all,
and a follower that fetches in its leader's epoch agrees with its leader.

Source:  the invariants StrongIsr and PrefixMatch of the TLA+ specification of Kafka's replication.
"""

from __future__ import annotations

from random import Random
from typing import Final

from targets.broker.core.messages import FetchRequest, LeaderAndIsr, OffsetForLeaderEpochRequest
from targets.broker.core.rules import Rules
from targets.broker.core.state import Phase, Role
from tests.broker.core.stage import Stage

STEPS: Final = 60


class Walk:
    """One random walk; the same seed takes the same steps."""

    def __init__(self, rules: Rules | str, seed: int, replicas: tuple[int, ...] = (1, 2, 3)) -> None:
        self.draw = Random(seed)
        self.stage = Stage(rules, replicas, replica_lag_ms_max=10**6)
        self.commands: dict[int, list[LeaderAndIsr]] = {broker: [] for broker in replicas}
        self.crc = 0
        self.told: list[str] = []
        self.stage.elect(1)

    def run(self, steps: int = STEPS) -> str:
        """Take so many steps; return the first violation, "" for none."""
        for _ in range(steps):
            self.step()
            wrong = self.wrong()
            if wrong:
                return wrong
        return ""

    def step(self) -> None:
        """Take one step, drawn at random."""
        draw, stage = self.draw, self.stage
        brokers = sorted(stage.benches)
        what = draw.choices(
            ("elect", "shrink", "tell", "write", "hold", "release", "pass", "bounce"), (6, 2, 12, 12, 8, 8, 6, 1)
        )[0]
        broker = draw.choice(brokers)
        if what == "elect":
            state = stage.zk.state()
            self.decide(draw.choice(state.isr), state.isr)
        elif what == "shrink":
            state = stage.zk.state()
            gone = draw.choice(state.isr)
            isr = tuple(member for member in state.isr if member != gone)
            if isr:
                self.decide(state.leader if state.leader in isr else draw.choice(isr), isr)
        elif what == "tell" and self.commands[broker]:
            waiting = self.commands[broker]
            command = waiting.pop(draw.randrange(len(waiting)) if draw.random() < 0.3 else 0)
            self.told.append(f"tell {broker} epoch {command.leader_epoch}")
            stage.tell(broker, command)
        elif what == "write":
            leaders = [b for b in brokers if stage.leads(b)]
            if leaders:
                self.crc += 1
                broker, count = draw.choice(leaders), draw.choice((1, 1, 2, 3))
                acks = draw.choice((1, -1))
                self.told.append(f"write {broker} crc {self.crc} x{count} acks {acks}")
                stage.write(broker, self.crc, count, acks=acks)
        elif what == "hold":
            other = draw.choice([b for b in brokers if b != broker])
            kind = draw.choice((FetchRequest, OffsetForLeaderEpochRequest))
            answers = draw.random() < 0.5
            self.told.append(f"hold {broker}->{other} {kind.__name__} answers={answers}")
            stage.hold(broker, other, kind, answers=answers)
        elif what == "release":
            self.told.append(f"release {broker}")
            stage.release(broker)
        elif what == "bounce":
            self.told.append(f"bounce {broker}")
            stage.expire(stage.stop(broker))
            stage.start(broker)
        elif what == "pass":
            self.told.append("pass")
            stage.pass_ms(1_000, step_ms=500)

    def decide(self, leader: int, isr: tuple[int, ...]) -> None:
        """Elect a leader and queue the command for each broker, to be delivered at some later step."""
        command = self.stage.elect(leader, isr=isr, tell=())
        self.told.append(f"elect {leader} epoch {command.leader_epoch} isr {isr}")
        for waiting in self.commands.values():
            waiting.append(command)

    # --- oracles ---------------------------------------------------------------------------------------------
    def wrong(self) -> str:
        """Return a violation of the two invariants, "" for none."""
        owing = self.stage.owing()
        if owing:
            return f"acknowledged batches {owing} are missing from a member of the ISR {self.stage.zk.state().isr}"
        for follower in sorted(self.stage.benches):
            replica = self.stage.replica(follower)
            leader = self.stage.benches.get(replica.leader)
            if replica.role is not Role.FOLLOWER or replica.phase is not Phase.FETCHING or leader is None:
                continue
            same = leader.replica.leader_epoch == replica.leader_epoch and leader.replica.role is Role.LEADER
            apart = self.stage.diverging(replica.leader, follower) if same else []
            if apart:
                return (
                    f"{follower} follows {replica.leader} in epoch {replica.leader_epoch}, and differs at {apart}"
                )
        return ""
