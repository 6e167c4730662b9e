"""Small windows over a screen: a prompt, a choice, a text to read, and the key map made from the
bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual.app import ComposeResult
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
        """What stands between title and hint."""
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
        # What was only looked at comes back as it was, not as it is drawn.
        untouched = event.value == sanitize_line(self._value)
        self.dismiss(self._value if untouched else event.value)


class Choice(Dialog[int]):
    """Asks for one of several; the result is its place."""

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


def key_map(screen: Screen[Any]) -> list[StyledLine]:
    """Every key that works here: those of the screen, of its parts, and of the whole browser, from
    their bindings."""
    app = screen.app
    parts = {_PARTS[type(part).__name__]: part for part in screen.query(", ".join(_PARTS))}
    lines: list[StyledLine] = []
    for title, holder in {"This screen": screen, **parts, "Everywhere": app}.items():
        rows: dict[str, list[str]] = {}
        for kind in type(holder).__mro__:
            if kind.__module__.split(".")[0] == "textual" and holder is not app:
                continue
            for binding in vars(kind).get("BINDINGS", ()):
                if isinstance(binding, Binding) and binding.description:
                    keys = [key.strip() for key in binding.key.split(",")]
                    shown = [
                        app.get_key_display(Binding(key, "", "")) if len(key) > 1 else key
                        for key in keys
                    ]
                    rows.setdefault(binding.description, []).extend(shown)
        if rows:
            lines += heading(title)
        for what, keys in rows.items():
            lines.append(
                line((f" {' '.join(dict.fromkeys(keys)):<14}", "id"), f" {what}", indent=16)
            )
    return lines[1:]
