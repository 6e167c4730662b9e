"""The harness's own verdicts (`llm_judge` in its reports), as labels of an annotator `harness`.

With them, `ambjudge agreement` compares any judge with the one that the benchmark itself used. Only
S1-S3 are read, criterion by criterion: the harness's failure codes are of another taxonomy, its S4
and S5 are measured, and most branches record stage scores alone (`judges/reported.py`).
"""

from __future__ import annotations

from ...trajectories.models import Run
from ..judges.reported import reported_verdicts
from .human_labels import Labels

ANNOTATOR = "harness"


def harness_labels(run: Run) -> tuple[Labels | None, list[str]]:
    """The verdicts that came with the run, and a line for each that could not be read.

    If the run was judged twice, these are the later ones.

    No labels if no report has any, or if the harness could not parse its judge's reply: it then
    writes zeros without a word, and a judge's failure is not a grade. InputError if the report
    cannot be read.
    """
    reported = reported_verdicts(run)
    if not reported.has_verdicts:
        return None, ["no llm_judge in a report"]
    if reported.unparsed:
        return None, [
            f"{reported.file}: llm_judge is all zeros without a reason, as after a reply that was"
            " not parsed"
        ]
    problems = [f"{reported.file}: llm_judge.{line}" for line in reported.problems]
    if not reported.criteria:
        nothing = f"{reported.file}: llm_judge has no verdict on a single criterion"
        return None, problems or [nothing]
    values: dict[str, int | float | None] = {
        id: int(value) if value == int(value) else value for id, value in reported.criteria.items()
    }
    notes = [note for note in (reported.model, reported.comment) if note]
    labels = Labels(run=run.id, annotator=ANNOTATOR, criteria=values, notes="\n".join(notes))
    return labels, problems
