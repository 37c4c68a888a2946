"""What Spark says of an error is one line, and the last thing that is known of it."""

from __future__ import annotations

import pytest

from checkers.spark.errors import said

STACK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 4327, in invoke_udf
    run_process()
    ^^^^^^^^^^^^^
  File "reading.py", line 3, in _read
    raise TablesError
"""
JAVA = "\n\n\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)\n\tat java.base/x.Y.z"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{STACK}harness.tables.schema.TablesError: /r/records.parquet: torn;\nexpected a table",
         "/r/records.parquet: torn; expected a table"),
        (f"{STACK}ValueError: so{JAVA}", "ValueError: so"),
        (f"An error occurred while calling o1.x.\n: org.apache.spark.SparkException: [NO] gone{JAVA}",
         "SparkException: [NO] gone"),
        ("x" * 999, "x" * 300),
    ],
)  # fmt: skip
def test_error_is_said_in_one_line_without_the_calls_that_it_came_from(text: str, line: str) -> None:
    assert line == said(RuntimeError(text))
