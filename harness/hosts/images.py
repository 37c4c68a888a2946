"""
The command `python -m harness.hosts.images`: it builds both images, and prints their tags.

The builder is imported on demand: it stands on Docker's library, which only the extra `docker` installs.
"""

from __future__ import annotations

import sys
from typing import Final

from harness.ending import Parser, end
from harness.extras import require

DEFAULT_BASE: Final = "python:3.11-slim"
_NAME: Final = "harness.hosts.images"


def main(arguments: list[str]) -> int:
    """Build both images and print their tags."""
    parser = Parser(prog=f"python -m {_NAME}", description=main.__doc__)
    parser.add_argument("--base", default="", help=f"base image; {DEFAULT_BASE} by default")

    def build() -> int:
        options = parser.parse_args(arguments)
        require("docker", "images")
        from harness.cleanup.engine import connect
        from harness.hosts.image_build import ensure

        images = ensure(connect(), options.base)
        print(images.broker)
        print(images.java)
        return 0

    return end(_NAME, build)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
