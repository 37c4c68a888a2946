"""The report of a suite, for a browser (`build_report`) and for a terminal (`render_table`)."""

from __future__ import annotations

from harness.report.page import build_report
from harness.report.table import render_table

__all__ = ["build_report", "render_table"]
