"""Limits on how much of a history one page shows; the page counts everything that it leaves out."""

from __future__ import annotations

from typing import Final

# A page with more runs than this draws only those that are not as expected.
DRAWN_RUNS_MAX: Final = 60

# Limits for one run. A suite of 15 runs, each at every limit, is below about 15 MB.
HISTORY_ROWS_MAX: Final = 400
PROOF_ROWS_MAX: Final = 60
ANOMALIES_MAX: Final = 50
VALUE_CHARS_MAX: Final = 360
SENTENCE_CHARS_MAX: Final = 2000
EXCHANGES_MAX: Final = 60
STEPS_MAX: Final = 300
INDEXES_MAX: Final = 10_000
RANGES_MAX: Final = 100
OUTCOME_CHARS_MAX: Final = 2_000
PARTITIONS_MAX: Final = 4

# The timeline: drawn items, lanes of clients, and rows in one lane (for operations that overlap in time).
TIMELINE_ITEMS_MAX: Final = 420
CLIENT_LANES_MAX: Final = 8
LANE_ROWS_MAX: Final = 5
TITLE_LINES_MAX: Final = 6

# The lineage: the longest stretch of offsets that is not shortened, the knots of the axis, the segments of one row
# and the cuts of one replica.
CELLS_IN_A_ROW_MAX: Final = 12
AXIS_KNOTS_MAX: Final = 80
SEGMENTS_MAX: Final = 200
CUTS_MAX: Final = 12
