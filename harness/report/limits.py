"""How much of a history one page shows; what lies beyond is counted and named, never silently dropped."""

from __future__ import annotations

from typing import Final

# A page of more cells than this draws only those that are not as expected.
DRAWN_CELLS_MAX: Final = 60

# One cell's share of the page. A suite of 15 cells at every cap stays below about 15 MB.
HISTORY_ROWS_MAX: Final = 400
PROOF_ROWS_MAX: Final = 60
ANOMALIES_MAX: Final = 50
VALUE_CHARS_MAX: Final = 360
SENTENCE_CHARS_MAX: Final = 2000
EXCHANGES_MAX: Final = 60
STEPS_MAX: Final = 300
PARTITIONS_MAX: Final = 4

# The timeline: items drawn, lanes for clients, and rows in one lane (operations that overlap in time).
TIMELINE_ITEMS_MAX: Final = 420
CLIENT_LANES_MAX: Final = 8
LANE_ROWS_MAX: Final = 5
TITLE_LINES_MAX: Final = 6

# The lineage: how many offsets in a row get a cell each before the axis is shortened, and how many segments
# of one row and how many cuts of one replica are drawn.
CELLS_IN_A_ROW_MAX: Final = 12
AXIS_KNOTS_MAX: Final = 80
SEGMENTS_MAX: Final = 200
CUTS_MAX: Final = 12
