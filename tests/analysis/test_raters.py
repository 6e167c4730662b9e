"""Agreement coefficients against independent implementations and published examples."""

from __future__ import annotations

import numpy as np
import pytest
from ambjudge.analysis import agreement, cohort, read_labels, simulate
from ambjudge.analysis.simulated.simulated_cards import simulated_scorecards
from ambjudge.analysis.statistics.raters import (
    agreement_of,
    cohen_kappa,
    gwet_ac1,
    judge_pairs,
    krippendorff_alpha,
    linear_weights,
)
from ambjudge.analysis.tables.label_tables import Labels
from ambjudge.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

LEVELS = np.array([0.0, 0.2, 0.5, 1.0])
ratings = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=80)


def counts(pairs, size=4):
    out = np.zeros((size, size))
    for a, b in pairs:
        out[a, b] += 1
    return out


def alpha_by_definition(pairs, levels):
    """Krippendorff's alpha from pairs of values and ordinal distances, spelled out."""
    values = [v for pair in pairs for v in pair]
    n_v = {v: values.count(v) for v in levels}

    def distance(a, b):
        lo, hi = min(a, b), max(a, b)
        return (sum(n_v[g] for g in levels if lo <= g <= hi) - (n_v[lo] + n_v[hi]) / 2) ** 2

    observed = sum(distance(a, b) for a, b in pairs) / len(pairs)
    expected = sum(
        distance(values[i], values[j])
        for i in range(len(values))
        for j in range(len(values))
        if i != j
    )
    expected /= len(values) * (len(values) - 1)
    return None if expected == 0 else 1 - observed / expected


@settings(max_examples=60, deadline=None)
@given(ratings)
def test_kappa_equals_sklearn(pairs):
    metrics = pytest.importorskip("sklearn.metrics")
    table = counts(pairs)
    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    with np.errstate(all="ignore"):
        for weights, ours in (
            (None, cohen_kappa(table)),
            ("linear", cohen_kappa(table, linear_weights(LEVELS))),
        ):
            if len({*a}) == 1 and {*a} == {*b}:
                assert np.isnan(ours)
                continue
            assert ours == pytest.approx(
                metrics.cohen_kappa_score(a, b, labels=[0, 1, 2, 3], weights=weights), abs=1e-9
            )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=25))
def test_alpha_equals_its_definition(pairs):
    ours = float(krippendorff_alpha(counts(pairs) + counts(pairs).T, LEVELS))
    expected = alpha_by_definition(pairs, [0, 1, 2, 3])
    assert np.isnan(ours) if expected is None else ours == pytest.approx(expected, abs=1e-9)


def test_ac1_of_the_paradox():
    """125 subjects, 118 agreed as positive, 5 and 2 split, none negative: kappa about 0, AC1 high
    (Gwet 2008's table)."""
    table = np.array([[0.0, 2.0], [5.0, 118.0]])
    assert float(cohen_kappa(table)) == pytest.approx(-0.0234, abs=1e-3)
    assert float(gwet_ac1(table)) == pytest.approx(0.9408, abs=1e-3)


def test_intervals_resample_tasks():
    """Labels that agree by task give wider intervals than the same labels spread over many
    tasks."""
    rng = np.random.default_rng(1)
    good = rng.random(10) < 0.5
    human = rng.integers(0, 2, 300).astype(float)
    task = np.arange(300) % 10
    judge = np.where(good[task], human, rng.integers(0, 2, 300))

    def width(names):
        row = next(r for r in agreement_of(human, judge, names) if r["coefficient"] == "kappa")
        return row["hi"] - row["lo"]

    assert width([str(t) for t in task]) > 1.5 * width([str(i) for i in range(300)])


UNDEFINED = {
    "all positive": (np.ones(20), np.ones(20), {"kappa", "alpha_nominal", "specificity"}),
    "judge constant": (np.arange(20) % 2.0, np.ones(20), set()),
    "no positives": (np.zeros(20), np.arange(20) % 2.0, {"sensitivity"}),
}


@pytest.mark.parametrize(("human", "judge", "expected"), UNDEFINED.values(), ids=UNDEFINED)
def test_undefined_is_none_with_a_reason(human, judge, expected):
    rows = {r["coefficient"]: r for r in agreement_of(human, judge, [str(i) for i in range(20)])}
    missing = {name for name, row in rows.items() if row["value"] is None}
    assert missing == expected
    assert all(rows[name]["reason"] for name in missing)


def test_labels_weigh_by_how_they_were_drawn():
    """Rare tags are over-sampled: weights bring specificity back."""
    rng = np.random.default_rng(4)
    human = (rng.random(4000) < 0.1).astype(float)
    judge = np.where(rng.random(4000) < 0.9, human, 1 - human)
    chance = np.where(judge == 1, 0.5, 0.05)
    drawn = rng.random(4000) < chance
    task = [f"t{i % 20}" for i in range(int(drawn.sum()))]

    def specificity(weight):
        rows = agreement_of(human[drawn], judge[drawn], task, weight=weight)
        return next(row for row in rows if row["coefficient"] == "specificity")

    assert specificity(None)["hi"] < 0.6
    right = specificity(1 / chance[drawn])
    assert right["lo"] < 0.9 < right["hi"]


