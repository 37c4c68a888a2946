"""
What each fault and its heal said on each host, kept beside the pages that quote it.

`make evidence` plays every fault on a host and writes the host's file; no date and no path of a machine is in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

FOLDER: Final = Path(__file__).with_name("evidence")
# The hosts that have a file, in the order of the page.
EVIDENCED: Final = ("sim", "local", "docker", "ssh")
# When a node printed a line.
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ ")
# A path of the machine that played it: its last part is all that the evidence is about. Others are left.
_PATH: Final = re.compile(r"/(?:tmp|home|root|run|var|mnt|work|proc|sys|dev)(?:/[\w.+@-]+)*/([\w.+@-]+)")
# A machine of a test's own has another user and address each time.
_MACHINE: Final = re.compile(r"\(fencepost-test-[\w-]+@[\d.:]+\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """
    What a fault said on a host.

    Attributes:
        injected: what was seen of its injection.
        healed: what was seen of its heal; "" if it needs none.
        refused: why the host refuses it; "" if it was played.
    """

    injected: str = ""
    healed: str = ""
    refused: str = ""

    def plain(self) -> Self:
        """Return it without dates, and without paths and addresses of the machine."""
        texts = {
            name: _MACHINE.sub("(USER@ADDRESS)", _PATH.sub(r"\1", _DATE.sub("", text)))
            for name, text in asdict(self).items()
        }
        return type(self)(**texts)


def read(host: str) -> dict[str, Cell]:
    """Return what each fault said on a host, {} if nobody has played it there."""
    path = FOLDER / f"{host}.json"
    if not path.exists():
        return {}
    return {fault: Cell(**texts) for fault, texts in json.loads(path.read_text(encoding="utf-8")).items()}


def keep(host: str, fault: str, cell: Cell, faults: Iterable[str]) -> None:
    """Write a cell into its host's file, which has the faults in the order given, and nothing of what is empty."""
    cells = {**read(host), fault: cell.plain()}
    known = [(name, asdict(cells[name])) for name in faults if name in cells]
    texts = {name: {part: text for part, text in parts.items() if text} for name, parts in known}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{host}.json").write_text(json.dumps(texts, indent=2) + "\n", encoding="utf-8")
