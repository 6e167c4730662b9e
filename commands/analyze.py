"""ambjudge analyze: scorecards to tables, figures and a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import ConfigError, InputError
from .cohort_input import LEFT_OUT, labels_of, read_cards, say_json, say_table
from .options import OUTCOME, PATHS_OR_ADDRESSES, cohort_options, json_option, judged_by

if TYPE_CHECKING:
    from ..analysis.report.results import Analysis


SUMMARY = ("leaderboard", "code_effects")
"""Tables of the summary on a terminal; the rest needs --out or --json."""


@click.command(
    "analyze",
    epilog=(
        "\b\nExamples:\n  ambjudge analyze cards.jsonl --out analysis/\n  ambjudge analyze runs/"
        " --json"
    ),
)
@PATHS_OR_ADDRESSES
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(),
    help="Write tables (CSV, Parquet, JSON), figures and report.html.",
)
@json_option("All tables as one JSON object on stdout.")
@click.option(
    "--labels",
    metavar="DIR",
    type=click.Path(),
    help="Human labels: agreement and corrected numbers too.",
)
@click.option(
    "--table", "tables", multiple=True, metavar="NAME", help="Only these tables (repeatable)."
)
@OUTCOME
@judged_by("the judge with most")
@click.option(
    "--codes-from",
    type=click.Choice(["any", "independent", "judge", "detector", "fact", "score"]),
    default="any",
    metavar="SOURCE",
    help=(
        "any, judge, detector, fact, score or independent: which tags count (fact: findings that"
        " stand whatever is read; independent: all but those read off the score).  [any]"
    ),
)
@click.option(
    "--ask",
    "asked",
    multiple=True,
    metavar="NAME=FILE",
    help="Answers of `ambjudge ask` as a column of the runs.",
)
@click.option("--title", default="Analysis of runs", help="Title of the report.")
@click.option(
    "--site",
    metavar="DIR",
    type=click.Path(),
    help="A site of these runs: the report leads to its pages.",
)
@cohort_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Stages, codes, cliff, recovery, tiers, cost, effects of codes: every number with its
    interval.

    PATH: scorecards (.jsonl, .json), frames (.parquet, .csv), folders of these, a store, or a
    folder of runs: their scorecards in the store, or without a store by the rules judge (--rubric
    and what follows it are for that). Without --out: a summary.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when some inputs could not be read."""
    if flags["site"] and not flags["out"]:
        raise ConfigError("--site is for the report", "say where with --out DIR")
    if flags["out"] and Path(flags["out"]).exists() and not Path(flags["out"]).is_dir():
        raise InputError("cannot be written: not a folder", "choose another --out", flags["out"])
    from ..analysis.report.results import analyse

    found = read_cards(
        obj,
        paths,
        flags,
        analyse,
        labels=labels_of(flags) if flags["labels"] else None,
        only=flags["tables"] or None,
        outcome=flags["outcome"],
        code_source=flags["codes_from"],
        judge=flags["judge"],
    )
    found = _with_answers(found, flags["asked"])
    if flags["out"]:
        from ..analysis.report.html_report import write_report
        from ..web.pages import pages_of

        links = pages_of(Path(flags["site"]), Path(flags["out"])) if flags["site"] else None

        progress = console.Progress("report", None, obj["quiet"])
        progress.busy("drawing figures, writing tables")
        try:
            written = write_report(found, Path(flags["out"]), title=flags["title"], links=links)
        finally:
            progress.clear()
        console.note(f"wrote {len(written)} files; open {written[-1]}", obj["quiet"])
    if flags["as_json"]:
        from ..analysis.report.results import to_json

        say_json(to_json(found))
    elif not flags["out"]:
        _summary(found, flags["tables"])
    return 1 if found.problems else 0


def _with_answers(found: Analysis, asked: Sequence[str]) -> Analysis:
    """Each `NAME=FILE` as a column of the run frame. InputError for a name that is taken or a file
    that holds no answers."""
    from dataclasses import replace

    from ..analysis.tables.answer_tables import read_answers, with_answers

    runs = found.cohort.runs
    for text in asked:
        name, _, file = text.partition("=")
        if not name or not file:
            raise InputError(
                f"--ask {text!r} is not NAME=FILE", "for example --ask looked=answers.jsonl"
            )
        runs = with_answers(runs, read_answers(Path(file)), name)
    return replace(found, cohort=replace(found.cohort, runs=runs)) if asked else found


def _summary(found: Analysis, chosen: Sequence[str]) -> None:
    """Findings and the main tables; the chosen tables in full when some were chosen."""
    import polars as pl

    from ..analysis.report.findings import findings
    from ..analysis.tables.score_names import score_of

    if not chosen:
        for finding in findings(found.tables, score_of(found.outcome, found.runs)):
            console.say(console.wrap(finding.text, "  ", "- "))
    for name in chosen or [name for name in SUMMARY if name in found.tables]:
        table = found.tables[name]
        console.say()
        console.say(found.heading(name)[0])
        if table.columns == ["reason"] or table.is_empty():
            console.say(f"  {table['reason'][0] if table.height else 'no rows'}")
            continue
        if name == "leaderboard" and not chosen:
            table = table.filter(pl.col("scope") == "overall")
        say_table(
            table,
            name,
            hide=(
                ()
                if chosen
                else (
                    "name",
                    *LEFT_OUT["overall"],
                    "loo_task",
                    "loo_min",
                    "loo_max",
                    "n",
                    "n_clusters",
                )
            ),
        )
    if not chosen:
        console.say()
        console.say(
            "--out DIR writes all tables, figures and report.html; --json prints all tables."
        )
