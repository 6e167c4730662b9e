"""The work of `ambjudge codes`: one run's diagnosis, as data and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..console import say, wrap
from ..sanitize import sanitize_line
from .render import ENDINGS, turns

if TYPE_CHECKING:
    from ..error_codes.plan_conformance import Commitment
    from ..error_codes.vqa_answers import AnswerCode
    from ..judge.session import ScoreOptions
    from ..judge.tagging import Diagnosis
    from ..trajectories.models import Run


@dataclass(frozen=True)
class RunDiagnosis:
    """A run, its diagnosis, the taxonomy to show, and the plan's commitments when they were asked for."""

    run: Run
    found: Diagnosis
    taxonomy: Literal["paper", "harness"]
    commitments: tuple[Commitment, ...] | None

    def to_dict(self) -> dict[str, Any]:
        """`ambjudge.codes/1`."""
        from ..trajectories.summary import run_info

        codes = self.found.steps if self.taxonomy == "harness" else self.found.codes
        data = {
            "schema": "ambjudge.codes/1",
            "run": run_info(self.run),
            "taxonomy": self.taxonomy,
            "codes": [code.model_dump(mode="json") for code in codes],
            "primary_failure": self.found.primary_failure,
            "episodes": [episode.model_dump(mode="json") for episode in self.found.episodes],
        }
        if self.found.answers:
            data["answers"] = [a.model_dump(mode="json") for a in self.found.answers]
        if self.commitments is not None:
            data["plan"] = [c.model_dump(mode="json") for c in self.commitments]
        return data


def diagnose(run: Run, taxonomy: Literal["paper", "harness"], options: ScoreOptions, plan: bool) -> RunDiagnosis:
    """Detectors over one run; its output files are checked first, as some of them look at files."""
    from ..error_codes.plan_conformance import plan_conformance
    from ..judge import tagging
    from ..judge.engine import prepare

    ready = prepare(run, policy=options.policy, public=options.public)
    found = tagging.diagnose(run, ready.segmentation, ready.found)
    return RunDiagnosis(run, found, taxonomy, plan_conformance(run, ready.segmentation) if plan else None)


def show(diagnosis: RunDiagnosis, first: bool) -> None:
    """Codes, then episodes of failed steps, then the plan's commitments."""
    run, found = diagnosis.run, diagnosis.found
    if not first:
        say()
    primary = f" · primary failure {found.primary_failure}" if found.primary_failure else ""
    say(f"{run.id}  {sanitize_line(run.task or 'unknown task')} · {ENDINGS[run.status.ended]}{primary}")
    codes = found.steps if diagnosis.taxonomy == "harness" else found.codes
    if not codes:
        say("  no error code fired")
    for code in codes:
        circular = " (read from the score)" if code.independence == "from_score" else ""
        source = f"[{code.by.removeprefix('detector:')}, {code.independence.replace('_', ' ')}, {code.confidence:.1f}]"
        say(
            wrap(
                f"{code.stage}  turn{'s' if len(code.turns) > 1 else ''} {turns(code.turns)}: {code.why}{circular} {source}",
                "        ",
                f"  {code.code:<6}",
            )
        )
    if found.episodes:
        say(
            f"  Failed steps: {sum(e.resolved_at is not None for e in found.episodes)} of {len(found.episodes)} overcome"
        )
        for e in found.episodes:
            end = f"worked in turn {e.resolved_at}" if e.resolved_at is not None else "never worked"
            tries = f"{e.attempts} attempt{'s' if e.attempts > 1 else ''}"
            say(
                wrap(
                    f"turn{'s' if len(e.turns) > 1 else ''} {turns(e.turns)}: {e.cause} ({tries}, {end})",
                    "        ",
                    f"    {e.stage}  ",
                )
            )
    groups: dict[str, list[AnswerCode]] = {}
    for answer in found.answers:
        groups.setdefault(answer.code, []).append(answer)
    if groups:
        say("  Answers")
        for name, hits in sorted(groups.items()):
            say(wrap(f"{len(hits)} x, first {hits[0].question}: {hits[0].why}", "            ", f"    {name}  "))
    if diagnosis.commitments is not None:
        say(
            "  Plan: " + ("what it promised" if diagnosis.commitments else "no commitment that leaves traces was found")
        )
        for c in diagnosis.commitments:
            where = f" in turn{'s' if len(c.turns) > 1 else ''} {turns(c.turns)}" if c.turns else ""
            say(
                wrap(
                    f"{c.kind} {c.what}: {c.state}{where}{' – ' + c.why if c.why else ''}",
                    "        ",
                    f"    {'✓' if c.state == 'done' else '✗'} ",
                )
            )
