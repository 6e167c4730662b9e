"""ambjudge analyze: from scorecards to tables, figures and a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import ConfigError, InputError
from .cohort_input import labels_of, read_cards, say_json, say_table
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import OUTCOME, PATHS_OR_ADDRESSES, cohort_options, json_option
from .path_types import LocalPath

if TYPE_CHECKING:
    from ..analysis.report.results import Analysis


_METHODS_TABLES = ("cohort", "agreement")
"""Tables that a paragraph on methods with labels depends on."""


@grouped_command(
    "analyze",
    "ambjudge analyze cards.jsonl --out analysis/",
    "ambjudge analyze runs/ --json",
)
@PATHS_OR_ADDRESSES
@OUTCOME
@option(
    "--labels",
    metavar="DIR",
    type=LocalPath(),
    help="Use human labels for agreement and corrected numbers.",
)
@option(
    "--by",
    default="agent",
    metavar="NAME",
    help=(
        "Rank and count by this instead of by agent: model, agent+model or a field of runs."
        "  [agent]"
    ),
)
@option(
    "--table", "tables", multiple=True, metavar="NAME", help="Make only this table; repeatable."
)
@option(
    "--codes-from",
    type=click.Choice(["any", "independent", "judge", "detector", "fact", "score"]),
    default="any",
    metavar="SOURCE",
    help=(
        "Count codes from this source: any, judge, detector, score, fact (proven by files or the"
        " harness) or independent (not derived from the score).  [any]"
    ),
)
@option(
    "--ask",
    "answers",
    multiple=True,
    metavar="NAME=FILE",
    help="Add answers of `ambjudge ask` as a column of the runs; repeatable.",
)
@cohort_options
@option(
    "--out",
    heading="Output",
    metavar="DIR",
    type=LocalPath(),
    help="Write tables (CSV, Parquet, JSON), figures and report.html.",
)
@option("--title", heading="Output", default="Analysis of runs", help="The title of the report.")
@option(
    "--site",
    heading="Output",
    metavar="DIR",
    type=LocalPath(),
    help="Link the report to the pages of these runs in a site.",
)
@option(
    "--methods",
    heading="Output",
    is_flag=True,
    help="Print a paragraph for a paper: judge, rubrics, costs, tests (Markdown).",
)
@json_option("Print all tables as one JSON object.")
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Compute stages, codes, cliff, recovery, tiers, cost and effects of codes, every number with
    its interval.

    PATH: scorecards (.jsonl, .json), frames (.parquet, .csv), folders of these, a store, or a
    folder of runs, which stands for their scorecards in the store. Runs without a store are scored
    by the rules judge. Without --out, a summary is printed.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 if some inputs could not be read."""
    _check_output(flags["out"], flags["site"])
    if flags["methods"] and (flags["as_json"] or flags["tables"]):
        raise ConfigError("--methods prints a paragraph alone", "leave out --json and --table")
    from ..analysis.report.results import analyse

    labels = labels_of(flags) if flags["labels"] else None
    analysis = read_cards(
        obj,
        paths,
        flags,
        analyse,
        labels=labels,
        only=_tables_to_compute(flags),
        outcome=flags["outcome"],
        code_source=flags["codes_from"],
        by=flags["by"],
    )
    analysis = _with_answers(analysis, flags["answers"])
    if flags["out"]:
        _write_report(analysis, Path(flags["out"]), flags["title"], flags["site"], obj["quiet"])
    if flags["as_json"]:
        say_json(analysis.to_dict())
    elif flags["methods"]:
        from ..analysis.report.methods_text import methods_paragraph

        console.say(methods_paragraph(analysis))
    elif not flags["out"]:
        _show_summary(analysis, flags["tables"])
    return 1 if analysis.problems or (labels is not None and labels.n_problems) else 0


def _tables_to_compute(flags: dict[str, Any]) -> Sequence[str] | None:
    """The tables that the command needs; None for all."""
    if flags["methods"] and not flags["out"]:
        return _METHODS_TABLES if flags["labels"] else ("cohort",)
    return flags["tables"] or None


def _check_output(out: str | None, site: str | None) -> None:
    if site and not out:
        raise ConfigError(
            "--site only concerns the report", "name the folder of the report with --out DIR"
        )
    if out and Path(out).exists() and not Path(out).is_dir():
        raise InputError("cannot be written: it is not a folder", "choose another --out", out)


def _write_report(analysis: Analysis, out: Path, title: str, site: str | None, quiet: bool) -> None:
    from ..analysis.report.html_report import write_report
    from ..web.site_links import links_to_site

    links = links_to_site(Path(site), out) if site else None
    progress = console.Progress("report", None, quiet)
    progress.busy("drawing figures and writing tables")
    try:
        files = write_report(analysis, out, title=title, links=links)
    finally:
        progress.clear()
    console.note(f"wrote {len(files)} files; open {files[-1]}", quiet)


def _with_answers(analysis: Analysis, answers: Sequence[str]) -> Analysis:
    """Add each `NAME=FILE` as a column of the run frame. InputError for a name that is in use or a
    file without answers."""
    from ..analysis.tables.answer_tables import read_answers, with_answers

    if not answers:
        return analysis
    runs = analysis.cohort.runs
    for text in answers:
        name, _, file = text.partition("=")
        if not name or not file:
            raise InputError(
                f"--ask {text!r} is not NAME=FILE", "for example --ask looked=answers.jsonl"
            )
        runs = with_answers(runs, read_answers(Path(file)), name)
    return replace(analysis, cohort=replace(analysis.cohort, runs=runs))


def _show_summary(analysis: Analysis, names: Sequence[str]) -> None:
    """Print the named tables in full; without names the findings and the main tables."""
    if names:
        for name in names:
            console.say()
            say_table(analysis.display(name))
        return
    for finding in analysis.findings:
        console.say(console.wrap(finding, "  ", "- "))
    for note in analysis.mixtures:
        console.say(console.wrap(note, "  ", "- "))
    for table in analysis.summary():
        console.say()
        say_table(table)
    console.say()
    console.say("--out DIR writes all tables, figures and report.html; --json prints all tables.")
