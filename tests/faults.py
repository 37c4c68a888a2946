"""All faults of our broker, common ones and its own, as commands and schedules see them."""

from __future__ import annotations

from typing import Final

from nemesis import faults_of
from targets.broker_target.target import TARGET

NEMESES: Final = faults_of(TARGET)
