"""Parse a report page as a browser would, and list its problems."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

_VOID = frozenset({"meta", "link", "br", "img", "input", "hr"})
_APART = frozenset({"td", "th", "dt", "dd", "p", "li", "tr"})
_FETCHING = frozenset({"href", "src", "srcset", "action", "data", "poster", "xlink:href"})


class Page(HTMLParser):
    """A parsed page: ids, link targets, tags, text and drawings."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.ids: list[str] = []
        self.targets: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.unbalanced: list[str] = []
        self._open: list[str] = []
        self._words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._words.append(" " if tag in _APART else "")
        if tag not in _VOID:
            self._open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in _FETCHING or name.startswith("on"):
                self.targets.append((tag, name, value or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] not in ("style", "script"):
            self._words.append(data)

    @property
    def text(self) -> str:
        """All text, with white space collapsed."""
        return " ".join("".join(self._words).split())

    def drawings(self) -> list[ET.Element]:
        """
        Return every SVG of the page, parsed as XML.

        Raises:
            ParseError: a drawing is not well-formed.
        """
        return [ET.fromstring(found) for found in re.findall(r"<svg.*?</svg>", self.html, re.DOTALL)]

    def section(self, key: str) -> Page:
        """Return the article whose heading has the id."""
        articles = re.findall(r"<article.*?</article>", self.html, re.DOTALL)
        return Page(next(a for a in articles if f'aria-labelledby="{key}"' in a))


def problems_of(page: Page) -> list[str]:
    """Return everything that keeps a page from being self-contained and well-formed; [] for a sound page."""
    known = set(page.ids)
    problems = [f"id {i} twice" for i in sorted(known) if page.ids.count(i) > 1]
    problems += [f"unbalanced {tag}" for tag in page.unbalanced]
    for tag, name, value in page.targets:
        if not value.startswith("#"):
            problems.append(f"{tag} {name} leads outside: {value}")
        elif value[1:] not in known:
            problems.append(f"link to nowhere: {value}")
    for used in re.findall(r"url\(([^)]*)\)", page.html):
        if used.removeprefix("#") not in known:
            problems.append(f"style wants {used}")
    problems += [f"{tag} in the page" for tag in ("script", "iframe", "object", "link") if tag in page.tags]
    try:
        page.drawings()
    except ET.ParseError as error:
        problems.append(f"drawing: {error}")
    return problems
