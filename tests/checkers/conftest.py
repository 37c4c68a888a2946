"""One Spark session for all tests that need it: a process can have only one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from checkers.spark.session import spark_session


@pytest.fixture(scope="package")
def session() -> Iterator[Any]:
    """Yield a running Spark session."""
    with spark_session() as session:
        yield session
