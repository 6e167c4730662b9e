"""Small windows over a screen: a prompt, a choice, a text to read, and the key map made from the bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ..sanitize import sanitize_line
from .lines import Line, line
from .pane import Pane
from .safe_text import Entry, safe, safe_line

T = TypeVar("T")


class Dialog(ModalScreen[T], Generic[T]):
    """A window that escape closes without a result."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]

    def action_close(self) -> None:
        self.dismiss(None)


class Prompt(Dialog[str]):
    """Asks for one line of text."""

    def __init__(self, title: str, value: str = "", hint: str = "") -> None:
        super().__init__()
        self._title, self._value, self._hint = title, value, hint

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(safe_line(self._title), classes="head")
            yield Entry(self._value)
            yield Static(safe(self._hint or "enter: accept · escape: leave as it is"), classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        # What was only looked at comes back as it was, not as it is drawn.
        untouched = event.value == sanitize_line(self._value)
        self.dismiss(self._value if untouched else event.value)


class Choice(Dialog[int]):
    """Asks for one of several; the result is its place."""

    def __init__(self, title: str, options: Sequence[str]) -> None:
        super().__init__()
        self._title, self._options = title, options

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(safe_line(self._title), classes="head")
            yield OptionList(*(Option(safe_line(option)) for option in self._options))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)


class Confirm(Dialog[bool]):
    """Asks yes or no about something that is explained in a few lines."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Yes"),
        Binding("n", "answer(False)", "No"),
    ]

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        super().__init__()
        self._title, self._lines = title, lines

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(safe_line(self._title), classes="head")
            yield Static(safe("\n".join(item.text for item in self._lines)))
            yield Static(safe("y: yes · n, escape: no"), classes="hint")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class Reader(Dialog[None]):
    """Lines to read, scrolled."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,x,question_mark", "close", "Close", show=False)]

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        super().__init__(classes="-tall")
        self._title, self._lines = title, lines

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(safe_line(self._title), classes="head")
            yield Pane()
            yield Static(safe("j k space b g G: scroll · escape: close"), classes="hint")

    def on_mount(self) -> None:
        pane = self.query_one(Pane)
        pane.show(self._lines)
        pane.focus()


def key_map(screen: Screen[Any]) -> list[Line]:
    """Every key that works here: those of the screen, of its parts, and of the whole browser, from their bindings."""
    groups: list[tuple[str, Any]] = [("This screen", screen)]
    groups += [(_name(widget), widget) for widget in screen.query("TranscriptView, Pane, RunsTable")]
    groups.append(("Everywhere", screen.app))
    lines: list[Line] = []
    seen: set[str] = set()
    for title, holder in groups:
        if title in seen:
            continue
        seen.add(title)
        rows: dict[str, list[str]] = {}
        for kind in type(holder).__mro__:
            if kind.__module__.split(".")[0] == "textual" and holder is not screen.app:
                continue
            for binding in vars(kind).get("BINDINGS", ()):
                if isinstance(binding, Binding) and binding.description:
                    keys = binding.key.split(",")
                    rows.setdefault(binding.description, []).extend(screen.app.get_key_display(
                        Binding(key.strip(), "", "")) if len(key.strip()) > 1 else key.strip() for key in keys)  # fmt: skip
        if rows:
            lines += [line(""), line((title, "head"))] if lines else [line((title, "head"))]
            lines += [
                line((f" {' '.join(dict.fromkeys(keys)):<14}", "id"), f" {what}", indent=16)
                for what, keys in rows.items()
            ]
    return lines


def _name(widget: Any) -> str:
    return {"TranscriptView": "Transcript", "Pane": "Panel", "RunsTable": "Table"}.get(type(widget).__name__, "")
