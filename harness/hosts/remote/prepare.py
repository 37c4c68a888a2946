"""
Runs on a machine before anything is copied there: looks at it, and unpacks what was copied into its folder.

The text of this file is an argument of `python -c`, so it imports the standard library alone, and understands that
it runs on a Python that is too old for the rest. It prints one JSON object on its last line.

    python -c TEXT survey FOLDER MODULE…       make the folder, and say what is there
    python -c TEXT unpack ARCHIVE FOLDER       unpack a zip archive into a new folder, and remove the archive
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import stat
import sys
import zipfile


def survey(folder: str, *modules: str) -> dict[str, object]:
    """Make the folder, ours alone, and return what the machine has; `error` says what is wrong with the folder."""
    path = os.path.realpath(os.path.expanduser(folder))
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        return {"error": "%s: %s" % (path, error.strerror)}  # noqa: UP031
    if found.st_uid != os.geteuid():
        return {"error": "%s: belongs to uid %d, we are %d" % (path, found.st_uid, os.geteuid())}  # noqa: UP031
    if stat.S_IMODE(found.st_mode) & 0o022:
        return {"error": "%s: others may write to it" % path}  # noqa: UP031
    for name in ("code", "lib", "incoming"):
        os.makedirs(os.path.join(path, name), mode=0o700, exist_ok=True)
    return {
        "folder": path,
        "python": list(sys.version_info[:2]),
        "implementation": sys.implementation.name,
        "platform": [sys.platform, platform.machine(), platform.libc_ver()[0]],
        "missing": [name for name in modules if importlib.util.find_spec(name) is None],
        "code": os.listdir(os.path.join(path, "code")),
        "lib": os.listdir(os.path.join(path, "lib")),
    }


def unpack(archive: str, folder: str) -> dict[str, object]:
    """Unpack the archive; if another harness was faster, its folder stays, which has the same content."""
    fresh = archive + ".unpacked"
    try:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(fresh)
        try:
            os.rename(fresh, folder)
        except OSError:
            if not os.path.isdir(folder):
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        os.unlink(archive)
    return {}


if __name__ == "__main__":
    ACT = survey if sys.argv[1] == "survey" else unpack
    sys.stdout.write("\n" + json.dumps(ACT(*sys.argv[2:])) + "\n")
