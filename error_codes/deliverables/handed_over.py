"""E5 read from the record alone: what the brief demands of the files and the code that made them does not do.

For runs whose files did not come along (a lone conversation), and for headers that only the public inputs would show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...trajectories.code_parts import split
from ..context import CodeContext
from ..registry import Finding, detector

_OUTPUT_FILE = re.compile(
    r"agents?_outputs/(?:[<{\[][^>}\]\n/]{1,40}[>}\]]/|\*/)?([\w-]{2,60})\.(?:csv|json|npy|nii\.gz|txt|tsv)\b"
)
_HEADER = re.compile(
    r"\b(?:header|columns?)\b[^\n.:]{0,20}?:?\s?(?:[`'\"(](\w{2,30}(?:, ?\w{2,30}){1,8})[`'\")]|(\w{2,30}(?:,\w{2,30}){1,8})\b)",
    re.IGNORECASE,
)
_SCHEMA = re.compile(r"\{[^}\n]{0,400}")
_KEY = re.compile(r"['\"]([A-Za-z]\w{1,40})['\"]")
_OPTIONAL = re.compile(r"\boptional|\bmay\b", re.IGNORECASE)
_GIVEN_TOOL = re.compile(
    r"(?:python3?|bash|sh|Rscript|\./?)\s[^\n;|]{0,80}/data/public/\S{1,120}|/data/public/\S{1,120}\.(?:sh|bin)\b"
)
_SAVES = re.compile(
    r"\bsave\w*\(|\bto_csv\(|\bdump\(|\bwrite\w*\(|\bwriterows?\(|\bimwrite\(|\bsavetxt\(|\bWriteImage\(|open\([^)\n]{1,200}['\"][wa]b?['\"]|>>? ?\S"
)
_EYE = re.compile(
    r"Nifti1Image\([^\n]{1,200}?,\s{0,3}(?:affine\s?=\s?)?(?:np\.|numpy\.)?(?:eye\(\s?4|identity\(\s?4|diag\(\[1|None\s?[,)])"
)
_FROM_ARRAY = re.compile(r"GetImageFromArray\(")
_CARRIES = re.compile(
    r"CopyInformation|SetSpacing|SetOrigin|SetDirection|\.affine\b|get_best_affine|get_sform|\.header\b"
)
_GEOMETRY = re.compile(r"\b(?:affine|spacing|geometry|header|orientation|origin)\b", re.IGNORECASE)
_PARTIAL = re.compile(
    r"\b(?:part|some|half|most|only \w{1,12}) of the (?:\w{1,20} ){0,3}(?:is|are|was|were|have|has|cases|files|patients|outputs|masks|images|reports|volumes)\b"
    r"|\bthe (?:rest|others?|remaining \w{1,20})\b[^.\n]{0,60}\b(?:not|would|could|missing|left|skipped|fail\w*|need|lack\w*|absent)\b"
    r"|\b(?:are|is|were|remain|stay|still) (?:missing|incomplete|unfinished|not (?:done|written|there|finished|processed))\b"
    r"|\bnot (?:all|every) (?:\w{1,20} ){0,2}(?:cases?|patients?|files?|outputs?|scans?|images?|studies)\b|\bincomplete (?:set|submission|output)",
    re.IGNORECASE,
)
_OF = re.compile(r"(?<![\w./])(\d{1,5})\s?(?:/|of|out of)\s?(?:the |all )?(\d{1,5})(?![\w/]|\.\d)")
_LIST_MISSING = re.compile(
    r"\b(?:missing|absent|not found|no output|lacking|incomplete)\b(?: (?:files?|cases?|outputs?|patients?|masks?|reports?|answers?|predictions?))?\s{0,3}[:=]?\s{0,3}(?:\[\s?['\"(]|\{\s?['\"]|\(\s?['\"]|[1-9]\d{0,4}\b(?!\s{0,2}(?:%|\.\d|keys?)))",
    re.IGNORECASE,
)
_KEYS = re.compile(r"\bkeys?\b|state_dict|warning|nan|voxel|pixel", re.IGNORECASE)
_COUNTED = re.compile(
    r"\b(?:cases?|files?|patients?|masks?|reports?|outputs?|predictions?|images?|studies|written|saved|present|complete\w*|done|deliver\w*|valid|ok)\b",
    re.IGNORECASE,
)
MAX_LINES = 400
"""Lines of one output that are read, from the end."""


def _unseen(ctx: CodeContext) -> bool:
    """Whether nobody opened the delivered files."""
    return bool(ctx.last) and (ctx.facts is None or ctx.facts.source != "files")


def _confirmed(ctx: CodeContext) -> bool:
    """Whether the harness's answer to the submission said that every file is there."""
    result = ctx.run.submit_result
    return result is not None and result.get("complete", result.get("completed")) is True


def _asked(brief: str) -> str:
    """The paragraphs of the brief that speak of the output's place, else nothing."""
    place = brief.find("agents_outputs/")
    if place < 0:
        return ""
    start = max(brief.rfind("\n\n", 0, place), 0)
    return brief[start : place + 900]


def _made(ctx: CodeContext) -> str:
    """All code that was executed or written, and what it printed from the first saved file on."""
    return "\n".join(t.code[:200_000] + "\n" + t.output[-20_000:] for t in ctx.run.turns if t.actions)[:4_000_000]


