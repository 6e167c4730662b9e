"""The work of `ambjudge selftest --labels`: a judge's figures on labelled runs, as data and as
tables."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .. import console
from ..config import load
from ..errors import ConfigError, InputError
from ..trajectories.stages import stage_title

if TYPE_CHECKING:
    from ..judge.trust.against_labels import LabelReport
    from ..judge.trust.comparison import Figures
    from ..judge.trust.measures import Calibration, Figure
    from ..trajectories.models import Run

_Pick = Callable[["Figures"], "Figure | None"]


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when a run could not be read, or no labelled one was among them; 2 when
    none could be read."""

    from ..judge.base import Judge
    from ..judge.judges.limits import GuardedJudge, Pacer
    from ..judge.store.reuse import StoredJudge
    from ..judge.trust.against_labels import (
        Selection,
        against_labels,
        estimate_calls,
        labels_by_run,
    )
    from ..judge.trust.splits import SPLITS
    from .options import check_can_label_stages, judge_of, open_session_store, score_options
    from .render import bill

    if not paths:
        raise ConfigError(
            "--labels says nothing about the built-in runs",
            "name the labelled runs: selftest RUNS --labels DIR",
        )
    quiet, settings = obj["quiet"], load(obj["config"])
    judge, options = judge_of(settings, flags), score_options(settings, flags)
    check_can_label_stages(judge, options.questions)
    share = 0.5 if flags["test_share"] is None else flags["test_share"]
    splits = tuple(split for split in SPLITS if flags["split"] in (None, "both", split))
    known = labels_by_run(flags["labels"], flags["annotator"])
    chosen = Selection(known, options.scope(), splits, share)
    runs = _Runs(paths)
    with ExitStack() as stack:
        store = open_session_store(paths, settings, flags, judge, stack, quiet)
        asked: Judge = GuardedJudge(judge, Pacer(options.concurrency), options.budget())
        if store is not None:
            asked = StoredJudge(asked, store)
        if flags["dry_run"]:
            count, calls, most = estimate_calls(asked, runs, chosen)
            if flags["as_json"]:
                console.raw(json.dumps({"runs": count, "calls": calls, "most": asdict(most)}))
            else:
                cost = "cost unknown" if most.cost_usd is None else f"at most ${most.cost_usd:.4f}"
                console.say(f"{count} labelled runs, {calls} calls, {cost}")
            return runs.exit_code(count)
        bar = console.Progress("measured", None, quiet)
        stack.callback(bar.clear)
        report = asyncio.run(
            against_labels(
                asked,
                runs,
                chosen,
                concurrency=options.concurrency,
                on_progress=lambda p: bar.update(p.done),
            )
        )
        bar.clear()
    if flags["as_json"]:
        console.raw(json.dumps(_as_dict(report), ensure_ascii=False))
    else:
        _show(report)
        if report.all_runs.usage.calls:
            console.note(bill(report.all_runs.usage), quiet)
    return runs.exit_code(report.all_runs.runs)


