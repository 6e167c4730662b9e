"""How a run speaks of its results, as a sign of defects that went unnoticed (E3): the fit, and what
it is worth.

python benchmarks/unquestioned.py [--labels FOLDER ...]

A null model: what a reader of E3 has to beat. Fits the weights of `benchmarks/tone.yaml` on the
labelled runs of every set and prints them beside those that stand there. Each set is also predicted
by weights fitted on all others: area under the curve, log loss, and a table of predicted against
observed shares. Folders given with --labels (runs/ and labels/ in each) are predicted by the fit,
not used.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from labelled_runs import LabelledRun, constructed, load_labelled, of_folder
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from tone import WEIGHTS, manner


class Sample(NamedTuple):
    group: str
    x: tuple[float, float]
    """Balance and printed amount."""
    y: bool
    """E3 is among the labels."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--labels", type=Path, nargs="*", default=[])
    args = parser.parse_args()
    rows = list(samples(constructed()))
    x, y = np.array([row.x for row in rows]), np.array([row.y for row in rows])
    groups = np.array([row.group for row in rows])
    model = fit(x, y)
    print(f"{len(rows)} runs, E3 in {y.mean():.0%}")
    print(
        "fitted weights:",
        tuple(round(float(w), 3) for w in (*model.intercept_, *model.coef_[0])),
        "in tone.yaml:",
        WEIGHTS,
    )
    left_out = np.zeros(len(rows))
    for group in np.unique(groups):
        rest = groups != group
        left_out[~rest] = fit(x[rest], y[rest]).predict_proba(x[~rest])[:, 1]
    print("each set by the others:", quality(y, left_out))
    for low in np.arange(0, 1, 0.2):
        some = (left_out >= low) & (left_out < low + 0.2)
        if some.any():
            print(
                f"  predicted {low:.1f} to {low + 0.2:.1f}: {some.sum():3d} runs, observed"
                f" {y[some].mean():.2f}"
            )
    for folder in args.labels:
        new = list(samples(of_folder(folder)))
        found = model.predict_proba(np.array([row.x for row in new]))[:, 1]
        print(f"{folder}: {len(new)} runs,", quality(np.array([row.y for row in new]), found))


def fit(x: np.ndarray, y: np.ndarray) -> LogisticRegression:
    """Logistic regression without penalty: two weights on some hundred runs need none."""
    return LogisticRegression(C=np.inf).fit(x, y)


def quality(y: np.ndarray, p: np.ndarray) -> str:
    return f"area under the curve {roc_auc_score(y, p):.3f}, log loss {log_loss(y, p):.3f}"


def samples(runs: Iterable[LabelledRun]) -> Iterator[Sample]:
    for labelled in runs:
        run = load_labelled(labelled)
        found = manner(run)
        yield Sample(
            labelled.group, (found.balance, found.printed), "E3" in labelled.label["codes"]
        )


if __name__ == "__main__":
    main()
