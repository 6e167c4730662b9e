"""ambjudge selftest: how far can a judge be trusted?"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import AmbjudgeError, ConfigError
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import (
    DRY_RUN,
    JUDGE,
    MAX_COST,
    OPTIONAL_PATHS,
    RUBRIC,
    STAGES_FROM,
    STORE,
    json_option,
)
from .sessions import judge_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..judge.trust.selftest import Report, Row

_ONLY_WITH_LABELS = ("annotator", "split", "test_share", "stages", "max_cost", "store")


@grouped_command(
    "selftest",
    "ambjudge selftest",
    "ambjudge selftest --judge openai/gpt-5.4-mini",
    "ambjudge selftest runs/ --labels labels/ --judge openai/gpt-5.4-mini --split dev",
)
@OPTIONAL_PATHS
@option(
    "--labels",
    metavar="DIR|STORE",
    help="Compare the judge with these human labels of the runs.",
)
@option(
    "--annotator",
    metavar="NAME",
    help="With --labels: use this person's labels.  [gold, else the first by name]",
)
@option(
    "--split",
    type=click.Choice(["dev", "test", "both"]),
    help="With --labels: use these runs; tune prompts on dev only.  [default: both]",
)
@option(
    "--test-share",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="With --labels: the share of runs in the test split.  [default: 0.5]",
)
@JUDGE
@STAGES_FROM
@MAX_COST
@RUBRIC
@STORE
@DRY_RUN
@json_option()
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Measure how robust a judge is and, with --labels, how often it agrees with people.

    Evidence is removed (verdicts must fall), text demands full marks and no codes (they must not
    rise), the form changes (they must stay). The rules judge is the null model beside it. Without
    PATH, two built-in runs are used. Exit 1 if a verdict breaks an expectation.

    With --labels, the judge is asked about the labelled runs among PATH: is it better than the
    rules judge? Share equal to the labels, kappa, codes and stages, on a dev and a test split; -v
    adds each criterion and code, and calibration.
    """
    if flags["labels"] is not None:
        from .selftest_labels import run

        return run(obj, paths, flags)
    for name in _ONLY_WITH_LABELS:
        if flags[name] is not None:
            raise ConfigError(
                f"--{name.replace('_', '-')} is for the comparison with labels", "add --labels"
            )
    return _test_robustness(obj, paths, flags)


def _test_robustness(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    from ..config import load
    from ..judge.base import extra_questions
    from ..judge.trust.selftest import count_calls, make_cases, selftest
    from ..rubrics.load import load_rubrics
    from ..trajectories.turns.segment import segment
    from .runs import each_run

    settings = load(obj["config"])
    runs = []
    for run in each_run(paths, settings.get("track"), settings.get("tier")):
        if isinstance(run, AmbjudgeError):
            raise run
        runs.append((run, segment(run)))
    rubrics = load_rubrics(flags["rubric"])
    judge = judge_of(settings, flags)
    planned = list(make_cases(runs or None, rubrics, extra_questions(judge)))
    all_calls = count_calls(planned)
    code_calls = count_calls([case for case in planned if case.base.question == "diagnosis"])
    forecast = f"{all_calls - code_calls} calls about stages"
    if code_calls:
        forecast += f", {code_calls} about error codes"
    if flags["dry_run"]:
        if flags["as_json"]:
            console.raw(json.dumps({"calls": all_calls}))
        else:
            console.say(forecast)
        return 0
    console.note(forecast, obj["quiet"])
    concurrency = settings.get("concurrency") or 4
    report = asyncio.run(selftest(judge, runs or None, rubrics=rubrics, concurrency=concurrency))
    if flags["as_json"]:
        console.raw(json.dumps(_to_json(report), ensure_ascii=False))
    else:
        _show(report)
    return 1 if report.broken else 0


def _to_json(report: Report) -> dict[str, Any]:
    """`ambjudge.selftest/1`."""
    return {
        "schema": "ambjudge.selftest/1",
        "judge": report.judge,
        "rows": _rows_to_json(report.rows),
        "heuristic": _rows_to_json(report.baseline),
        "usage": report.usage.__dict__,
    }


def _rows_to_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [{**row.__dict__, "rate": row.rate, "interval": row.interval} for row in rows]


_HEADS = (
    "Change",
    "Verdict must be",
    "Broken",
    "Of them codes",
    "Rate",
    "95 % interval",
    "Unscored",
    "Rules",
)
_LEFT_OUT_FIRST = ("95 % interval", "Of them codes")
"""Columns that a narrow terminal does without."""


def _show(report: Report) -> None:
    """Print a row for each change, and what the judge cost."""
    rules_rates = {row.name: _percent(row.rate) for row in report.baseline}
    lines = [_cells(row, rules_rates.get(row.name, "")) for row in report.rows]
    styles = [_styles(row) for row in report.rows]
    columns = [i for i in range(len(_HEADS)) if any(line[i] for line in lines)]
    heads = [_HEADS[i] for i in columns]
    console.say(
        f"judge {report.judge}: share of verdicts that do not follow a change with a known effect"
    )
    console.table(
        heads,
        [[line[i] for i in columns] for line in lines],
        right=range(2, 8),
        spare=[heads.index(name) for name in _LEFT_OUT_FIRST if name in heads],
        styles=[[style[i] for i in columns] for style in styles],
    )
    console.say(
        console.wrap(
            "Unscored: pairs without two verdicts, which show nothing. Rules: the rate of the judge"
            " without a model."
        )
    )
    if report.usage.calls:
        from .render import bill

        console.say(bill(report.usage))


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.0%}"


def _cells(row: Row, rules_rate: str) -> list[str]:
    interval = ""
    if row.interval is not None:
        low, high = row.interval
        interval = f"{low:.0%}–{high:.0%}"
    return [
        row.name,
        row.expectation,
        f"{row.broken} of {row.pairs}",
        f"{row.codes_broken} of {row.codes}" if row.codes else "",
        _percent(row.rate),
        interval,
        str(row.unscored or ""),
        rules_rate,
    ]


def _styles(row: Row) -> list[str | None]:
    rate = "bad" if row.broken else "good"
    return [None, "dim", None, None, rate, "dim", "warn", "dim"]
