"""For tests of packages that extend ambjudge: a small run, a scripted judge, and contract checks.

- `tiny_run(folder)`: a run written to files and read by the real loader
- `ScriptedJudge(script)`: a judge that answers by a script
- `check_track`, `check_detector`, `check_judge`, `check_importer`, `check_exporter`,
  `check_table`, `check_command`: one check for each entry-point group. An AssertionError says which
  part of the contract is broken. What ambjudge ships passes the same checks.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from .error_codes.context import code_context
from .error_codes.registry import Detector
from .errors import AmbjudgeError, InputError
from .judge.base import Judge, QuestionName, Reply, Request, extra_questions, is_criteria
from .judge.card.stage_results import CriterionResult
from .judge.checks.case_checks import TrackCheck
from .judge.checks.check_outputs import check_outputs
from .judge.checks.submission import Submission
from .judge.checks.track import CheckedTrack
from .judge.engine import prepare
from .judge.questions.verdict_keys import identity
from .rubrics.load import load_rubric
from .trajectories.importers import Importer
from .trajectories.importers.conversation_json import read as read_own
from .trajectories.importers.draft import Draft
from .trajectories.importers.saving import save_run
from .trajectories.models import Run
from .trajectories.reading.layout import Fence
from .trajectories.reading.load import load_run
from .trajectories.turns.segment import segment

if TYPE_CHECKING:
    import click

    from .analysis.report.table_spec import Table
    from .trajectories.importers.exporters import Exporter

HOSTILE = (b"", b"\x00\xff\xfe", b"{", b"[[[]]]", b'{"messages": 7}', "ж\u202e".encode() * 99)
"""Contents of files that are valid in no format."""
_CASES = ("a", "b")
"""The cases of the submissions on which tracks are checked."""


class Step(NamedTuple):
    """One executed action of a run and its answer."""

    code: str
    output: str = ""
    exit_code: int | None = 0
    says: str = "Next."
    language: str = "python"


STEPS = (
    Step(
        "cat > plan.md <<'EOF'\n# Plan\nRead, try one case, then all.\nEOF",
        language="bash",
        says="First a plan.",
    ),
    Step("import json\nprint(len(json.load(open('/data/public/cases.json'))))", "2"),
    Step("open('/workspace/agents_outputs/case_1/out.txt', 'w').write(run('case_1'))", "", 1),
    Step(
        "for case in ('case_1', 'case_2'):\n    open(f'/workspace/agents_outputs/{case}/out.txt',"
        " 'w').write(run(case))"
    ),
)


def tiny_run(
    folder: Path,
    *,
    track: str | None = None,
    task: str = "tiny-task",
    tier: str = "lite",
    brief: str = "Do the task for 2 cases; the outputs go below /workspace/agents_outputs.",
    steps: Sequence[Step] = STEPS,
    cases: Sequence[str] = ("case_1", "case_2"),
    outputs: Mapping[str, bytes | str] | None = None,
    report: Mapping[str, Any] | None = None,
) -> Run:
    """Write a run of a few turns into `folder` and load it.

    `cases`: the expected cases, which agent_summary.json names. `outputs`: path below
    agents_outputs/ -> content. `report`: detail_report.json. If `track` is None, it is inferred
    from the task's name and the brief, as for any run.
    """
    conversation = {
        "agent": "tiny",
        "model": "none",
        "task": task,
        "track": track,
        "tier": tier,
        "system_prompt": brief,
        "messages": _messages(steps),
    }
    files: dict[str, bytes | str] = {
        "process/conversation.json": json.dumps(conversation),
        "process/agent_summary.json": json.dumps({"case_ids": list(cases)}),
    }
    for name, content in (outputs or {}).items():
        files[f"outputs/agents_outputs/{name}"] = content
    if report is not None:
        files["detail_report.json"] = json.dumps(report)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_run(folder)


def _messages(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """The conversation of these steps, in OpenAI's form."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Begin."}]
    for number, step in enumerate(steps):
        call_id = f"c{number}"
        arguments = {"language": step.language, "code": step.code}
        call = {"name": "execute_code", "arguments": json.dumps(arguments)}
        answer = {"exit_code": step.exit_code, "stdout": step.output, "stderr": ""}
        messages += [
            {
                "role": "assistant",
                "content": step.says,
                "tool_calls": [{"id": call_id, "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": call_id, "content": json.dumps(answer)},
        ]
    messages.append({"role": "assistant", "content": "All outputs are written."})
    return messages


@dataclass(frozen=True)
class ScriptedJudge:
    """A judge that answers by a script: item id -> value or whole result.

    An item that the script lacks is unscored.
    """

    script: Mapping[str, float | CriterionResult] = field(default_factory=dict)
    name: str = "scripted"
    members: tuple[str, ...] = ()
    prompt_sha256: str | None = None
    questions: frozenset[QuestionName] = frozenset({"diagnosis"})

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        return {"script": hashlib.sha256(repr(sorted(self.script.items())).encode()).hexdigest()}

    def evidence_sha256(self, request: Request) -> str:
        return hashlib.sha256(
            f"{request.run.content_sha256} {request.question}".encode()
        ).hexdigest()

    async def judge(self, request: Request) -> Reply:
        return Reply(tuple(self._result(criterion.id) for criterion in request.criteria))

    def _result(self, item: str) -> CriterionResult:
        answer = self.script.get(item)
        if isinstance(answer, CriterionResult):
            return answer
        if answer is None:
            return CriterionResult.unscored(item, "no_evidence", "not in the script")
        return CriterionResult(
            id=item, value=answer, status="scored", rationale="The script says so."
        )


def check_track(track: CheckedTrack) -> None:
    """Check a track's rubrics, and that its check names every case, whatever the files contain."""
    for name in track.rubrics:
        rubric = load_rubric(name)
        _require(
            rubric.track == track.name,
            f"rubric {name} is of track {rubric.track}, not {track.name}",
        )
        _require(
            not isinstance(name, Path) or rubric.id == name.stem,
            f"rubric {name} has the id {rubric.id}, not that of its file",
        )
    _require(
        bool(track.files or track.delivered),
        "a track must name its files, or say which cases were delivered",
    )
    empty = _check_submission(track, {})
    _require(
        empty.delivered == 0, "the check must find no delivered case in a submission without files"
    )
    _require(
        bool(empty.issues or empty.cases[0].issues),
        "the check must report a missing file as an issue",
    )
    for content in HOSTILE:
        paths = [*track.files]
        for case in _CASES:
            paths += [f"{case}/{file}" for file in track.files]
        _check_submission(track, dict.fromkeys(paths, content))


def _check_submission(track: CheckedTrack, outputs: Mapping[str, bytes]) -> TrackCheck:
    """The result of a track's check on a small submission with these files."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        run = tiny_run(folder, cases=_CASES, outputs={"notes.txt": "", **outputs})
        run = run.model_copy(update={"track": track.name})
        checked = track.check(Submission(run, Fence(folder), _CASES))
    _require(isinstance(checked, TrackCheck), "`check` must return a TrackCheck")
    _require(
        tuple(case.case for case in checked.cases) == _CASES,
        "`check` must name every case of the submission, in order",
    )
    return checked


def check_detector(
    *detectors: Detector, run: Run | None = None, public: Path | None = None
) -> None:
    """Check that findings name turns of the run, give one sentence, and have a fair confidence.

    Default run: `tiny_run`.
    """
    if run is None:
        with TemporaryDirectory() as name:
            return check_detector(*detectors, run=tiny_run(Path(name)))
    outputs = check_outputs(run, public=public).s4_checks
    context = code_context(run, segment(run), outputs)
    run_turns = set(range(1, len(run.turns) + 1))
    for detector in detectors:
        _require(bool(detector.doc), f"{detector.name} must say in its docstring what it detects")
        for finding in detector.function(context):
            reason = " ".join(finding.why.split())
            _require(bool(finding.turns), f"{detector.name} has a finding without turns")
            _require(
                set(finding.turns) <= run_turns,
                f"{detector.name} has a finding with turns that the run does not have",
            )
            _require(
                reason.endswith(".") and 20 <= len(reason) <= 400,
                f"{detector.name} must give a sentence of 20 to 400 characters as its reason, not"
                f" {reason!r}",
            )
            _require(
                0.5 <= finding.confidence <= 1,
                f"{detector.name} has a finding with confidence {finding.confidence}, not 0.5 to 1",
            )
    return None


def check_judge(judge: Judge, run: Run | None = None) -> None:
    """Check a judge's results and keys.

    One result for each item in their order, with a value of its scale; the same key for the same
    question.
    """
    if run is None:
        with TemporaryDirectory() as name:
            return check_judge(judge, tiny_run(Path(name)))
    _require(bool(judge.name), "a judge must have a name")
    _require(
        identity(judge) == identity(judge),
        "a judge's name, prompts and parameters must stay the same",
    )
    for request in prepare(run).requests(judge):
        _require(
            is_criteria(request.question) or request.question in extra_questions(judge),
            f"the judge has an unknown question {request.question}",
        )
        key = judge.evidence_sha256(request)
        other = judge.evidence_sha256(replace(request, criteria=request.criteria[:1]))
        _require(
            len(key) == 64 and key == other,
            "evidence_sha256 must be a SHA-256 that does not depend on the criteria",
        )
        reply = asyncio.run(judge.judge(request))
        _require(
            [r.id for r in reply.results] == [c.id for c in request.criteria],
            "a judge must return one result for each item, in their order",
        )
        for result, item in zip(reply.results, request.criteria, strict=True):
            on_scale = result.value is None or any(
                abs(result.value - value) < 1e-9 for value in item.values
            )
            _require(
                on_scale, f"{item.id} has the value {result.value}, which is none of {item.values}"
            )
            _require(
                result.value is not None or result.status != "scored",
                f"{item.id} is scored without a value",
            )
    return None


def check_importer(importer: Importer, sample: Path | None = None) -> list[Run]:
    """Check that an importer refuses foreign files and reads `sample`, a file of its format.

    A foreign file is an InputError and not recognised. Returns the sample's runs.
    """
    recognises = importer.recognises
    for content in HOSTILE:
        _require(
            recognises is None or not recognises(content, "x.json"),
            f"the importer must not recognise a file of {content[:8]!r}",
        )
        with TemporaryDirectory() as name:
            path = Path(name) / f"x{(*importer.suffixes, '.json')[0]}"
            path.write_bytes(content)
            try:
                items = list(importer.read(path))
            except InputError:
                continue
            read_as_run = any(isinstance(item, Draft) and item.turns for item in items)
            _require(
                not read_as_run, f"the importer must not read a file of {content[:8]!r} as a run"
            )
    runs: list[Run] = []
    for item in importer.read(sample) if sample is not None else ():
        _require(isinstance(item, Draft), f"the sample cannot be read: {item}")
        if isinstance(item, Draft):
            with TemporaryDirectory() as name:
                runs.append(
                    load_run(save_run(item, Path(name) / "run", Path("sample"), force=False))
                )
    _require(
        sample is None or any(run.turns for run in runs), "the sample holds no run with a turn"
    )
    return runs


def check_exporter(exporter: Exporter, run: Run | None = None) -> dict[str, Any]:
    """Check that a run becomes a JSON object and that the draft's messages are left unchanged."""
    if run is None:
        with TemporaryDirectory() as name:
            return check_exporter(exporter, tiny_run(Path(name)))
    draft = next(iter(read_own(run.path)))
    assert isinstance(draft, Draft)
    before = json.dumps(draft.messages)
    value = exporter(draft)
    _require(
        isinstance(value, dict) and bool(json.dumps(value, allow_nan=False)),
        "an exporter must return a JSON object",
    )
    _require(
        json.dumps(draft.messages) == before, "an exporter must not change the draft's messages"
    )
    return value


def check_table(table: Table) -> None:
    """Check that it has a heading and gives a frame for a small cohort and for an empty one."""
    import polars as pl

    from .analysis import cohort, simulate, simulated_scorecards
    from .analysis.report.table_spec import TableInputs

    _require(bool(table.title and table.note), "a table must have a title and a note")
    cards = list(simulated_scorecards(simulate(n_agents=2, n_tasks=4, n_rep=2, seed=1)))
    for cohort_size in (len(cards), 0):
        inputs = TableInputs(
            cohort=cohort(cards[:cohort_size]),
            labels=None,
            texts=None,
            outcome="overall",
            code_source="any",
            label_budget=10,
        )
        try:
            frame = table.compute(inputs)
        except AmbjudgeError:
            continue  # shown as the reason why there are no rows
        _require(isinstance(frame, pl.DataFrame), "a table must compute a polars DataFrame")


def check_command(command: click.Command) -> None:
    """Check that a command has a help text and prints it."""
    from click.testing import CliRunner

    from .cli import CONTEXT

    _require(bool(command.help), f"{command.name} has no help text")
    result = CliRunner().invoke(
        command, ["--help"], obj={"verbose": 0, "quiet": False, "config": None}, **CONTEXT
    )
    _require(result.exit_code == 0, f"{command.name} --help ends with {result.exit_code}")


def _require(condition: bool, message: str) -> None:
    """AssertionError with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)
