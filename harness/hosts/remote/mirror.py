"""The harness's copy of a node's data on a machine, brought up to date by what the agent says has changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.beneath import Folder, RefusedError, parts
from harness.hosts.trees import remove
from harness.model import PreconditionError


class Mirror:
    """A folder here that has what a node's has; no path of a machine leads out of it."""

    def __init__(self, folder: Path) -> None:
        """Make the folder."""
        self.folder = folder
        folder.mkdir(parents=True)

    def take(self, part: Mapping[str, Any], payload: bytes) -> None:
        """
        Apply one part of harness/hosts/remote/changes.py.

        Raises:
            PreconditionError: Its path leads out, or cannot be written.
        """
        try:
            with Folder.at(self.folder) as copy:
                if "folder" in part:
                    copy.below(parts(part["folder"]), make=True).close()
                elif "gone" in part:
                    *above, name = parts(part["gone"])
                    try:
                        with copy.below(above) as parent:
                            remove(parent, name)
                    except FileNotFoundError:
                        return  # it went with the folder above
                else:
                    *above, name = parts(part["file"])
                    with copy.below(above, make=True) as parent:
                        handle = parent.open(name, os.O_WRONLY | os.O_CREAT)
                        with os.fdopen(handle, "wb", closefd=True) as file:
                            file.truncate(part["at"])
                            file.seek(part["at"])
                            file.write(payload)
        except RefusedError as error:
            raise PreconditionError(f"copy in {self.folder}: {error.filename}: {error}") from error
        except (OSError, KeyError, TypeError) as error:
            raise PreconditionError(f"copy in {self.folder}: {error}; expected to be able to write it") from error
