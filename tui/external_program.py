"""Opens a sanitised copy of some text in the user's editor, while the browser waits."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported


def show_in_editor(app: App[Any], text: str, name: str) -> str:
    """Run $EDITOR (default vi) on a private temporary file; the problem in words, or "".

    `text` must be sanitised already. The file is removed afterwards; changes to it are ignored.
    """
    command = shlex.split(os.environ.get("EDITOR") or "vi")
    if not command:
        return "$EDITOR is empty"
    with tempfile.TemporaryDirectory(prefix="ambjudge-") as folder:
        file = Path(folder) / f"{name}.txt"
        file.write_text(text, "utf-8", "backslashreplace")
        try:
            with app.suspend():
                editor = subprocess.run([*command, str(file)], check=False)
        except SuspendNotSupported:
            return "this terminal cannot be handed to another program"
        except OSError as error:
            return f"{command[0]}: {error.strerror} (set $EDITOR)"
    if editor.returncode:
        return f"{command[0]} ended with status {editor.returncode}"
    return ""
