"""One lookup serves all tables; its error suggests the nearest name."""

from __future__ import annotations

import pytest

from harness.model import UsageError
from harness.registry import load, pick


def test_unknown_name_is_an_error_with_what_there_is_and_what_was_probably_meant() -> None:
    with pytest.raises(
        UsageError, match=r"unknown host 'locl': expected one of docker, local. Did you mean 'local'\?"
    ):
        pick("host", {"local": 1, "docker": 2}, "locl")


def test_load_returns_an_attribute_of_the_module_that_the_table_names() -> None:
    assert pick is load("thing", {"registry": "harness.registry"}, "registry", "pick")
