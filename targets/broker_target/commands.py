"""The commands that our broker alone has."""

from __future__ import annotations

from typing import Final

from harness.target.commands import Command, Spelled

COMMANDS: Final = {
    "test-kip101": Command(
        module="targets.broker_commands.kip101",
        help="play KIP-101's scenarios under every protocol and print scenario x protocol",
    ),
}
TEST: Final = Spelled(words=("test-kip101",), version="--protocol")
