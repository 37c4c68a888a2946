"""All plants, by name."""

from __future__ import annotations

from typing import Final

from tests.checkers.plants import events, logs, losses, reads, unreported, whole
from tests.checkers.plants.plant import Plant, plants_of

PLANTS: Final[dict[str, Plant]] = {
    name: plant
    for module in (losses, logs, events, reads, unreported, whole)
    for name, plant in plants_of(vars(module)).items()
}
