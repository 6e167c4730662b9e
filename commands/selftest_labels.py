"""The work of `ambjudge selftest --labels`: how often a judge agrees with human labels of runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import console
from ..config import load
from ..errors import ConfigError, InputError
from .label_report import show_label_report
from .runs import each_run

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.trust.against_labels import LabelReport, Selection
    from ..judge.trust.measures import Figure
    from ..trajectories.models import Run

_TEST_SHARE = 0.5


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 if a run could not be read or none of the runs is labelled; 2 if no run
    could be read."""
    from ..judge.judges.limits import GuardedJudge, Pacer
    from ..judge.judges.panel import with_voters
    from ..judge.questions.items import check_can_label_stages
    from ..judge.store.reuse import StoredJudge
    from ..judge.trust.against_labels import Selection, against_labels, labels_by_run
    from ..judge.trust.splits import SPLITS
    from .sessions import judge_of, open_session_store, score_options

    if not paths:
        raise ConfigError(
            "--labels does not concern the built-in runs",
            "name the labelled runs: selftest RUNS --labels DIR",
        )
    quiet, settings = obj["quiet"], load(obj["config"])
    judge, options = judge_of(settings, flags), score_options(settings, flags)
    check_can_label_stages(judge, options.questions)
    selection = Selection(
        labels_by_run(flags["labels"], flags["annotator"]),
        options.scope(),
        tuple(split for split in SPLITS if flags["split"] in (None, "both", split)),
        _TEST_SHARE if flags["test_share"] is None else flags["test_share"],
    )
    runs = _Runs(paths)
    with ExitStack() as stack:
        store = open_session_store(paths, settings, flags["store"], stack, judge=judge, quiet=quiet)
        pacer, budget = Pacer(options.concurrency), options.budget()
        reader = with_voters(judge, lambda voting: GuardedJudge(voting, pacer, budget))
        if store is not None:
            reader = with_voters(reader, partial(StoredJudge, store=store))
        if flags["dry_run"]:
            return runs.exit_code(_show_forecast(reader, runs, selection, flags["as_json"]))
        progress = console.Progress("measured", None, quiet)
        stack.callback(progress.clear)
        report = asyncio.run(
            against_labels(
                reader,
                runs,
                selection,
                concurrency=options.concurrency,
                on_progress=lambda state: progress.update(state.done),
            )
        )
        progress.clear()
    _show(report, flags["as_json"], verbose=obj["verbose"] > 0, quiet=quiet)
    return runs.exit_code(report.all_runs.runs)


class _Runs:
    """The runs at the paths; those that cannot be read are named and counted."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self.paths = paths
        self.read = 0
        self.unreadable = 0

    def __iter__(self) -> Iterator[Run]:
        for run in each_run(self.paths):
            if isinstance(run, InputError):
                self.unreadable += 1
                console.error(run)
            else:
                self.read += 1
                yield run

    def exit_code(self, labelled: int) -> int:
        """The exit code after all runs were read, of which some are labelled."""
        if not self.read:
            return 2
        if not labelled:
            console.note(
                "ambjudge: none of these runs has a label of this split (labels name runs by"
                " their id)"
            )
        return 1 if self.unreadable or not labelled else 0


def _show_forecast(judge: Judge, runs: _Runs, selection: Selection, as_json: bool) -> int:
    """Print what the calls would cost; the number of labelled runs."""
    from ..judge.trust.against_labels import estimate_calls

    count, calls, most = estimate_calls(judge, runs, selection)
    if as_json:
        console.raw(json.dumps({"runs": count, "calls": calls, "most": asdict(most)}))
        return count
    cost = "cost unknown" if most.cost_usd is None else f"at most ${most.cost_usd:.4f}"
    console.say(f"{count} labelled runs, {calls} calls, {cost}")
    return count


def _show(report: LabelReport, as_json: bool, *, verbose: bool, quiet: bool) -> None:
    from .render import bill

    if as_json:
        console.raw(json.dumps(_to_json(report), ensure_ascii=False))
        return
    show_label_report(report, verbose=verbose)
    if report.all_runs.usage.calls:
        console.note(bill(report.all_runs.usage), quiet)


def _to_json(report: LabelReport) -> dict[str, Any]:
    """`ambjudge.selftest/1`, with `labels` in place of the rows about robustness.

    `gain` is over all runs measured.
    """
    from ..judge.trust.comparison import compare_with_rules
    from ..judge.trust.measures import SEED

    figures = report.all_runs
    gain = None
    if figures.criteria is not None:
        judge, rules = figures.criteria.overall, figures.criteria.rules
        gain = {
            "judge": report.judge,
            "pairs": judge.equal.n,
            "equal": _count(judge.equal),
            "unscored": judge.unscored,
            "heuristic_equal": _count(rules.equal),
            "gain": figures.criteria.over_rules.value,
            "interval": figures.criteria.over_rules.interval,
            "than_rules": compare_with_rules(figures.criteria, figures.runs),
        }
    return {
        "schema": "ambjudge.selftest/1",
        "judge": report.judge,
        "rows": [],
        "heuristic": [],
        "usage": asdict(figures.usage),
        "gain": gain,
        "labels": {
            "test_share": report.test_share,
            "seed": SEED,
            "splits": {split: asdict(column) for split, column in report.columns.items()},
            "all": asdict(figures),
        },
    }


def _count(share: Figure) -> int:
    """The number of cases behind a share."""
    return round((share.value or 0.0) * share.n)