def test_agreement_recovers_the_judge_of_the_simulator():
    sim = simulate("judge", seed=2)
    frame = sim.frame()
    whole = cohort(simulated_scorecards(sim))
    labels = Labels(
        criteria=read_labels([]).criteria,
        codes=frame.select("run_id", *(frame[f"E{i}_human"].alias(f"E{i}") for i in range(1, 6)))
        .with_columns(annotator=frame["judge"])
        .select("run_id", "annotator", "E1", "E2", "E3", "E4", "E5"),
    )
    found = agreement(whole, labels)
    e3 = dict(found.filter(found["item"] == "E3").select("coefficient", "value").iter_rows())
    assert e3["sensitivity"] == pytest.approx(0.75, abs=0.04)
    assert e3["specificity"] == pytest.approx(0.94, abs=0.02)


def test_two_judges_against_each_other():
    sim = simulate("judge", seed=2, n_tasks=6, n_rep=4)
    cards = list(simulated_scorecards(sim))
    other = [
        card.model_copy(update={"judge": card.judge.model_copy(update={"name": "second"})})
        for card in cards
    ]
    whole = cohort([*cards, *other[:100]])
    found = judge_pairs(whole)
    assert set(found.filter(found["coefficient"] == "agreement")["value"]) == {1.0}
    assert found.filter(found["item"] == "S3")["n"].max() == 100


def rated(n: int, n_wrong: int, n_tasks: int) -> list[dict]:
    """Coefficients of n labels of n_tasks tasks in turn, the first n_wrong of one task wrong."""
    task = [f"t{i % n_tasks}" for i in range(n)]
    human = np.arange(n) // n_tasks % 2.0
    judge = human.copy()
    judge[[i for i in range(n) if task[i] == "t0"][:n_wrong]] -= 1
    return agreement_of(human, np.abs(judge), task)


@pytest.mark.parametrize("n_tasks", [1, 2, 3, 4, 5, 12])
@pytest.mark.parametrize("n", [13, 40])
def test_one_method_a_column_and_none_of_three_tasks(n, n_tasks) -> None:
    methods: dict[str, set[str]] = {}
    for n_wrong in (0, 1, 2):
        for row in rated(n, n_wrong, n_tasks):
            methods.setdefault(row["coefficient"], set()).add(row["method"])
            if n_tasks <= 3:
                assert row["lo"] is None, row
                assert row["value"] is None or "too few for an interval" in row["reason"]
            elif row["lo"] is not None:
                assert row["hi"] - row["lo"] < 1.95, "an interval that excludes nothing"
    assert all(len(names) == 1 for names in methods.values()), methods


def test_one_disagreement_more_moves_an_interval_a_little() -> None:
    """13 of 13 and 12 of 13 are nearly the same evidence."""
    intervals = []
    for n_wrong in (0, 1):
        row = next(r for r in rated(13, n_wrong, 5) if r["coefficient"] == "agreement")
        intervals.append((row["lo"], row["hi"]))
    (low, high), (lower, less_high) = intervals
    assert lower < low
    assert less_high < high
    assert low - lower < 0.25


def test_tasks_of_very_unequal_weight_are_no_four_tasks() -> None:
    human = np.arange(40) % 2.0
    task = ["large"] * 37 + ["a", "b", "c"]
    row = agreement_of(human, np.roll(human, 1), task)[0]
    assert row["lo"] is None
    assert "4 tasks weigh as 1.2 equal ones" in row["reason"]


def test_perfect_agreement_of_few_is_not_certainty():
    human = np.arange(15) % 2.0
    rows = {
        r["coefficient"]: r for r in agreement_of(human, human, [f"t{i % 5}" for i in range(15)])
    }
    assert rows["agreement"]["value"] == 1.0
    # Wilson of 15 of 15, less the degrees of freedom of 5 tasks: (1.96 / t)^2 of the runs count.
    n_effective = 15 * (1.96 / stats.t.ppf(0.975, 4)) ** 2
    assert rows["agreement"]["lo"] == pytest.approx(
        n_effective / (n_effective + 1.96**2), abs=0.001
    )
    assert rows["kappa"]["lo"] is None
    assert "20%" in rows["kappa"]["reason"]


def test_no_interval_is_a_point_at_an_end_of_the_scale():
    """Complete agreement and complete disagreement, with any number of deletions of tasks."""
    task = [f"t{i % 5}" for i in range(20)]
    human = np.arange(20) % 2.0
    for judge, end in ((human, 1.0), (1 - human, -1.0)):
        for row in agreement_of(human, judge, task):
            if row["coefficient"] in ("kappa", "ac1"):
                assert (row["value"], row["lo"], row["hi"]) == (pytest.approx(end), None, None)
                assert f"no {'disagreement' if end > 0 else 'agreement'} among 20" in row["reason"]


BROKEN = {
    "no run": {"annotator": "a1"},
    "criteria list": {"run": "r", "criteria": []},
    "value text": {"run": "r", "criteria": {"S1a": "1"}},
    "value beyond": {"run": "r", "criteria": {"S1a": 2}},
    "codes list": {"run": "r", "codes": ["E3"]},
}


@pytest.mark.parametrize("item", BROKEN.values(), ids=BROKEN)
def test_broken_labels_are_errors(item):
    with pytest.raises(InputError):
        read_labels([item])
