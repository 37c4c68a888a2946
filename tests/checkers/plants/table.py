"""All plants, by name."""

from __future__ import annotations

from typing import Final

from tests.checkers.plants import (
    acknowledgements,
    altered,
    batches,
    checkpoints,
    compactions,
    contents,
    contradictions,
    controllers,
    damaged,
    epochs,
    evidence,
    generations,
    group_logs,
    high_watermark,
    isr,
    losses,
    nowhere,
    polled,
    polls,
    purges,
    quorum,
    reads,
    replicas,
    severity,
    starts,
    stopped,
    unreported,
    whole,
)
from tests.checkers.plants.plant import Plant, plants_of

PLANTS: Final[dict[str, Plant]] = {
    name: plant
    for module in (
        acknowledgements,
        losses,
        contents,
        altered,
        batches,
        damaged,
        replicas,
        checkpoints,
        starts,
        compactions,
        severity,
        controllers,
        epochs,
        isr,
        high_watermark,
        reads,
        polls,
        polled,
        quorum,
        purges,
        nowhere,
        group_logs,
        unreported,
        whole,
        evidence,
        contradictions,
        stopped,
        generations,
    )
    for name, plant in plants_of(vars(module)).items()
}
