"""ambjudge label: human labels in and out, and which runs to label next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError, StoreError
from .card_rubrics import CardRubrics
from .grouped_help import CommandGroup, example_lines, option
from .options import json_option
from .path_types import LocalPath
from .runs import each_run
from .sessions import score_options, store_place

if TYPE_CHECKING:
    from ..judge.store import Store
    from ..judge.trust.human_labels import Labels
    from ..judge.trust.label_sources import LabelEntry
    from ..trajectories.models import Run


@click.group(
    "label",
    cls=CommandGroup,
    epilog=example_lines("ambjudge label import labels/gold --store runs/.ambjudge/ambjudge.db"),
)
def command() -> None:
    """Choose which runs to label next, write forms for them, and import and export human labels."""


STORE = option(
    "--store",
    metavar="FILE|URL",
    help="The verdict store.  [default: the nearest .ambjudge/ambjudge.db]",
)


@command.command("import", epilog=example_lines("ambjudge label import todo/ --runs runs/"))
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
    """Read label files (JSON, YAML, JSON Lines) and keep their labels in the store.

    Takes what `agreement` and `analyze` take. What is filled in is stored, and what is not is
    named; a file that breaks the format is named and left out.
    """
    from ..judge.trust.human_labels import import_labels

    batch = _read_batch(paths, _RunChecker(obj, runs))
    _note_missing(batch, obj["quiet"])
    if batch.left_out and not batch.valid:
        return 1 if any(Path(path).exists() for path in paths) else 2
    added = 0
    if batch.valid:
        with _open_store(obj, store) as opened:
            for labels in batch.valid:
                added += import_labels(opened, labels)
    console.note(
        f"{console.counted(added, 'label')} added, {len(batch.valid) - added} already stored,"
        f" {batch.left_out} left out",
        obj["quiet"],
    )
    return 1 if batch.left_out else 0


@dataclass
class _Batch:
    """Labels to be stored, and what is to be said of the others."""

    valid: list[Labels] = field(default_factory=list)
    left_out: int = 0
    gaps: dict[str, list[str]] = field(default_factory=dict)
    """What is not labelled, in words ("": anything) -> the files that lack it."""
    other_fields: dict[str, list[str]] = field(default_factory=dict)
    """Fields that were not read -> the files that have them."""
    unchecked: int = 0
    """Labels of runs that are not below the folder of --runs."""


def _read_batch(paths: Sequence[str], checker: _RunChecker) -> _Batch:
    """Read and check all labels; those that are broken are named. InputError without any."""
    from ..judge.trust.label_sources import each_label

    batch = _Batch()
    n_entries = 0
    for entry in each_label(paths):
        n_entries += 1
        try:
            if isinstance(entry, InputError):
                raise entry
            gaps = checker.gaps(entry)
        except InputError as error:
            batch.left_out += 1
            console.error(error)
            continue
        file = str(entry.location)
        if entry.other_fields:
            batch.other_fields.setdefault(", ".join(entry.other_fields), []).append(file)
        if not entry.labels.has_labels:
            batch.gaps.setdefault("", []).append(file)
            continue
        batch.valid.append(entry.labels)
        if gaps:
            batch.gaps.setdefault(", ".join(gaps), []).append(file)
    if not n_entries:
        raise InputError(
            "no label files found", "a label file is a .json, .yaml or .jsonl", ", ".join(paths)
        )
    batch.unchecked = checker.unchecked
    return batch


class _RunChecker:
    """Holds labels against the runs below a folder, if one is named."""

    def __init__(self, obj: dict[str, Any], folder: str | None) -> None:
        self.unchecked = 0
        """Labels of runs that are not below the folder."""
        self._folder = folder
        self._runs: dict[str, Run] = {}
        if folder is None:
            return
        from ..config import load

        self._scope = score_options(load(obj["config"]), {}).scope()
        for run in each_run([folder]):
            if not isinstance(run, InputError):
                self._runs[run.id] = self._scope.apply(run)

    def gaps(self, entry: LabelEntry) -> list[str]:
        """What is not labelled, as far as the entry or its run tells; InputError for labels that
        contradict their run or its rubric."""
        from ..judge.trust.human_labels import problems, unlabelled
        from ..judge.trust.label_sources import unfilled

        run = self._runs.get(entry.labels.run)
        if run is None:
            self.unchecked += self._folder is not None
            return unfilled(entry)
        rubric = self._scope.rubric_of(run.track, run.task)
        lines = problems(entry.labels, run, rubric)
        if lines:
            more = f"; {len(lines) - 1} more" if len(lines) > 1 else ""
            raise InputError(
                lines[0] + more, f"see: ambjudge rubric show {rubric.id}", entry.location
            )
        return unlabelled(entry.labels, run, rubric)


_NAMED_FILES = 3
"""Files that a note names; the others are counted."""


def _note_missing(batch: _Batch, quiet: bool) -> None:
    """Say what is not labelled or was not read, in a line for all files that have it in common."""
    for gaps, files in batch.gaps.items():
        text = f"not labelled: {gaps}" if gaps else "nothing filled in"
        console.note(f"{text} ({_named(files)})", quiet)
    for fields, files in batch.other_fields.items():
        console.note(f"fields that are no labels were not read: {fields} ({_named(files)})", quiet)
    if batch.unchecked:
        labels = console.counted(batch.unchecked, "label")
        console.note(f"{labels} not checked: the run is not below the folder of --runs", quiet)


def _named(files: Sequence[str]) -> str:
    """The first files, and how many more."""
    more = f" and {len(files) - _NAMED_FILES} more" if len(files) > _NAMED_FILES else ""
    return ", ".join(files[:_NAMED_FILES]) + more


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


@command.command(
    "next",
    epilog=example_lines(
        "ambjudge label next cards.jsonl --out todo/", "ambjudge label next runs/ --out todo.yaml"
    ),
)
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
    metavar="DIR|FILE",
    type=LocalPath(),
    help="Write forms to fill in with an editor: DIR/<annotator>/<run>.yaml, or one .yaml file.",
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

    A form has the questions, their levels and where to look; `label import` takes it back. It
    records how its run was sampled; numbers computed from labels are weighted by that. Runs that
    the annotator has in DIR or FILE are left out.
    """
    from ..analysis.report.results import read
    from ..analysis.statistics.label_sampling import drawn_labels, label_plan
    from ..judge.trust.label_form import drawn_runs, write_forms
    from .cohort_input import read_cards

    already = drawn_runs(Path(out), annotator) if out else set()
    rubrics = CardRubrics(obj, cards)
    cohort = read_cards(obj, [cards], {}, read, on_item=rubrics.note)
    plan = label_plan(cohort.runs, budget, already=sorted(already), seed=seed)
    if out:
        forms = rubrics.forms(drawn_labels(plan, annotator), cohort)
        files = write_forms(forms, Path(out)) if forms else []
        _note_forms(len(forms), files, out, obj["quiet"])
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


def _note_forms(n_forms: int, files: Sequence[Path], out: str, quiet: bool) -> None:
    if not files:
        console.note("no form written: every run is drawn already", quiet)
        return
    place = "in" if files == [Path(out)] else "below"
    forms = console.counted(n_forms, "form")
    console.note(f"wrote {forms} {place} {out}; then: ambjudge label import {out}", quiet)


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
