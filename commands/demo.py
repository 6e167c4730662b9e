"""ambjudge demo: thirty runs of two agents to try everything on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .. import console
from ..errors import InputError
from .grouped_help import command as grouped_command
from .grouped_help import option
from .path_types import LocalPath

NEXT_COMMANDS = """\
ambjudge score runs/ --out cards.jsonl     # stages, codes and Overall of every run
ambjudge analyze runs/ --out report/       # how the agents differ, and how certain that is
ambjudge leaderboard runs/                 # ranks with intervals
ambjudge browse runs/                      # each score with its quotes in the transcript (q quits)
ambjudge site runs/ --out site/            # the same as pages: open site/index.html
ambjudge analyze runs/ --labels labels/    # scores corrected by a person's labels of some runs"""


@grouped_command("demo", "ambjudge demo --out ambjudge-demo")
@option(
    "--out",
    heading="Output",
    metavar="DIR",
    type=LocalPath(),
    default="ambjudge-demo",
    help="Write to this new or empty folder.  [ambjudge-demo]",
)
@click.pass_obj
def command(obj: dict[str, Any], /, out: str) -> int:
    """Write thirty small constructed runs of two agents, with a judge's replies and human labels,
    and list commands to try on them.

    No model and no network is needed: the judge in the folder's settings replays the replies.
    """
    folder = Path(out)
    try:
        _write_files(folder)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", "choose another --out", folder
        ) from error
    runs = sum(1 for _ in (folder / "runs").iterdir())
    console.note(
        f"wrote {runs} runs of two agents to {folder}, with a judge's replies to each and labels of"
        " some",
        obj["quiet"],
    )
    console.say(f"cd {folder}")
    console.say(NEXT_COMMANDS)
    return 0


def _write_files(folder: Path) -> None:
    from ..demo.cohort import files

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("exists and is not empty", "name another folder with --out", folder)
    for name, content in files():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")
