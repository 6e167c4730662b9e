"""Small windows over a screen: a prompt, a choice, a yes or no, a text to read; the key map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ..sanitize import sanitize_line
from ..views.styled_lines import StyledLine, heading, line
from .pane import Pane
from .safe_text import Entry, safe, safe_line

T = TypeVar("T")


class Dialog(ModalScreen[T], Generic[T]):
    """A window that escape closes without a result."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]

    def __init__(self, title: str, hint: str = "", classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._title, self._hint = title, hint

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(safe_line(self._title), classes="head")
            yield self.body()
            if self._hint:
                yield Static(safe(self._hint), classes="hint")

    def body(self) -> Widget:
        """The widget between title and hint."""
        raise NotImplementedError

    def action_close(self) -> None:
        self.dismiss(None)


class Prompt(Dialog[str]):
    """Asks for one line of text."""

    def __init__(
        self, title: str, value: str = "", hint: str = "enter: accept · escape: leave as it is"
    ) -> None:
        super().__init__(title, hint)
        self._value = value

    def body(self) -> Widget:
        return Entry(self._value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        # An unchanged value is returned as it was, not as it is drawn.
        untouched = event.value == sanitize_line(self._value)
        self.dismiss(self._value if untouched else event.value)


class Choice(Dialog[int]):
    """Asks for one of several options; the result is its place, from 0."""

    def __init__(self, title: str, options: Sequence[str]) -> None:
        super().__init__(title)
        self._options = options

    def body(self) -> Widget:
        return OptionList(*(Option(safe_line(option)) for option in self._options))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)


class Confirm(Dialog[bool]):
    """Asks yes or no about something that is explained in a few lines."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Yes"),
        Binding("n", "answer(False)", "No"),
    ]

    def __init__(self, title: str, lines: Sequence[StyledLine]) -> None:
        super().__init__(title, "y: yes · n, escape: no")
        self._lines = lines

    def body(self) -> Widget:
        return Static(safe("\n".join(item.text for item in self._lines)))

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class Reader(Dialog[None]):
    """Lines to read, scrolled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,x,question_mark", "close", "Close", show=False)
    ]

    def __init__(self, title: str, lines: Sequence[StyledLine]) -> None:
        super().__init__(title, "j k space b g G: scroll · escape: close", "-tall")
        self._lines = lines

    def body(self) -> Widget:
        return Pane()

    def on_mount(self) -> None:
        pane = self.query_one(Pane)
        pane.show(self._lines)
        pane.focus()


_PARTS = {"TranscriptView": "Transcript", "Pane": "Panel", "RunsTable": "Table"}
"""Headings in the key map of the widgets that take keys."""


def key_map(screen: Screen[Any]) -> list[StyledLine]:
    """Every key that works on a screen: its own, those of its widgets, and those of the browser."""
    widgets = {_PARTS[type(part).__name__]: part for part in screen.query(", ".join(_PARTS))}
    lines: list[StyledLine] = []
    for title, owner in {"This screen": screen, **widgets, "Everywhere": screen.app}.items():
        keys_by_action = _keys_by_action(owner, screen.app)
        if keys_by_action:
            lines += heading(title)
        for action, keys in keys_by_action.items():
            lines.append(line((f" {' '.join(keys):<14}", "id"), f" {action}", indent=16))
    return lines[1:]


def _keys_by_action(owner: Any, app: App[Any]) -> dict[str, list[str]]:
    """The keys of a screen, widget or application by what they do, from its bindings.

    Bindings that Textual itself gives to screens and widgets are left out.
    """
    keys_by_action: dict[str, list[str]] = {}
    for base in type(owner).__mro__:
        if base.__module__.split(".")[0] == "textual" and owner is not app:
            continue
        for binding in vars(base).get("BINDINGS", ()):
            if not isinstance(binding, Binding) or not binding.description:
                continue
            keys = keys_by_action.setdefault(binding.description, [])
            for key in binding.key.split(","):
                name = _key_name(key.strip(), app)
                if name not in keys:
                    keys.append(name)
    return keys_by_action


def _key_name(key: str, app: App[Any]) -> str:
    return app.get_key_display(Binding(key, "", "")) if len(key) > 1 else key
