"""
What a system's metadata show, as events of the history; and the metadata of a target that brings one function.

`Polled` calls it, `Followed` follows what it yields; both check what they are shown.
"""

from harness.metadata.followed import Followed
from harness.metadata.polled import Polled

__all__ = ["Followed", "Polled"]
