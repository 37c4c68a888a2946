"""Every command of `fencepost`: a module with NAME, HELP, configure(parser) and run(arguments) -> exit code."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from harness.cli import agree, kafka, kafka_suite, kip101, lineage, play, run, scenarios

COMMANDS: Final[dict[str, ModuleType]] = {
    module.NAME: module for module in (kip101, play, scenarios, run, kafka_suite, lineage, agree, kafka)
}
