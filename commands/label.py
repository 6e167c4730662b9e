"""ambjudge label: human labels in and out, and which runs to label next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError, StoreError
from .grouped_help import CommandGroup, example_lines, option
from .options import json_option
from .path_types import LocalPath
from .runs import each_run
from .sessions import store_place

if TYPE_CHECKING:
    from ..judge.store import Store
    from ..judge.trust.human_labels import Labels
    from ..trajectories.models import Run


@click.group(
    "label",
    cls=CommandGroup,
    epilog=example_lines("ambjudge label import labels/gold --store runs/.ambjudge/ambjudge.db"),
)
def command() -> None:
    """Import and export human labels (one JSON file for each run and annotator), and choose which
    runs to label next."""


STORE = option(
    "--store",
    metavar="FILE|URL",
    help="The verdict store.  [default: the nearest .ambjudge/ambjudge.db]",
)


@command.command("import")
@click.argument("paths", nargs=-1, required=True, type=LocalPath(), metavar="FILE|DIR...")
@STORE
@option(
    "--runs",
    metavar="DIR",
    type=LocalPath(),
    help="Check the turns and criteria of the labels against the runs below DIR.",
)
@click.pass_obj
def import_(
    obj: dict[str, Any], paths: tuple[str, ...], store: str | None, runs: str | None
) -> int:
    """Read label files, check them and keep them in the store.

    Files that break the format are named and left out.
    """
    from ..judge.trust.human_labels import import_labels
    from ..judge.trust.label_sources import each_label

    runs_by_id: dict[str, Run] = {}
    if runs:
        for run in each_run([runs]):
            if not isinstance(run, InputError):
                runs_by_id[run.id] = run
    valid: list[Labels] = []
    left_out = 0
    for path, labels in each_label(paths, strict=True):
        if isinstance(labels, InputError):
            left_out += 1
            console.error(labels)
            continue
        problems = _problems(labels, runs_by_id)
        if not problems:
            valid.append(labels)
            continue
        left_out += 1
        for problem in problems:
            console.error(f"{path}: {problem}")
    if not valid:
        if not left_out:
            raise InputError("no label files found", "a label file is a .json", ", ".join(paths))
        return 1 if any(Path(path).exists() for path in paths) else 2
    added = 0
    with _open_store(obj, store) as opened:
        for labels in valid:
            added += import_labels(opened, labels)
    console.note(
        f"{console.counted(added, 'label')} added, {len(valid) - added} already stored,"
        f" {left_out} left out",
        obj["quiet"],
    )
    return 1 if left_out else 0


def _problems(labels: Labels, runs_by_id: dict[str, Run]) -> list[str]:
    """What is wrong with labels, held against their run if it is there."""
    from ..judge.trust.human_labels import problems
    from ..rubrics.load import rubric_for

    run = runs_by_id.get(labels.run)
    rubric = rubric_for(run.track, run.task) if run else None
    return problems(labels, run, rubric)


@command.command("export")
@option(
    "--out",
    heading="Output",
    required=True,
    metavar="DIR",
    type=LocalPath(),
    help="Write to DIR/<annotator>/<run>.json.",
)
@STORE
@option("--annotator", metavar="NAME", help="Write only this person's labels.")
@click.pass_obj
def export(obj: dict[str, Any], out: str, store: str | None, annotator: str | None) -> int:
    """Write the labels in force, one file for each run and annotator."""
    from ..judge.trust.human_labels import export_labels, stored_labels

    with _open_store(obj, store, create=False) as opened:
        files = export_labels(stored_labels(opened, annotator=annotator), Path(out))
    console.note(f"{len(files)} files written below {out}", obj["quiet"])
    return 0


@command.command("harness")
@click.argument("paths", nargs=-1, required=True, type=LocalPath(), metavar="RUNS...")
@option(
    "--out",
    heading="Output",
    required=True,
    metavar="DIR",
    type=LocalPath(),
    help="Write to DIR/harness/<run>.json.",
)
@click.pass_obj
def harness(obj: dict[str, Any], paths: tuple[str, ...], out: str) -> int:
    """Write the verdicts of the benchmark's own judge, from the runs' reports, as labels of the
    annotator `harness`."""
    from ..judge.trust.harness_verdicts import harness_labels
    from ..judge.trust.human_labels import export_labels

    labels = []
    unreadable = 0
    for run in each_run(paths):
        try:
            if isinstance(run, InputError):
                raise run
            run_labels, problems = harness_labels(run)
        except InputError as error:
            unreadable += 1
            console.error(error)
            continue
        for line in problems:
            console.note(f"{run.id}: {line}", obj["quiet"])
        if run_labels is not None:
            labels.append(run_labels)
    files = export_labels(labels, Path(out))
    console.note(f"{len(files)} files written below {out}", obj["quiet"])
    if not files:
        return 2 if unreadable else 1
    return 1 if unreadable else 0


@command.command("next", epilog=example_lines("ambjudge label next cards.jsonl --out labels/"))
@click.argument("cards", metavar="SCORECARDS", type=LocalPath())
@option(
    "-n",
    "--budget",
    type=click.IntRange(1),
    metavar="N",
    default=20,
    show_default=True,
    help="Choose at most this many runs.",
)
@option(
    "--seed",
    type=int,
    metavar="N",
    default=0,
    show_default=True,
    help="The seed of the random draw within strata.",
)
@option(
    "--annotator",
    metavar="NAME",
    default="a1",
    show_default=True,
    help="With --out: the person who will label.",
)
@option(
    "--out",
    heading="Output",
    metavar="DIR",
    type=LocalPath(),
    help="Write label files to be filled in: DIR/<annotator>/<run>.json.",
)
@json_option()
@click.pass_obj
def next_(
    obj: dict[str, Any],
    cards: str,
    budget: int,
    seed: int,
    out: str | None,
    annotator: str,
    as_json: bool,
) -> int:
    """Choose which runs to label next: a sample stratified by fired codes, with the probability
    of each run to be sampled.

    Label files record how their run was sampled; numbers computed from labels are weighted by it.
    Runs that the annotator has in DIR are left out.
    """
    from ..analysis.statistics.label_sampling import drawn_labels, label_plan
    from ..analysis.tables.cohorts import cohort
    from ..judge.trust.human_labels import export_labels
    from .cohort_input import stored_cards

    labelled = _labelled_runs(out, annotator)
    runs = cohort(stored_cards(obj, [cards])).runs
    plan = label_plan(runs, budget, already=sorted(labelled), seed=seed)
    if out:
        files = export_labels(drawn_labels(plan, annotator), Path(out), keep_existing=True)
        console.note(f"{len(files)} files to fill in below {out}", obj["quiet"])
    if as_json:
        console.raw(json.dumps(plan.to_dicts(), ensure_ascii=False, default=str))
        return 0
    names = list(plan.columns)
    left_out_first = ("tier", "task", "agent", "stratum_size")
    console.table(
        names,
        [[_cell(value) for value in row] for row in plan.iter_rows()],
        flexible=1,
        spare=[names.index(name) for name in left_out_first if name in names],
    )
    return 0


def _labelled_runs(folder: str | None, annotator: str) -> set[str]:
    """The runs that an annotator has labelled in a folder."""
    from ..judge.trust.label_sources import each_label

    if not folder or not Path(folder).is_dir():
        return set()
    return {
        labels.run
        for _, labels in each_label(folder, strict=True)
        if not isinstance(labels, InputError) and labels.annotator == annotator
    }


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _open_store(obj: dict[str, Any], store: str | None, create: bool = True) -> Store:
    from ..config import load
    from ..judge.store import open_store

    place = store_place(load(obj["config"]), [Path.cwd()], store)
    if place is None:
        raise StoreError("labels need a store", "leave out --store none")
    opened = open_store(place, create=create)
    console.note(f"labels in {opened.location}", obj["quiet"])
    return opened
