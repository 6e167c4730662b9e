"""The report of `ambjudge selftest --labels`: a sentence, the main figures by split, and with
--verbose all figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .. import console
from ..rounding import fixed
from ..trajectories.stages import stage_title

if TYPE_CHECKING:
    from ..judge.trust.against_labels import LabelReport
    from ..judge.trust.comparison import CodeOrigin, Figures
    from ..judge.trust.measures import Calibration, Figure

_Select = Callable[["Figures"], "Figure | None"]
"""Picks a figure out of those of a split; None if the split has none."""
_Row = tuple[str, list["Figure | None"]]
"""A row of a table: its name and a figure for each split."""

_CODE_SOURCES: tuple[tuple[CodeOrigin, str], ...] = (
    ("reading", "reading alone"),
    ("facts", "facts and findings"),
    ("both", "both"),
)


def show_label_report(report: LabelReport, *, verbose: bool) -> None:
    """Print whether the judge is better than the rules judge and its main figures; `verbose`: all
    figures."""
    console.say(console.wrap(_verdict(report)))
    console.say()
    splits: dict[str, Figures] = dict(report.columns.items())
    if len(splits) > 1:
        splits["all"] = report.all_runs
    _show_criteria(splits)
    _show_codes(splits)
    _show_stages(splits)
    if verbose:
        _show_details(report)
    console.say()
    for name, figures in report.columns.items():
        remarks = _remarks(figures)
        if remarks:
            console.say(f"{name}: {', '.join(remarks)}")
    if not verbose:
        console.say("95 % intervals; with -v every criterion, code and confidence")


def _show_details(report: LabelReport) -> None:
    """Every figure, a column for each split."""
    splits = list(report.columns.values())
    heads = [f"{name}, {figures.runs} runs" for name, figures in report.columns.items()]
    console.say()
    console.say("n is the number of cases of a figure")
    _table("Figure", heads, [(name, [select(s) for s in splits]) for name, select in _figures()])
    for title, rows in (*_criteria_tables(splits), *_code_tables(splits)):
        if rows:
            console.say()
            _table(title, heads, rows)
    for name, figures in report.columns.items():
        _show_calibration(name, figures)


# The verdict and the main tables


def _verdict(report: LabelReport) -> str:
    """Whether the judge is better than the rules judge on these labels, in a sentence."""
    from ..judge.trust.comparison import MIN_RUNS, compare_with_rules

    figures, name = report.all_runs, report.judge
    criteria = figures.criteria
    if criteria is None:
        return f"No criterion of these runs is labelled, so nothing can be said of judge {name}."
    judge, rules = criteria.overall.equal, criteria.rules.equal
    counts = f"{_count(judge)} of {judge.n} criteria of {console.counted(figures.runs, 'run')}"
    if name == "rules":
        return (
            f"This is the rules judge itself: it equals the label in {counts}, those that facts"
            " decide."
        )
    if criteria.overall.unscored:
        counts += f" ({criteria.overall.unscored} without a verdict)"
    evidence = f"it equals the label in {counts}, the rules judge in {_count(rules)}"
    gain = _points(criteria.over_rules)
    comparison = compare_with_rules(criteria, figures.runs)
    if comparison != "undecided":
        return f"{name} is {comparison} than the rules judge on these labels: {evidence}; {gain}."
    few = ""
    if figures.runs < MIN_RUNS:
        few = f"; {MIN_RUNS} labelled runs are needed to tell"
    return (
        f"It cannot be told whether {name} is better than the rules judge on these labels:"
        f" {evidence}; {gain}{few}."
    )


def _count(share: Figure) -> int:
    """The number of cases behind a share."""
    return round((share.value or 0.0) * share.n)


def _gain(gain: Figure) -> str:
    """A gain in percentage points, with its interval, as a cell."""
    if gain.value is None:
        return "–"
    text = fixed(100 * gain.value, 1)
    if gain.interval is None:
        return text
    low, high = gain.interval
    return f"{text} [{fixed(100 * low, 1)}, {fixed(100 * high, 1)}]"


def _points(gain: Figure) -> str:
    """A gain in percentage points, with its interval."""
    value = 100 * (gain.value or 0.0)
    size = fixed(abs(value), 1)
    text = f"{size} percentage points {'less' if value < 0 else 'more'}"
    if float(size) == 0:
        text = "no difference"
    if gain.interval is None:
        return text
    low, high = (fixed(100 * end, 1) for end in gain.interval)
    return f"{text}, 95 % {low} to {high}"


def _show_criteria(splits: Mapping[str, Figures]) -> None:
    rows = []
    for name, figures in splits.items():
        criteria = figures.criteria
        if criteria is not None:
            judge, rules = criteria.overall.equal, criteria.rules.equal
            rows.append(
                [
                    f"{name}, {figures.runs} runs",
                    str(judge.n),
                    _value(judge),
                    _value(rules),
                    _value(criteria.always_met),
                    _gain(criteria.over_rules),
                    _value(criteria.overall.kappa),
                ]
            )
    if rows:
        heads = (
            "Equal to the label",
            "Criteria",
            "Judge",
            "Rules",
            "Always met",
            "Gain, points",
            "Kappa",
        )
        console.table(heads, rows, right=(1,))


def _show_codes(splits: Mapping[str, Figures]) -> None:
    """The codes of judge and facts together beside those of facts alone."""
    rows = []
    for name, figures in splits.items():
        facts = (figures.codes or {}).get("facts")
        both = (figures.codes or {}).get("both", facts)
        if facts is not None and both is not None:
            rows.append(
                [
                    f"{name}, {figures.runs} runs",
                    str(both.micro.recall.n),
                    _value(both.micro.precision),
                    _value(both.micro.recall),
                    _value(both.micro.f1),
                    _value(facts.micro.f1),
                    _value(both.clean),
                ]
            )
    if rows:
        heads = ("Codes", "Labelled", "Precision", "Recall", "F1", "F1 by facts", "Clean with one")
        console.say()
        console.table(heads, rows, right=(1,))


def _show_stages(splits: Mapping[str, Figures]) -> None:
    rows = []
    for name, figures in splits.items():
        if figures.stages is not None:
            judge, rules = figures.stages["reading"], figures.stages["rules"]
            values = (judge.accuracy, rules.accuracy, judge.macro_f1, rules.macro_f1)
            turns = str(judge.accuracy.n)
            rows.append([f"{name}, {figures.runs} runs", turns, *map(_value, values)])
    if rows:
        heads = ("Stages", "Turns", "Accuracy", "By rules", "Macro F1", "F1 by rules")
        console.say()
        console.table(heads, rows, right=(1,))


def _value(figure: Figure) -> str:
    """A figure with its interval."""
    if figure.value is None:
        return "–"
    text = console.number(figure.value, digits=3)
    if figure.interval is None:
        return text
    low, high = figure.interval
    return f"{text} [{fixed(low, 2)}, {fixed(high, 2)}]"


# Figures by name


def _figures() -> Iterator[tuple[str, _Select]]:
    """The rows of the main table."""
    yield "criteria, equal to the label", _criteria_figure("overall.equal")
    yield "criteria, kappa", _criteria_figure("overall.kappa")
    yield "rules, scored and presumed, equal to the label", _criteria_figure("rules.equal")
    yield "rules, scored, equal to the label", _criteria_figure("rules_scored")
    yield "rules, scored and presumed, kappa", _criteria_figure("rules.kappa")
    yield "always met, equal to the label", _criteria_figure("always_met")
    yield "gain over the rules", _criteria_figure("over_rules")
    yield "gain over always met", _criteria_figure("over_always_met")
    for source, _ in _CODE_SOURCES:
        yield f"codes by {source}, micro F1", _code_figure(source, "f1")
        yield f"codes by {source}, precision", _code_figure(source, "precision")
        yield f"codes by {source}, recall", _code_figure(source, "recall")
        yield f"codes by {source}, clean runs with one", _clean_runs_figure(source)
    yield "quotes of present codes found", lambda s: s.reading.quotes if s.reading else None
    yield (
        "confidence in codes, Brier score",
        lambda s: s.reading.calibration.brier if s.reading else None,
    )
    yield "probability of values, Brier score", _criteria_figure("calibration.brier")
    for labeller, title in (("reading", "the judge"), ("rules", "rules")):
        yield f"stages by {title}, accuracy", _stage_figure(labeller, "accuracy")
        yield f"stages by {title}, macro F1", _stage_figure(labeller, "macro_f1")


def _criteria_figure(path: str) -> _Select:
    """A figure of the criteria by its path, such as `overall.equal`."""

    def select(figures: Figures) -> Figure | None:
        value: Any = figures.criteria
        for name in path.split("."):
            value = getattr(value, name, None)
        return value  # type: ignore[no-any-return]

    return select


def _code_figure(source: CodeOrigin, name: str) -> _Select:
    def select(figures: Figures) -> Figure | None:
        if figures.codes is None or source not in figures.codes:
            return None
        return getattr(figures.codes[source].micro, name)  # type: ignore[no-any-return]

    return select


def _clean_runs_figure(source: CodeOrigin) -> _Select:
    def select(figures: Figures) -> Figure | None:
        if figures.codes is None or source not in figures.codes:
            return None
        return figures.codes[source].clean

    return select


def _stage_figure(labeller: str, name: str) -> _Select:
    def select(figures: Figures) -> Figure | None:
        return getattr(figures.stages[labeller], name) if figures.stages else None  # type: ignore[index]

    return select


# Tables by stage, criterion and code


def _criteria_tables(splits: list[Figures]) -> Iterator[tuple[str, list[_Row]]]:
    """Titles and rows: by stage, and by criterion once for the share equal and once for kappa."""
    criteria = [figures.criteria for figures in splits if figures.criteria is not None]
    stages = sorted({stage for figures in criteria for stage in figures.by_stage})
    if len(stages) > 1:
        rows: list[_Row] = []
        for stage in stages:
            by_split = [
                figures.criteria.by_stage.get(stage) if figures.criteria else None
                for figures in splits
            ]
            rows.append((f"{stage_title(stage)}, equal", _attributes(by_split, "equal")))
            rows.append((f"{stage_title(stage)}, kappa", _attributes(by_split, "kappa")))
        yield "Criteria by stage", rows
    ids = sorted({criterion for figures in criteria for criterion in figures.by_criterion})
    for name, title in (("equal", "Criterion, share equal"), ("kappa", "Criterion, kappa")):
        rows = []
        for criterion in ids:
            by_split = [
                figures.criteria.by_criterion.get(criterion) if figures.criteria else None
                for figures in splits
            ]
            rows.append((criterion, _attributes(by_split, name)))
        yield title, rows


def _code_tables(splits: list[Figures]) -> Iterator[tuple[str, list[_Row]]]:
    """Titles and rows of the figures by code, a table for each source of codes."""
    for source, title in _CODE_SOURCES:
        by_split = [
            figures.codes[source] if figures.codes and source in figures.codes else None
            for figures in splits
        ]
        rows: list[_Row] = []
        codes = next((figures.by_code for figures in by_split if figures is not None), {})
        for code in codes:
            of_code = [figures.by_code[code] if figures else None for figures in by_split]
            rows.append((f"{code} precision", _attributes(of_code, "precision")))
            rows.append((f"{code} recall", _attributes(of_code, "recall")))
            rows.append((f"{code} F1", _attributes(of_code, "f1")))
        yield f"Code by {title}", rows


def _attributes(parts: list[Any], name: str) -> list[Figure | None]:
    """An attribute of each part; None for a part that is None."""
    return [None if part is None else getattr(part, name) for part in parts]


def _table(title: str, heads: list[str], rows: list[_Row]) -> None:
    """Print the rows that have a figure in some split."""
    lines = []
    for name, figures in rows:
        counted = [figure for figure in figures if figure is not None and figure.n]
        if counted:
            methods = sorted({figure.method for figure in counted if figure.interval})
            lines.append([name, *map(_cell, figures), ", ".join(methods)])
    console.table(
        [title, *heads, "Interval"],
        lines,
        styles=[[None] * (1 + len(heads)) + ["dim"]] * len(lines),
    )


def _cell(figure: Figure | None) -> str:
    if figure is None or not figure.n:
        return ""
    return f"{_value(figure)} n {figure.n}"


# Calibration and remarks


def _show_calibration(split: str, figures: Figures) -> None:
    if figures.reading is not None:
        _show_bins(f"Confidence in a code, {split}", figures.reading.calibration)
    if figures.criteria is not None and figures.criteria.calibration is not None:
        _show_bins(f"Probability of a value, {split}", figures.criteria.calibration)


def _show_bins(title: str, calibration: Calibration) -> None:
    if calibration.ece is None:
        return
    console.say()
    console.table(
        [title, "Stated", "Right (wilson)"],
        [
            [f"{fixed(b.low, 1)}–{fixed(b.high, 1)}", fixed(b.stated, 2), _cell(b.right)]
            for b in calibration.bins
        ],
    )
    console.say(f"expected calibration error {fixed(calibration.ece, 3)}")


def _remarks(figures: Figures) -> list[str]:
    """Calls, cost, and what was left without an answer."""
    usage = figures.usage
    remarks = []
    if usage.calls:
        cost = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
        remarks += [f"{usage.calls} calls", cost]
    counts: list[tuple[int, str]] = []
    if figures.criteria is not None:
        counts.append((figures.criteria.overall.unscored, "criteria unscored"))
    if figures.reading is not None:
        counts += [
            (figures.reading.unproven, "readings unproven"),
            (figures.reading.cannot_tell, "codes that it could not tell"),
            (figures.reading.unread, "codes not read"),
        ]
    return remarks + [f"{count} {words}" for count, words in counts if count]
