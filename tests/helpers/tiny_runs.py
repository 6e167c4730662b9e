"""Tiny runs for detector tests: a brief and a few turns, written as a conversation and read by the
real loader."""

from __future__ import annotations

import json
from pathlib import Path

from ambjudge.error_codes.output_facts import OutputFacts, OutputIssue
from ambjudge.trajectories.reading.load import load_run

BRIEF = (
    "You are an autonomous medical-AI research agent. Track: {track}. Tier: lite.\nTASK. Do the"
    " task for {cases} cases.\nRULES. Inference only. METHOD. Use net.pt from"
    " /data/public/models.\n{extra}"
)


def say(text, code="", out="", exit_code=0, err="", language="python"):
    """One turn: text, the code it runs, and the answer of the environment. Without code it is a
    message."""
    return {
        "text": text,
        "code": code,
        "out": out,
        "exit_code": exit_code,
        "err": err,
        "language": language,
    }


SUBMIT = {
    "submit": {"complete": True, "missing_files": [], "patients_checked": 8},
    "text": "Submitting.",
}


def submit(text="Submitting.", **result):
    return {"submit": {"complete": True, "missing_files": []} | result, "text": text}


def messages_of(turns):
    out = []
    for number, turn in enumerate(turns, 1):
        calls, reply = [], None
        if "submit" in turn:
            calls = [
                {
                    "id": f"c{number}",
                    "type": "function",
                    "function": {"name": "submit_results", "arguments": "{}"},
                }
            ]
            reply = json.dumps(turn["submit"])
        elif turn["code"]:
            arguments = json.dumps({"language": turn["language"], "code": turn["code"]})
            calls = [
                {
                    "id": f"c{number}",
                    "type": "function",
                    "function": {"name": "execute_code", "arguments": arguments},
                }
            ]
            reply = json.dumps(
                {"exit_code": turn["exit_code"], "stdout": turn["out"], "stderr": turn["err"]}
            )
        out.append(
            {
                "role": "assistant",
                "content": turn["text"],
                **({"tool_calls": calls} if calls else {}),
            }
        )
        if reply is not None:
            out.append({"role": "tool", "tool_call_id": f"c{number}", "content": reply})
    return out


def write_run(
    folder,
    turns,
    *,
    track="segmentation",
    task="kidney-seg-task",
    extra="",
    plan=None,
    brief=None,
    report=None,
    cases=(),
):
    process = Path(folder) / "process"
    process.mkdir(parents=True)
    prompt = brief if brief is not None else BRIEF.format(track=track, cases=8, extra=extra)
    data = {
        "agent": "a",
        "model": "m",
        "task": task,
        "tier": "lite",
        "system_prompt": prompt,
        "messages": [{"role": "user", "content": "Begin."}, *messages_of(turns)],
        "code_executions": [],
        "trace_events": [],
    }
    (process / "conversation.json").write_text(json.dumps(data), encoding="utf-8")
    if report is not None:
        (Path(folder) / "detail_report.json").write_text(json.dumps(report), encoding="utf-8")
    if plan is not None:
        (Path(folder) / "outputs" / "plan").mkdir(parents=True)
        (Path(folder) / "outputs" / "plan" / "plan.md").write_text(plan, encoding="utf-8")
    for case in cases:
        (Path(folder) / "outputs" / "agents_outputs" / case).mkdir(parents=True)
        (Path(folder) / "outputs" / "agents_outputs" / case / "organ.nii.gz").write_bytes(b"")
    return load_run(folder)


def facts(
    *, completion=1.0, format_valid=True, source="files", expected=8, kinds=(), fatal=True, **more
):
    """Facts on outputs; `kinds` are (kind, text, case) triples."""
    found = tuple(
        OutputIssue(k, t, case=c, file=t.split()[0], forgiven=not fatal) for k, t, c in kinds
    )
    return OutputFacts(
        source=source,
        expected_cases=expected,
        completion=completion,
        format_valid=format_valid,
        issues=found,
        **more,
    )


def of_kind(check, kind):
    """Facts of one kind that checking the outputs of a run gave."""
    return [issue for issue in check.issues if issue.kind == kind]
