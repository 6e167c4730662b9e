"""ambjudge demo: thirty runs of two agents to try everything on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .. import console
from ..errors import InputError


@click.command("demo", epilog="\b\nExample:\n  ambjudge demo --out ambjudge-demo")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(),
    default="ambjudge-demo",
    help="A new or empty folder.  [ambjudge-demo]",
)
@click.pass_obj
def command(obj: dict[str, Any], /, out: str) -> int:
    """Write thirty small made-up runs of two agents, with a reader's answers and labels, and say
    what to do with them.

    No model and no network is needed: the judge of the folder's settings plays the answers back.
    """
    from ..demo.cohort import files

    folder = Path(out)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError("is there already", "name another folder with --out", folder)
        for name, content in files():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", "choose another --out", folder
        ) from error
    runs = sum(1 for _ in (folder / "runs").iterdir())
    console.note(
        f"{folder}: {runs} runs of two agents, a reader's answers about each, labels of some",
        obj["quiet"],
    )
    for line in (f"cd {folder}", *NEXT):
        console.say(line)
    return 0


NEXT = (
    "ambjudge score runs/ --out cards.jsonl     # stages, codes and Overall of every run",
    (
        "ambjudge analyze runs/ --out report/       # what differs between the agents, and whether"
        " one may say so"
    ),
    "ambjudge leaderboard runs/                 # ranks with intervals",
    (
        "ambjudge browse runs/                      # each score with its words in the transcript"
        " (q quits)"
    ),
    "ambjudge site runs/ --out site/            # the same as pages: open site/index.html",
)
