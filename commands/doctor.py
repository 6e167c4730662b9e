"""ambjudge doctor: what works here."""

from __future__ import annotations

import json
from typing import Any

import click


@click.command("doctor", epilog="\b\nExample:\n  ambjudge doctor --api-base http://localhost:8000/v1")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
@click.option("--api-base", metavar="URL", help="Also ask this server for its models.")
@click.pass_obj
def command(obj: dict[str, Any], as_json: bool, api_base: str | None) -> int:
    """Show what is installed, which judges can be used, which settings are in force, where the store is."""

    from ..config import load
    from ..doctor import examine

    settings = load(obj["config"])
    findings = examine(settings, settings.get("api_base", api_base))
    if as_json:
        from ..console import raw

        raw(json.dumps([f.__dict__ for f in findings], ensure_ascii=False))
    else:
        from ..console import table

        marks = {True: "ok", False: "problem", None: "–"}
        styles = {True: "good", False: "bad", None: "dim"}
        table(["", "What", "State"], [[marks[f.ok], f.what, f.state] for f in findings], flexible=2,
              styles=[[styles[f.ok], None, None] for f in findings])  # fmt: skip
    return 1 if any(f.ok is False for f in findings) else 0
