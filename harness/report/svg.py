"""
SVG drawings as element trees, so that the output is well-formed and escaped for any history.

Colours and patterns are classes that templates/style.css.j2 defines for light, dark and print; elements have no
colours themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias
from xml.etree import ElementTree as ET

from markupsafe import Markup

from harness.report.text import clean

# Width of a character in the drawings' 11 px monospaced font; slightly too wide, so that labels never touch.
CHAR_PX: Final = 6.7
# The number of epoch colours; further epochs reuse them, and every segment names its epoch.
EPOCH_COLOURS: Final = 7

# x, y, width, height of a rectangle; x1, y1, x2, y2 of a line.
Box: TypeAlias = tuple[float, float, float, float]


def text_px(text: str) -> float:
    """Return the width of a label in pixels."""
    return len(text) * CHAR_PX


def epoch_class(epoch: int | None) -> str:
    """Return the CSS class of an epoch; batches without an epoch have their own class."""
    return "ep-none" if epoch is None or epoch < 0 else f"ep{epoch % EPOCH_COLOURS}"


def picture(width: float, height: float, label: str, css: str = "") -> ET.Element:
    """Return an empty drawing of that size in pixels; label is its text for screen readers."""
    return ET.Element(
        "svg",
        {
            "width": f"{width:.0f}",
            "height": f"{height:.0f}",
            "viewBox": f"0 0 {width:.0f} {height:.0f}",
            "role": "img",
            "aria-label": clean(label),
            **({"class": css} if css else {}),
        },
    )


def group(parent: ET.Element, css: str = "", title: str = "") -> ET.Element:
    """Add a group; its title is shown as a tooltip."""
    element = ET.SubElement(parent, "g", {"class": css} if css else {})
    if title:
        ET.SubElement(element, "title").text = clean(title)
    return element


def box(parent: ET.Element, place: Box, css: str, *, round_: float = 0) -> None:
    """Add a rectangle; one without width becomes a hairline."""
    x, y, width, height = place
    rounding = {"rx": f"{round_:g}"} if round_ else {}
    sides = {"x": x, "y": y, "width": max(width, 0.5), "height": height}
    ET.SubElement(parent, "rect", {**{k: f"{v:.1f}" for k, v in sides.items()}, "class": css, **rounding})


def line(parent: ET.Element, place: Box, css: str) -> None:
    """Add a line from (x1, y1) to (x2, y2)."""
    ends = zip(("x1", "y1", "x2", "y2"), place, strict=True)
    ET.SubElement(parent, "line", {**{k: f"{v:.1f}" for k, v in ends}, "class": css})


def label(parent: ET.Element, x: float, y: float, text: str, css: str = "", *, middle: bool = False) -> None:
    """Add a text; y is its base line."""
    attributes = {"x": f"{x:.1f}", "y": f"{y:.1f}"}
    if css:
        attributes["class"] = css
    if middle:
        attributes["text-anchor"] = "middle"
    ET.SubElement(parent, "text", attributes).text = clean(text)


def path(parent: ET.Element, d: str, css: str) -> None:
    """Add a path."""
    ET.SubElement(parent, "path", {"d": d, "class": css})


def markup(root: ET.Element) -> Markup:
    """Return the drawing as markup for a page."""
    return Markup(ET.tostring(root, encoding="unicode"))  # ElementTree has escaped it


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """
    A drawing in two parts: the names of its rows, which stay in sight, and the plot, which scrolls.

    Attributes:
        notes: sentences about what was left out, and why.
    """

    names: Markup
    plot: Markup
    notes: tuple[str, ...] = ()
