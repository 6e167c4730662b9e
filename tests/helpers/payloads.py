"""Texts that must never reach a terminal as they are, and a run whose every part carries all of
them."""

from __future__ import annotations

import json
from pathlib import Path

PAYLOADS: dict[str, str] = {
    "csi": "\x1b[2J\x1b[1;1H",
    "title": "\x1b]0;owned\x07",
    "osc8": "\x1b]8;;http://evil.example/?q=1\x1b\\click\x1b]8;;\x1b\\",
    "osc52": "\x1b]52;c;ZXZpbA==\x07",
    "c1": "\x9b31mRED",
    "nul": "a\x00b",
    "bell": "ding\x07",
    "return": "12 failed\rall passed",
    "backspace": "secret\x08\x08\x08",
    "vertical": "up\x0bdown\x0c",
    "delete": "x\x7fy",
    "bidi": "\u202egnp.exe\u2066",
    "zero": "in\u200bvisible\ufeff\u2060",
    "tags": "\U000e0041\U000e0042",
    "lines": "one\u2028two\u2029three",
    "surrogate": "\ud800half",
    "markup": (
        "[@click=app.quit]press[/] [red]red[/red] [link=http://evil.example]x[/link]"
        " [/Users/foo/bar] [b +"
    ),
    "shift": "\x0e\x0f\x1b(0",
}

FORBIDDEN: dict[str, bytes] = {
    "csi": b"\x1b[2J\x1b[1;1H",
    "title": b"\x1b]0;owned",
    "osc8": b"\x1b]8;",
    "evil link": b"\x1b]8;;http",
    "osc52": b"\x1b]52;c;ZXZpbA",
    "c1": b"\xc2\x9b",
    "nul": b"\x00",
    "bell": b"\x07",
    "return": b"failed\rall",
    "backspace": b"\x08",
    "vertical": b"\x0b",
    "form feed": b"\x0c",
    "delete": b"\x7f",
    "override": "\u202e".encode(),
    "isolate": "\u2066".encode(),
    "zero width": "\u200b".encode(),
    "bom": "\ufeff".encode(),
    "joiner": "\u2060".encode(),
    "tag": "\U000e0041".encode(),
    "line separator": "\u2028".encode(),
    "shift out": b"\x0e",
    "charset": b"\x1b(0",
}
"""Bytes that the browser itself never needs to draw; any of them in its output came from a run."""

ALL = " | ".join(PAYLOADS.values())


def hostile_run(folder: Path) -> Path:
    """A run folder with the payloads in the brief, text, code, arguments, outputs, file and task
    names, plan and report."""
    inline = ALL.replace("\x00", "\\0")
    call = {
        "id": "c1",
        "type": "function",
        "function": {
            "name": "execute_code" + PAYLOADS["csi"],
            "arguments": json.dumps(
                {
                    "language": "python",
                    "code": f"print('''{ALL}''')",
                    "note" + PAYLOADS["osc8"]: ALL,
                }
            ),
        },
    }
    messages = [
        {"role": "system", "content": f"Segment. {ALL}"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": f"I begin. {ALL}", "reasoning": ALL, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": json.dumps(
                {"exit_code": 1, "stdout": f"{ALL}\n" * 3, "stderr": f"Traceback: {ALL}"}
            ),
        },
        {
            "role": "assistant",
            "content": f"# Done\n{ALL}",
            "tool_calls": [
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "submit_results", "arguments": "{}"},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c2",
            "content": json.dumps({"submitted": True, "note": ALL}),
        },
        {"role": "user", "content": f"please continue {ALL}"},
    ]
    name = "evil \x1b[2J\x1b[1;1H \u202e [red]x[/red]"
    run = folder / "runs" / name
    (run / "process").mkdir(parents=True)
    conversation = {
        "agent": f"agent{ALL}",
        "model": f"m{ALL}",
        "task": f"kidney-seg-task{ALL}",
        "tier": "lite",
        "messages": messages,
    }
    (run / "process" / "conversation.json").write_text(json.dumps(conversation))
    plan = run / "outputs" / "plan"
    plan.mkdir(parents=True)
    (plan / "plan.md").write_text(
        f"# Plan {inline}\n- one `{inline}` **{inline}** &#27;[2J"
        f" &#x202e;\n\n[x](http://evil.example) <b>\n```\n{inline}\n```\n",
        "utf-8",
        "replace",
    )
    case = run / "outputs" / "agents_outputs" / ("case" + PAYLOADS["csi"] + "\u202e")
    case.mkdir(parents=True)
    (case / ("lesion" + PAYLOADS["bell"] + ".nii.gz")).write_bytes(b"x")
    (run / "detail_report.json").write_text(
        json.dumps(
            {"metrics": {ALL.replace("\ud800", ""): 1}, "warnings": [ALL.replace("\ud800", "")]}
        )
    )
    return run.parent
