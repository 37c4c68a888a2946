"""What Spark says of an error, in one line."""

from __future__ import annotations

import re
from typing import Final

_CHARACTERS: Final = 300
# What executors' Pythons raise comes with their stack; an error of ours needs no name.
_STACK: Final = re.compile(r"Traceback \(most recent call last\):\n(?:  .*\n)*(?:harness\.[\w.]+: )?")


def said(error: Exception) -> str:
    """Return what Spark says of an error in one line, without the calls that it came from."""
    text = re.split(r"\sat (?:org|java|scala)\.", str(error))[0]
    text = _STACK.split(text)[-1]
    return re.sub(r"^An error occurred while calling \w+\.\w+\. : (?:\w+\.)*", "", " ".join(text.split()))[
        :_CHARACTERS
    ]
