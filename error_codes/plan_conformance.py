"""What plan.md promises, and the turns that did, contradicted or skipped it.

Only commitments that leave traces are read: named weight files, input conventions, checks, and output files. A line
that weighs or rejects a candidate promises nothing.
"""

from __future__ import annotations

import re
from typing import Literal

from ..trajectories.models import Frozen, Run, Segmentation
from .context import CodeContext, names_weights
from .fired import context

Kind = Literal["model", "input", "check", "output"]
State = Literal["done", "contradicted", "skipped"]


class Commitment(Frozen):
    """One promise of the plan. `text` is the line it stands in; `turns` are those that did or contradicted it."""

    kind: Kind
    what: str
    text: str
    state: State
    turns: tuple[int, ...] = ()
    why: str = ""


_REJECTED = re.compile(
    r"\breject|\bnot (?:to be )?used\b|\bno use\b|\bunmaintained\b|\binstead of\b|\bfallback\b|\bcross-check|\bdiscard|\bruled out|\bbackup\b|\bif\b",
    re.IGNORECASE,
)
_WEIGHTS = re.compile(r"\b([\w.-]{1,60}\.(?:pt|pth|onnx|ckpt|safetensors|h5))\b")
_FILES = re.compile(r"\b([\w-]{1,60}\.(?:nii\.gz|npy|npz|json|csv|txt|png))\b")
_NOT_OUTPUT = re.compile(r"^(?:ct|ldct|image|img|question|input|scan|mri|volume|plan)\b", re.IGNORECASE)
_DIVIDE = re.compile(r"(?:HU|RGB|values?|intensit\w{1,4}|input|x|pixels?)\s{0,2}/\s{0,2}(\d{2,5})", re.IGNORECASE)
_CLIP = re.compile(r"\bclip\w{0,4}\b[^\n]{0,30}\[\s{0,2}(-?\d{2,5})\s{0,2},\s{0,2}(-?\d{2,5})\s{0,2}\]", re.IGNORECASE)
_ORIENT = re.compile(r"\b(?:reorient|canonical|to RAS|orientation)\b", re.IGNORECASE)
_ORIENT_CODE = re.compile(r"canonical|ornt|orientation|flip|\[\s?::\s?-1", re.IGNORECASE)
_PILOT = re.compile(
    r"\bpilot\b|\bsmoke\b|\b(?:one|single|first) (?:case|patient|image|study|question|slice)\b|\btest (?:on )?one\b",
    re.I,
)
_VERIFY = re.compile(r"\b(?:verify|verif\w{1,7}|check|assert|validate)\b", re.IGNORECASE)
_OF_FILES = re.compile(
    r"\bfiles?\b|\boutputs?\b|\bschema\b|\brows?\b|\bjson\b|\bcsv\b|\bmasks?\b|\bsubmit\b|\bfields?\b", re.IGNORECASE
)

# What a check of files may be asked to look at, and how code that looks at it reads.
_ASPECTS: dict[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    "file names": (re.compile(r"\b(?:file )?names?\b", re.I), re.compile(r"\.nii|\.npy|\.json|\.csv|\.txt|exists|isfile", re.I)),
    "shape": (re.compile(r"\bshapes?\b|\bsize\b", re.I), re.compile(r"\.shape|\.size\b|ndim|x1|wc -l", re.I)),
    "dtype": (re.compile(r"\bd?types?\b|\buint8\b|\bfloat32\b", re.I), re.compile(r"dtype|uint8|float32|isinstance", re.I)),
    "affine": (re.compile(r"\baffine\b|\bspacing\b", re.I), re.compile(r"affine|zooms", re.I)),
    "header": (re.compile(r"\bheader\b|\bcolumns\b", re.I), re.compile(r"fieldnames|columns|head|next\(|readline|affine", re.I)),
    "finite values": (re.compile(r"\bfinite\b|\bnan\b", re.I), re.compile(r"isfinite|isnan|nan", re.I)),
    "value range": (re.compile(r"\brange\b|\{0, ?1\}|\bvalues\b|\binside the image\b|\bbounds?\b", re.I), re.compile(r"\bmin\b|\bmax\b|unique|<=|>=|\.min\(|\.max\(", re.I)),
    "number": (re.compile(r"\brows?\b|\bcount\b|\ball \d+\b|\b\d+ (?:files|rows)\b", re.I), re.compile(r"\blen\(|wc -l|count|ls\b", re.I)),
    "labels": (re.compile(r"\blabels?\b|\bclasses\b", re.I), re.compile(r"label|class|unique|value_counts", re.I)),
}  # fmt: skip


def plan_conformance(run: Run, segmentation: Segmentation) -> tuple[Commitment, ...]:
    """Commitments of the run's plan in the order of the plan; empty without a plan."""
    if not run.plan.text or not run.turns:
        return ()
    return conformance_in(context(run, segmentation))


def conformance_in(ctx: CodeContext) -> tuple[Commitment, ...]:
    """`plan_conformance` on a context that is there already."""
    found: dict[tuple[Kind, str], Commitment] = {}
    for raw in (ctx.run.plan.text or "")[:100_000].splitlines():
        line = " ".join(raw.split())[:400]
        if not line:
            continue
        for commitment in (*_models(ctx, line), *_inputs(ctx, line), *_checks(ctx, line), *_outputs(ctx, line)):
            found.setdefault((commitment.kind, commitment.what), commitment)
    return tuple(found.values())