def _last_saving(ctx: CodeContext) -> int | None:
    """The last turn whose code saves files and did not fail, the plan left out."""
    return next(
        (
            f.turn
            for f in reversed(ctx.features)
            if f.executed and not f.blocked and not f.writes_plan and _SAVES.search(ctx.turn(f.turn).code[:200_000])
        ),
        None,
    )


@detector("other_names_written", code="E5", stage="S5", independence="from_trace")
def other_names_written(ctx: CodeContext) -> Iterable[Finding]:
    """A folder, file name, column or field that the brief prescribes occurs in no code and no output of the run."""
    asked, saved = _asked(ctx.run.brief), ctx.final_write or _last_saving(ctx)
    if not _unseen(ctx) or not asked or saved is None:
        return
    made = _made(ctx)
    if _GIVEN_TOOL.search(made) or (ctx.final_write is None and not ctx.handed_over):
        return  # a given tool may write what the run's own code never names
    for kind, name in _prescribed(asked, _confirmed(ctx)):
        if not re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", made):
            why = f"The brief prescribes the {kind} {name}, which no code of the run writes."
            yield Finding(tuple(sorted({saved, ctx.last})), why, 0.8)
            return


def _prescribed(asked: str, confirmed: bool) -> Iterator[tuple[str, str]]:
    """(kind, name) of what the output must be called; places and file names only where nobody confirmed them."""
    if not confirmed:
        yield "folder", "agents_outputs" if "agents_outputs" in asked else "agent_outputs"
        for match in _OUTPUT_FILE.finditer(asked):
            if not _OPTIONAL.search(asked[match.end() : match.end() + 60]):
                yield "file name", match[1]
    for match in _HEADER.finditer(asked):
        for name in re.split(r", ?", match[1] or match[2]):
            yield "column", name
    schema = _SCHEMA.search(asked)
    for name in _KEY.findall(schema[0]) if schema is not None else ():
        if not _OPTIONAL.search(asked):
            yield "field", name


@detector("unfinished_batch", code="E5", stage="S5", independence="from_trace")
def unfinished_batch(ctx: CodeContext) -> Iterable[Finding]:
    """Not submitted, and the full run did not end well or the closing message says that part of it is missing."""
    run = ctx.run
    if not _unseen(ctx) or run.track in (None, "vqa") or run.status.submitted or run.status.disqualified:
        return
    if run.report is not None or run.submit_result is not None or not ctx.write_turns:
        return
    good = [t for t in ctx.write_turns if t not in ctx.failed_turns]
    last = ctx.write_turns[-1]
    if _PARTIAL.search(ctx.closing[-6_000:]) or (last in ctx.failed_turns and (not good or good[-1] < last)):
        why = "The run ended without a submission, and the full run was not brought to an end."
        yield Finding(tuple(sorted({last, ctx.last})), why, 0.8)


@detector("shortage_shown", code="E5", stage="S5", independence="from_trace")
def shortage_shown(ctx: CodeContext) -> Iterable[Finding]:
    """The run's last look at its outputs counts fewer than there must be, or lists missing ones, and nothing follows."""
    final = ctx.final_write
    if not _unseen(ctx) or final is None or _confirmed(ctx) or ctx.run.track is None:
        return
    for feature in reversed(ctx.features):
        if feature.turn < final or not (feature.checks_outputs or feature.writes_outputs or feature.reads_outputs):
            continue
        short = next(
            (line for line in ctx.turn(feature.turn).output.splitlines()[-MAX_LINES:] if _short(ctx, line)), ""
        )
        if short:
            why = f"The last look at the outputs shows that some are missing ({' '.join(short.split())[:80]})."
            yield Finding(tuple(sorted({feature.turn, ctx.last})), why, 0.8)
        return


def _short(ctx: CodeContext, line: str) -> bool:
    text = line[:600]
    if _LIST_MISSING.search(text) and not _KEYS.search(text):
        return True
    total = ctx.facts.expected_cases if ctx.facts is not None else None
    for have, all_ in _OF.findall(text) if _COUNTED.search(text) else ():
        known = total == int(all_) or re.search(
            rf"\b{all_} (?:\w{{1,20}} ){{0,3}}(?:cases|patients|images|scans|studies|slices|subjects|volumes|tiles)\b",
            ctx.run.brief,
        )
        if int(have) < int(all_) and known:
            return True
    return False


@detector("geometry_not_carried", code="E5", stage="S5", independence="from_trace")
def geometry_not_carried(ctx: CodeContext) -> Iterable[Finding]:
    """Volumes are saved with an identity affine or none, though the brief wants the input's geometry."""
    final = ctx.final_write
    if final is None or not ctx.handed_over or not _GEOMETRY.search(_asked(ctx.run.brief)):
        return
    code = _current_code(ctx, final)
    blank = _EYE.search(code) or (_FROM_ARRAY.search(code) and "WriteImage(" in code and not _CARRIES.search(code))
    if blank:
        why = "The delivered volumes are saved without the input's affine, which the brief demands."
        yield Finding((final,), why, 0.75)


def _current_code(ctx: CodeContext, final: int) -> str:
    """The code of the last write, with the last version of every script that it names."""
    scripts: dict[str, str] = {}
    for turn in ctx.run.turns[:final]:
        for action in turn.actions:
            for part in split(action):
                name = part.path.rpartition("/")[2]
                if part.kind == "file" and name.endswith(".py"):
                    scripts[name] = part.text
    text = ctx.turn(final).code
    return "\n".join([text, *(body for name, body in scripts.items() if name.removesuffix(".py") in text)])[:400_000]
