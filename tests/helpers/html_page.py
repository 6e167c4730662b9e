"""A page of HTML as tests look at it."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br", "img", "hr", "input", "link"}


class Page(HTMLParser):
    """Tags with attributes, what does not close (`wrong`), and the words outside the elements
    `without`."""

    def __init__(self, html: str, without: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.without = without
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if not self.without & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)