def _after_plan(ctx: CodeContext) -> int:
    return ctx.run.plan.turn or 1


def _models(ctx: CodeContext, line: str) -> list[Commitment]:
    if _REJECTED.search(line):
        return []
    out = []
    for name in _WEIGHTS.findall(line):
        stem = name.rsplit(".", 1)[0]
        ran = tuple(t for t in ctx.model_turns if t >= _after_plan(ctx) and names_weights(ctx.turn(t).code, stem))
        helpers = names_weights(ctx.pipeline_code, stem)
        others = {w for w in _WEIGHTS.findall(ctx.pipeline_code) if w != name}
        if ran or helpers:
            turns = ran or tuple(t for t in (ctx.final_write,) if t)
            out.append(Commitment(kind="model", what=name, text=line, state="done", turns=turns))
        elif others and ctx.final_write:
            why = f"The outputs were made with {', '.join(sorted(others))}."
            out.append(
                Commitment(kind="model", what=name, text=line, state="contradicted", turns=(ctx.final_write,), why=why)
            )
        else:
            out.append(Commitment(kind="model", what=name, text=line, state="skipped", why="No executed code ran it."))
    return out


def _inputs(ctx: CodeContext, line: str) -> list[Commitment]:
    code = ctx.pipeline_code
    wanted: list[tuple[str, bool]] = []
    wanted += [
        (f"input / {n}", bool(re.search(rf"(?<![\w.]){n}(?!\d)|1e{len(n) - 1}\b", code))) for n in _DIVIDE.findall(line)
    ]
    wanted += [(f"clip to [{a}, {b}]", a.lstrip("-") in code and b.lstrip("-") in code) for a, b in _CLIP.findall(line)]
    if _ORIENT.search(line) and not _REJECTED.search(line):
        wanted.append(("orientation", bool(_ORIENT_CODE.search(code))))
    turns = tuple(t for t in (ctx.final_write,) if t)
    return [
        Commitment(kind="input", what=what, text=line, state="done" if done else "contradicted" if turns else "skipped", turns=turns,
                   why="" if done else "The code that made the outputs does not do it.")
        for what, done in wanted
    ]  # fmt: skip


def _checks(ctx: CodeContext, line: str) -> list[Commitment]:
    out = []
    first_batch = next((f.turn for f in ctx.features if f.writes_outputs and f.cases_scope == "all"), ctx.last + 1)
    if _PILOT.search(line):
        pilots = tuple(
            f.turn for f in ctx.features if f.forward_pass and f.cases_scope in ("one", "few") and f.turn < first_batch
        )
        state: State = "done" if pilots else "skipped"
        out.append(Commitment(kind="check", what="pilot before the batch", text=line, state=state, turns=pilots,
                              why="" if pilots else "No run on a few cases came before the batch."))  # fmt: skip
    early = re.search(r"\bS[123]\b", line[:12])  # a line of an earlier stage speaks of inputs or of the pilot
    if _VERIFY.search(line) and _OF_FILES.search(line) and not _PILOT.search(line) and not early:
        code = "\n".join(ctx.turn(t).code for t in ctx.checks)
        out.append(Commitment(kind="check", what="delivered files", text=line, state="done" if ctx.checks else "skipped", turns=ctx.checks,
                              why="" if ctx.checks else "No delivered file was opened and compared."))  # fmt: skip
        for aspect, (asked, looked) in _ASPECTS.items():
            if asked.search(line):
                done = bool(ctx.checks) and bool(looked.search(code))
                out.append(Commitment(kind="check", what=f"{aspect} of the delivered files", text=line, state="done" if done else "skipped",
                                      turns=ctx.checks if done else (), why="" if done else "No check of the files looks at it."))  # fmt: skip
    return out


def _outputs(ctx: CodeContext, line: str) -> list[Commitment]:
    out = []
    delivered = {f.name.rpartition("/")[2] for f in ctx.run.outputs.files}
    for name in _FILES.findall(line):
        if _NOT_OUTPUT.match(name) or not re.search(
            r"\boutput|\bwrite|\bsave|\bS4\b|\bsubmit|\bdeliver|->|→|\d+ files|organ|lesion", line, re.I
        ):
            continue
        writers = tuple(t for t in ctx.write_turns if name in ctx.turn(t).code) or tuple(
            t for t in (ctx.final_write,) if t
        )
        if name in delivered or (not delivered and name in ctx.pipeline_code):
            cases = {f.case for f in ctx.run.outputs.files if f.name.endswith(name)}
            partial = delivered and None not in cases and len(cases) < len(ctx.run.outputs.cases)
            why = f"Only {len(cases)} of {len(ctx.run.outputs.cases)} cases have it." if partial else ""
            out.append(
                Commitment(
                    kind="output",
                    what=name,
                    text=line,
                    state="contradicted" if partial else "done",
                    turns=writers,
                    why=why,
                )
            )
        elif delivered:
            why = f"The files delivered are {', '.join(sorted(delivered)[:4])}."
            out.append(Commitment(kind="output", what=name, text=line, state="contradicted", turns=writers, why=why))
        else:
            out.append(
                Commitment(
                    kind="output", what=name, text=line, state="skipped", why="Nothing of that name was delivered."
                )
            )
    return out
