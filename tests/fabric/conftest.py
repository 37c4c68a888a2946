"""The fixture net: one fabric per test, closed with all its sockets when the test ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fabric.nodes import World, world


@pytest.fixture(name="net")
def _net() -> Iterator[World]:
    with world() as made:
        yield made