class _Runs:
    """The runs at the paths; what cannot be read is noted and counted."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self.paths, self.read, self.lost = paths, 0, 0

    def __iter__(self) -> Iterator[Run]:
        from .runs import each_run

        for item in each_run(self.paths):
            if isinstance(item, InputError):
                self.lost += 1
                console.error(item)
            else:
                self.read += 1
                yield item

    def exit_code(self, measured: int) -> int:
        if not self.read:
            return 2
        if not measured:
            console.note(
                "ambjudge: none of these runs has a label of this split (labels name runs by"
                " their id)"
            )
        return 1 if self.lost or not measured else 0


def _as_dict(report: LabelReport) -> dict[str, Any]:
    """`ambjudge.selftest/1`, with `labels` in place of the rows about robustness. `gain` is over
    all runs measured."""
    from ..judge.trust.measures import SEED

    whole = report.all_runs
    gain = None
    if whole.criteria is not None:
        ours, rules = whole.criteria.overall, whole.criteria.rules
        gain = {
            "judge": report.judge,
            "pairs": ours.equal.n,
            "equal": _count(ours.equal),
            "unscored": ours.unscored,
            "heuristic_equal": _count(rules.equal),
            "gain": whole.criteria.over_rules.value,
            "interval": whole.criteria.over_rules.interval,
        }
    return {
        "schema": "ambjudge.selftest/1",
        "judge": report.judge,
        "rows": [],
        "heuristic": [],
        "usage": asdict(whole.usage),
        "gain": gain,
        "labels": {
            "test_share": report.test_share,
            "seed": SEED,
            "splits": {split: asdict(figures) for split, figures in report.columns.items()},
            "all": asdict(whole),
        },
    }


def _count(figure: Figure) -> int:
    return round((figure.value or 0.0) * figure.n)


def _show(report: LabelReport) -> None:
    columns = report.columns
    heads = [f"{split}, {found.runs} runs" for split, found in columns.items()]
    console.say(
        f"judge {report.judge} against human labels; 95 % intervals, n is what a figure was"
        " counted on"
    )
    _table(
        "Figure", heads, [(name, [pick(c) for c in columns.values()]) for name, pick in _FIGURES]
    )
    groups = sorted({name for c in columns.values() if c.criteria for name in c.criteria.by_stage})
    if len(groups) > 1:
        console.say()
        rows = [
            (f"{stage_title(group)}, {part}", [_stage(c, group, part) for c in columns.values()])
            for group in groups
            for part in ("equal", "kappa")
        ]
        _table("Criteria by stage", heads, rows)
    ids = sorted({id for c in columns.values() if c.criteria for id in c.criteria.by_criterion})
    if ids:
        console.say()
        _table(
            "Criterion, share equal",
            heads,
            [(id, [_criterion(c, id, "equal") for c in columns.values()]) for id in ids],
        )
        console.say()
        _table(
            "Criterion, kappa",
            heads,
            [(id, [_criterion(c, id, "kappa") for c in columns.values()]) for id in ids],
        )
    for by, title in (
        ("reading", "reading alone"),
        ("facts", "facts and findings"),
        ("both", "both"),
    ):
        found = [c.codes[by] if c.codes and by in c.codes else None for c in columns.values()]  # type: ignore[index]
        if any(found):
            console.say()
            rows = [
                (f"{code} {name}", [getattr(f.by_code[code], part) if f else None for f in found])
                for code in next(f for f in found if f).by_code
                for part, name in (("precision", "precision"), ("recall", "recall"), ("f1", "F1"))
            ]
            _table(f"Code by {title}", heads, rows)
    for split, figures in columns.items():
        if figures.reading is not None:
            _bins(f"Confidence in a code, {split}", figures.reading.calibration)
        if figures.criteria is not None and figures.criteria.calibration is not None:
            _bins(f"Probability of a value, {split}", figures.criteria.calibration)
    console.say()
    for split, figures in columns.items():
        console.say(f"{split}: {', '.join(_left_over(figures))}")


def _table(title: str, heads: list[str], rows: list[tuple[str, list[Figure | None]]]) -> None:
    """Figures that no column has are left out."""
    lines = []
    for name, found in rows:
        known = [figure for figure in found if figure is not None and figure.n]
        if known:
            methods = sorted({figure.method for figure in known if figure.interval})
            lines.append([name, *map(_cell, found), ", ".join(methods)])
    console.table(
        [title, *heads, "Interval"],
        lines,
        styles=[[None] * (1 + len(heads)) + ["dim"]] * len(lines),
    )


def _cell(figure: Figure | None) -> str:
    if figure is None or not figure.n:
        return ""
    value = "–" if figure.value is None else f"{figure.value:.3f}"
    span = (
        "" if figure.interval is None else f" [{figure.interval[0]:.2f}, {figure.interval[1]:.2f}]"
    )
    return f"{value}{span} n {figure.n}"


def _bins(title: str, found: Calibration) -> None:
    if not found.n:
        return
    console.say()
    lines = [[f"{b.low:.1f}–{b.high:.1f}", f"{b.stated:.2f}", _cell(b.right)] for b in found.bins]
    console.table([title, "Stated", "Right (wilson)"], lines)
    console.say(f"expected calibration error {found.ece:.3f}")


def _left_over(found: Figures) -> list[str]:
    usage = found.usage
    bits = [
        f"{usage.calls} calls",
        "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}",
    ]
    if found.criteria is not None:
        bits.append(f"{found.criteria.overall.unscored} criteria unscored")
    if found.reading is not None:
        bits += [
            f"{found.reading.unproven} readings unproven",
            f"{found.reading.cannot_tell} codes that it could not tell",
            f"{found.reading.unread} codes unread",
        ]
    return bits


def _criterion(found: Figures, id: str, part: str) -> Figure | None:
    item = found.criteria.by_criterion.get(id) if found.criteria else None
    return getattr(item, part) if item else None


def _stage(found: Figures, group: str, part: str) -> Figure | None:
    item = found.criteria.by_stage.get(group) if found.criteria else None
    return getattr(item, part) if item else None


def _of_criteria(path: str) -> _Pick:
    """A figure of the criteria by its path (`overall.equal`)."""

    def pick(found: Figures) -> Figure | None:
        here: Any = found.criteria
        for name in path.split("."):
            here = here.get(name) if isinstance(here, dict) else getattr(here, name, None)
        return here  # type: ignore[no-any-return]

    return pick


def _of_codes(by: str, part: str) -> _Pick:
    def pick(found: Figures) -> Figure | None:
        origin = (found.codes or {}).get(by)  # type: ignore[call-overload]
        return (
            None
            if origin is None
            else origin.clean
            if part == "clean"
            else getattr(origin.micro, part)
        )

    return pick


def _of_stages(by: str, part: str) -> _Pick:
    return lambda found: getattr(found.stages[by], part) if found.stages else None  # type: ignore[index]


_FIGURES: list[tuple[str, _Pick]] = [
    ("criteria, equal to the label", _of_criteria("overall.equal")),
    ("criteria, kappa", _of_criteria("overall.kappa")),
    ("rules, scored and presumed, equal to the label", _of_criteria("rules.equal")),
    ("rules, scored, equal to the label", _of_criteria("rules_scored")),
    ("rules, scored and presumed, kappa", _of_criteria("rules.kappa")),
    ("always met, equal to the label", _of_criteria("always_met")),
    ("gain over the rules", _of_criteria("over_rules")),
    ("gain over always met", _of_criteria("over_always_met")),
    *(
        (f"codes by {title}, {name}", _of_codes(by, part))
        for by, title in (("reading", "reading"), ("facts", "facts"), ("both", "both"))
        for part, name in (
            ("f1", "micro F1"),
            ("precision", "precision"),
            ("recall", "recall"),
            ("clean", "clean runs with one"),
        )
    ),
    (
        "quotes of present codes found",
        lambda found: found.reading.quotes if found.reading else None,
    ),
    (
        "confidence in codes, Brier score",
        lambda found: found.reading.calibration.brier if found.reading else None,
    ),
    ("probability of values, Brier score", _of_criteria("calibration.brier")),
    *(
        (f"stages by {title}, {name}", _of_stages(by, part))
        for by, title in (("reading", "the judge"), ("rules", "rules"))
        for part, name in (("accuracy", "accuracy"), ("macro_f1", "macro F1"))
    ),
]
