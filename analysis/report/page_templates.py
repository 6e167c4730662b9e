"""HTML templates in which every text is made visible and escaped where it enters a page."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ...sanitize import sanitize


def environment(folder: Path) -> Environment:
    """The templates in a folder. A name that a template uses and nobody gives is an error."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def visible_html(text: object) -> Markup:
    """Text as HTML: control and invisible characters shown, markup escaped."""
    return Markup(escape(sanitize(str(text)), quote=True))


def _visible(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Markup):
        return sanitize(value)
    return value
