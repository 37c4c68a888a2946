"""All plants, by name."""

from __future__ import annotations

from typing import Final

from tests.checkers.plants import (
    acknowledgements,
    altered,
    batches,
    checkpoints,
    contents,
    controllers,
    epochs,
    high_watermark,
    isr,
    losses,
    reads,
    replicas,
    starts,
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
        replicas,
        checkpoints,
        starts,
        controllers,
        epochs,
        isr,
        high_watermark,
        reads,
        whole,
    )
    for name, plant in plants_of(vars(module)).items()
}
