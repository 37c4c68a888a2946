"""
Places: which 4,096 offsets of which partition a row is about, as one number.

Rows are written nearly in the order of their places, so that a query that names the places which it looks at reads
few row groups. A place decides nothing: what lies beyond the last one counts as there.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

# The offsets of one place, as a shift.
SHIFT: Final = 12
PART_SHIFT: Final = 40
LAST: Final = 2**PART_SHIFT - 1


def place_of(part: int, offset: int) -> int:
    """Return the place of an offset of a partition, which is named by its place in the manifest's `parts`."""
    return part << PART_SHIFT | min(max(offset, 0) >> SHIFT, LAST)


def places_of(parts: Any, offsets: Any) -> pa.Array:
    """Return the place of each offset, null where there is none or where it is negative."""
    parts, offsets = pa.array(parts, pa.int32()), pa.array(offsets, pa.int64())
    here = pc.if_else(pc.greater_equal(offsets, 0), offsets, None)
    bucket = pc.min_element_wise(pc.shift_right(here, SHIFT), LAST, skip_nulls=False)
    return pc.bit_wise_or(pc.shift_left(parts.cast(pa.int64()), PART_SHIFT), bucket)
