"""One Spark session for all tests that ask for it: a process can have no second one beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from checkers.spark.session import spark_session


@pytest.fixture(scope="package")
def session() -> Iterator[Any]:
    """Spark, up."""
    with spark_session() as session:
        yield session
