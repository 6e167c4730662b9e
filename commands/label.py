"""ambjudge label: human labels in and out, and which to make next."""

from __future__ import annotations

import json
from typing import Any

import click

from .. import console
from .options import json_option, store_place


@click.group(
    "label",
    epilog="\b\nExample:\n  ambjudge label import labels/gold --store runs/.ambjudge/ambjudge.db",
)
def command() -> None:
    """Human labels (one JSON file a run and annotator): into the store, out of it, and what to
    label next."""


STORE = click.option(
    "--store",
    metavar="FILE|URL",
    help="Verdict store.  [default: the nearest .ambjudge/ambjudge.db]",
)


@command.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="FILE|DIR...")
@STORE
@click.option(
    "--runs",
    metavar="DIR",
    type=click.Path(),
    help="Hold the labels against the runs below DIR (turns, criteria).",
)
@click.pass_obj
def import_(
    obj: dict[str, Any], paths: tuple[str, ...], store: str | None, runs: str | None
) -> int:
    """Read label files, check them, keep them in the store. Files that break the format are named
    and left out."""
    from pathlib import Path

    from ..errors import InputError
    from ..judge.trust.human_labels import import_labels, problems
    from ..judge.trust.label_sources import each_label
    from ..rubrics.load import rubric_for
    from .runs import each_run

    known = (
        {run.id: run for run in each_run([runs]) if not isinstance(run, InputError)} if runs else {}
    )
    kept = same = bad = 0
    good = []
    for path, labels in each_label(paths, strict=True):
        if isinstance(labels, InputError):
            bad += 1
            console.error(labels)
            continue
        run = known.get(labels.run)
        found = problems(labels, run, rubric_for(run.track, run.task) if run else None)
        for line in found:
            console.error(f"{path}: {line}")
        if found:
            bad += 1
        else:
            good.append(labels)
    if not good:
        if not bad:
            raise InputError("no label files found", "a label file is a .json", ", ".join(paths))
        return 1 if any(Path(name).exists() for name in paths) else 2
    with _open(obj, store) as opened:
        for labels in good:
            if import_labels(opened, labels):
                kept += 1
            else:
                same += 1
    console.note(f"{kept} kept, {same} were there already, {bad} left out", obj["quiet"])
    return 1 if bad else 0


@command.command("export")
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(),
    help="Where they go: DIR/<annotator>/<run>.json.",
)
@STORE
@click.option("--annotator", metavar="NAME", help="Only this annotator's.")
@click.pass_obj
def export(obj: dict[str, Any], out: str, store: str | None, annotator: str | None) -> int:
    """Write the labels in force, one file a run and annotator."""
    from pathlib import Path

    from ..judge.trust.human_labels import export_labels, stored_labels

    with _open(obj, store, create=False) as opened:
        written = export_labels(stored_labels(opened, annotator=annotator), Path(out))
    console.note(f"{len(written)} files written below {out}", obj["quiet"])
    return 0


@command.command("harness")
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="RUNS...")
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(),
    help="Where they go: DIR/harness/<run>.json.",
)
@click.pass_obj
def harness(obj: dict[str, Any], paths: tuple[str, ...], out: str) -> int:
    """Write the verdicts that the benchmark's own judge left in the reports as labels of the
    annotator `harness`."""
    from pathlib import Path

    from ..console import note
    from ..errors import InputError
    from ..judge.trust.harness_verdicts import harness_labels
    from ..judge.trust.human_labels import export_labels
    from .runs import each_run

    found = []
    unread = 0
    for run in each_run(list(paths)):
        try:
            if isinstance(run, InputError):
                raise run
            labels, lost = harness_labels(run)
        except InputError as error:
            unread += 1
            note(f"ambjudge: error: {error}")
            continue
        for line in lost:
            note(f"{run.id}: {line}", obj["quiet"])
        if labels is not None:
            found.append(labels)
    written = export_labels(found, Path(out))
    note(f"{len(written)} files written below {out}", obj["quiet"])
    return (1 if written else 2) if unread else 0 if written else 1


@command.command("next")
@click.argument("cards", metavar="SCORECARDS", type=click.Path())
@click.option(
    "-n",
    "--budget",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="How many runs can be labelled.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the random draw within strata."
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(),
    help="Write label files to be filled in: DIR/<annotator>/<run>.json.",
)
@click.option(
    "--annotator",
    metavar="NAME",
    default="a1",
    show_default=True,
    help="Who will label, with --out.",
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
    """Which runs to label next: a sample stratified by fired codes, with the chance that each had
    to be drawn.

    Label files say how their run was drawn, and what is computed from labels weighs by it. Runs of
    the annotator that stand in DIR already are left out.
    """
    from pathlib import Path

    from ..analysis.statistics.label_sampling import drawn_labels, label_plan
    from ..analysis.tables.cohorts import cohort
    from ..errors import InputError
    from ..judge.trust.human_labels import export_labels
    from ..judge.trust.label_sources import each_label
    from .cohort_input import stored_cards

    there = each_label(out, strict=True) if out and Path(out).is_dir() else ()
    known = {
        one.run
        for _, one in there
        if not isinstance(one, InputError) and one.annotator == annotator
    }
    plan = label_plan(
        cohort(stored_cards(obj, [cards])).runs, budget, already=sorted(known), seed=seed
    )
    if out:
        written = export_labels(drawn_labels(plan, annotator), Path(out), keep=True)
        console.note(f"{len(written)} files to fill in below {out}", obj["quiet"])
    rows = plan.to_dicts()
    if as_json:
        console.raw(json.dumps(rows, ensure_ascii=False, default=str))
        return 0
    names = list(plan.columns)
    console.table(
        names,
        [
            [
                (
                    "–"
                    if row[n] is None
                    else f"{row[n]:.4g}"
                    if isinstance(row[n], float)
                    else str(row[n])
                )
                for n in names
            ]
            for row in rows
        ],
        flexible=1,
        spare=[
            names.index(name) for name in ("tier", "task", "agent", "stratum_size") if name in names
        ],
    )
    return 0


def _open(obj: dict[str, Any], store: str | None, create: bool = True) -> Any:
    from pathlib import Path

    from ..config import load
    from ..errors import StoreError
    from ..judge.store import open_store

    where = store_place(load(obj["config"]), [Path.cwd()], store)
    if where is None:
        raise StoreError("labels are kept in a store", "leave out --store none")
    opened = open_store(where, create=create)
    console.note(f"labels in {opened.where}", obj["quiet"])
    return opened
