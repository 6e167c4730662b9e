"""The facts of one run, as a judge is shown them: flags with their reasons, files, measures, failed
steps, findings.

Everything is known without reading a sentence or a program. Delivered files are opened by the
checks' own readers: no pickles, no links that leave the run, headers and first kilobytes only; what
cannot be opened is a fact itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from statistics import median

from ...error_codes.context import CodeContext, code_context
from ...error_codes.models import FiredCode
from ...error_codes.output_facts import OutputIssue
from ...error_codes.trace_facts import finding_facts, trace_facts
from ...sanitize import sanitize_line
from ...tracks import TRACKS
from ...trajectories.models import OutputFile, Run, Segmentation
from ...trajectories.reading.layout import Fence
from ...trajectories.record.facts import Fact, FactSource, number_facts
from ..checks.check_outputs import OutputCheck
from ..checks.nifti import volume_head
from ..checks.untrusted_files import (
    Refused,
    checked_size,
    fence_of,
    image_size,
    npy_head,
    read_json,
)
from ..scoring.formulas import VALID_SHARE

MAX_FACTS = 60
MAX_CHARS = 12_000
_SHARES = ((25, 4_000), (9, 2_300), (7, 1_500), (12, 2_700), (6, 1_300))
"""(facts, characters) of each part, in order; what one leaves goes to the next, so that no part
crowds out those after it."""
_LINE = 800
_HEAD = 300
_HEAD_BYTES = 4_096
_MAX_KEYED = 64 * 1024
"""Bytes of a JSON file up to which its keys are read."""
_KINDS, _OTHERS = 6, 8
"""Kinds of files whose head is shown, and how many others of a kind are held beside it."""
_VIOLATIONS = 6
_ALIKE = 4
"""Files of different names and one suffix from which they are one kind."""
_CASES = 40
_TEXTS = 3
"""Different texts of one kind of problem from which they share a line."""
_TEXT_SUFFIXES = frozenset(
    {".json", ".jsonl", ".csv", ".tsv", ".txt", ".md", ".yaml", ".yml", ".log"}
)
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp"})
_NOT_THERE = frozenset({"missing", "misnamed", "misplaced", "link"})


def run_facts(
    run: Run,
    segmentation: Segmentation,
    check: OutputCheck,
    found: Sequence[FiredCode],
    ctx: CodeContext | None = None,
) -> tuple[Fact, ...]:
    """At most 60 facts and 12,000 characters, numbered F1..; a last one counts what was left out.

    `found`: codes of the detectors, of which those marked as facts are shown, without the code.
    `ctx`: the run's context where there is one already.
    """
    ctx = ctx if ctx is not None else code_context(run, segmentation)
    parts = (
        (*_flags(run, check), *_problems(check), *_harness(run)),
        tuple(_files(run)),
        tuple(_measures(check)),
        trace_facts(ctx),
        finding_facts(found),
    )
    return number_facts(_bounded(parts))


def _bounded(parts: Sequence[Sequence[Fact]]) -> list[Fact]:
    kept: list[Fact] = []
    left_out: Counter[str] = Counter()
    count = chars = 0
    for part, (facts, size) in zip(parts, _SHARES, strict=True):
        count, chars = count + facts, chars + size
        for fact in part:
            text = sanitize_line(fact.text[: 2 * _LINE])
            text = text if len(text) <= _LINE else f"{text[: _LINE - 14]} ... (cut here)"
            if not count or len(text) > chars:
                left_out[fact.kind] += 1
                continue
            count, chars = count - 1, chars - len(text)
            case = None if fact.case is None else _name(fact.case)
            kept.append(fact.model_copy(update={"text": text, "case": case}))
    if left_out:
        shown = ", ".join(f"{n} {kind}" for kind, n in left_out.most_common(5))
        text = f"{sum(left_out.values())} more facts are not listed here, by kind: {shown}."
        kept.append(Fact(kind="left_out", text=text[:200], source="trace"))
    return kept


# -- flags
_SOURCES = {
    "files": "delivered files that were opened",
    "report": "the harness report, as no files came with the run",
    "trace": "the answer to the submission, as neither files nor a report came with the run",
    None: "nothing: neither files, report nor answer say it",
}
_FROM = {
    "public": "the public inputs",
    "agent_summary": "agent_summary.json",
    "report": "the counts of the harness report",
    "submit": "the answer to the submission",
    "trace": "ids that the run itself listed",
    None: "nobody",
}


def _flags(run: Run, check: OutputCheck) -> Iterator[Fact]:
    """What the checks concluded, each with its reason."""
    s4, s5 = check.s4_checks, check.s5_checks
    source: FactSource = "file" if s4.source == "files" else "harness"
    if check.track is None:
        yield _fact(
            "unchecked", "The track of the run is unknown: its outputs were not checked.", "trace"
        )
        return
    lacking = [fact for case in check.cases if not case.delivered for fact in case.facts]
    lacking += [fact for fact in check.run_facts if fact.kind in _NOT_THERE]
    fatal = [fact for fact in check.facts if fact.fatal]

    expected = "unknown" if s4.expected_cases is None else str(s4.expected_cases)
    said = (
        f"How many outputs were expected: {expected}, said by {_FROM[s4.cases_from]}; outputs known"
        f" from {_SOURCES[s4.source]}."
    )
    yield _fact("source", said, source)
    if s4.completion is None:
        yield _fact(
            "completion", "Completion is unknown: nobody says which cases were expected.", source
        )
    else:
        full = (
            ""
            if s4.complete_cases is None
            else f", {s4.complete_cases} of {expected} cases complete"
        )
        why = "" if s4.completion >= 1 else f", {_because(lacking or fatal, s4.source)}"
        yield _fact("completion", f"Completion {s4.completion:.3g}{full}{why}.", source)
    yield _fact(
        "format_valid", f"Output format valid: {_valid(s4.format_valid, fatal, s4.source)}.", source
    )
    if s5.format_valid != s4.format_valid:
        why = _valid(s5.format_valid, fatal, s4.source)
        if s4.parse_rate is not None:
            why = (
                f"{_yes(s5.format_valid)}, as {s4.parse_rate:.3g} of the answers are valid (needed:"
                f" {VALID_SHARE:g})"
            )
        yield _fact("submission_valid", f"Format of the submission valid: {why}.", source)
    yield _fact("has_valid_results", f"Valid results: {_results(check)}.", source)
    if s4.parse_rate is not None:
        why = "" if s4.parse_rate >= 1 else f", {_because(fatal, s4.source)}"
        yield _fact(
            "parse_rate",
            "Share of the expected questions with an answer that can be read:"
            f" {s4.parse_rate:.3g}{why}.",
            source,
        )
    if s4.placeholder_rate is not None:
        hollow = [fact for fact in check.facts if fact.kind == "placeholder"]
        why = "" if not s4.placeholder_rate else f", {_because(hollow, s4.source)}"
        yield _fact(
            "placeholder_rate",
            f"Share of answers that are placeholders: {s4.placeholder_rate:.3g}{why}.",
            source,
        )
    if s4.model_call_found is not None:
        text = (
            "A model is loaded and called in an execution that worked:"
            f" {_yes(s4.model_call_found)}, by the names of the calls."
        )
        yield _fact("model_call", text, "trace")
    for reason in s4.caps:
        yield _fact("cap", f"The score of the outputs (S4) is limited: {reason}.", source)
    for stage, cap in check.stage_caps.items():
        yield _fact(
            "cap", f"The score of {stage} is limited to {cap.value:g}: {cap.reason}.", source
        )
    for warning in check.warnings:
        yield _fact("note", f"About the outputs: {warning}.", source)


def _valid(valid: bool | None, fatal: Sequence[OutputIssue], source: str | None) -> str:
    if valid is None:
        return "unknown, as nothing says so"
    if valid:
        return (
            "yes, by the harness report"
            if source == "report"
            else "yes, no check of the expected cases names a breach"
        )
    return f"no, {_because(fatal, source)}"


def _results(check: OutputCheck) -> str:
    """has_valid_results with what decides it: a valid output where one is enough, else a metric
    above zero."""
    track = TRACKS.find(check.track)
    has, one_output_suffices = (
        check.s5_checks.has_valid_results,
        track is not None and track.one_output_suffices,
    )
    if has is None:
        return "unknown, as the run brings no metric of the harness"
    if has:
        return (
            "yes, at least one output is valid"
            if one_output_suffices
            else "yes, a metric of the harness is above zero"
        )
    if check.cases and not any(case.delivered for case in check.cases):
        return "no, because no expected case was delivered"
    if check.cases and not any(case.valid for case in check.cases):
        return "no, because no delivered output is valid"
    return "no, because no metric of the harness is above zero"


def _because(facts: Sequence[OutputIssue], source: str | None) -> str:
    """The most frequent reasons, or that there is none."""
    if not facts:
        return (
            "as the harness report says, and gives no reason"
            if source == "report"
            else "no check names a problem"
        )
    cases: dict[str, list[str]] = {}
    for fact in facts:
        cases.setdefault(_words(fact), []).append(_name(fact.case) if fact.case else "")
    first = sorted(cases.items(), key=lambda item: -len(item[1]))[:2]
    words = [f"{_where(names, 30)}{text[:160]}" for text, names in first]
    more = f"; and {len(cases) - 2} other problems" if len(cases) > 2 else ""
    return f"because {'; '.join(words)}{more}"


def _problems(check: OutputCheck) -> Iterator[Fact]:
    """Every problem that the checks name, those that break the format first; equal ones of many
    cases share a line."""
    source: FactSource = "file" if check.s4_checks.source == "files" else "harness"
    kinds: dict[tuple[bool, str], dict[str, list[str]]] = {}
    for fact in check.facts:
        texts = kinds.setdefault((not fact.fatal, fact.kind), {})
        texts.setdefault(_words(fact), []).append(_name(fact.case) if fact.case else "")
    for (forgiven, kind), texts in sorted(kinds.items(), key=lambda item: item[0][0]):
        end = "the format check forgives it" if forgiven else "this makes the output invalid"
        if len(texts) <= _TEXTS:
            lines = [(f"{_where(cases)}{text}", cases) for text, cases in texts.items()]
        else:
            every = [name for cases in texts.values() for name in cases]
            each = _listed((f"{_where(cases)}{text}" for text, cases in texts.items()), 500, "; ")
            lines = [(f"{len(every)} problems of the kind {kind!r}: {each}", every)]
        for text, cases in lines:
            only = cases[0] if len(cases) == 1 and cases[0] else None
            yield Fact(
                kind=kind,
                text=f"{text.rstrip('.')}; {end}.",
                source=source,
                case=only,
                fatal=not forgiven,
            )


def _words(fact: OutputIssue) -> str:
    text = " ".join(fact.text[:600].split())
    return (
        text if fact.case or not fact.file or fact.file in text else f"{_name(fact.file)}: {text}"
    )


def _where(cases: Sequence[str], room: int = 300) -> str:
    named = [case for case in cases if case]
    if not named:
        return ""
    return (
        f"{named[0]}: " if len(named) == 1 else f"in {len(named)} cases ({_listed(named, room)}): "
    )


# -- the harness
_ENDED = {
    "submitted": "by handing over its results",
    "stopped": "by a closing message, without a submission",
    "breach": "by a breach of the rules",
    "cut": "cut off: killed, out of turns, or in an unanswered call",
}


def _harness(run: Run) -> Iterator[Fact]:
    """The harness's own words: its report's flags and counts, its answer to the submission,
    violations. No scores."""
    status, report = run.status, run.report
    # nothing to submit with
    foreign = status.ended == "stopped" and (run.track is None or run.imported is not None)
    ended = "by a closing message" if foreign else _ENDED[status.ended]
    yield _fact("ended", f"The run ended {ended} (turn {len(run.turns)}).", "trace", len(run.turns))
    if report is None:
        yield _fact("report", "No report of the harness came with the run.", "harness")
    else:
        flags = (
            ("output format valid", report.output_format_valid),
            ("submission format valid", report.submission_format_valid),
            ("decision csv valid", report.decision_csv_valid),
            ("breach", report.breached),
        )
        counts = (
            ("completion rate", report.completion_rate),
            ("valid", report.n_valid),
            ("expected", report.n_expected),
        )
        said = [f"{name}: {_yes(value)}" for name, value in flags if value is not None]
        said += [f"{name}: {value:.4g}" for name, value in counts if value is not None]
        yield _fact(
            "report",
            f"The harness report says: {', '.join(said) or 'no flag and no count'}.",
            "harness",
        )
    answer = run.submit_result
    if answer is not None:
        turn = next((t.index for t, a in run.actions() if a.kind == "submit"), len(run.turns))
        said = [f"{_name(str(key))}: {_brief(value)}" for key, value in list(answer.items())[:20]]
        yield _fact(
            "submit_answer",
            f"The harness answered the submission: {_listed(said, 400)}.",
            "harness",
            turn,
        )
    if status.disqualified:
        yield _fact(
            "disqualified", "The harness disqualified the run.", "harness", status.breach_turn
        )
    for violation in status.violation_records[:_VIOLATIONS]:
        text = f"The harness recorded a violation: {' '.join(violation.text[:600].split())[:240]}"
        yield _fact("violation", text, "harness", violation.turn)
    rest = tuple(sorted({violation.turn for violation in status.violation_records[_VIOLATIONS:]}))
    if rest:
        text = (
            f"The harness recorded {len(status.violation_records) - _VIOLATIONS} more violations."
        )
        yield Fact(kind="violations", text=text, turns=rest, source="harness")


def _brief(value: object) -> str:
    """A value of the harness's answer in a few words."""
    if isinstance(value, (list, tuple)):
        return (
            f"{len(value)} ({_listed((_name(str(item)[:200]) for item in value[:8]), 200)})"
            if value
            else "none"
        )
    if isinstance(value, Mapping):
        return f"{len(value)} entries"
    return _yes(value) if isinstance(value, bool) else _name(str(value)[:400], 80)


# -- delivered files
def _files(run: Run) -> Iterator[Fact]:
    """How many files of each kind there are, the head of one of each, and where others of the kind
    differ from it."""
    if run.outputs.root is None:
        yield _fact("files", "No folder of delivered files came with the run.", "file")
        return
    if not run.outputs.files:
        yield _fact("files", "The folder of delivered files is empty.", "file")
        return
    kinds = _kinds(run.outputs.files)
    within = [f"{name} {len(files)} times" for name, files in kinds if files[0].case is not None]
    alone = [(name, len(files)) for name, files in kinds if files[0].case is None]
    beside = [f"{name} {count} times" if count > 1 else name for name, count in alone]
    text = f"Delivered: {len(run.outputs.files)} files in {len(run.outputs.cases)} case folders"
    text += f"; of the cases: {_listed(within, 350)}" if within else ""
    text += f"; beside the case folders: {_listed(beside, 250)}" if beside else ""
    yield _fact("files", f"{text}.", "file")
    shown = [
        (name, files)
        for name, files in kinds
        if _suffix(files[0].name) in _TEXT_SUFFIXES | _IMAGES | _ARRAYS
    ]
    for name, files in shown[:_KINDS]:
        yield from _kind(fence_of(run), name, files)


_ARRAYS = frozenset({".npy", ".nii", ".nii.gz"})


def _kinds(files: Sequence[OutputFile]) -> list[tuple[str, list[OutputFile]]]:
    """Name -> files, those of the cases first, the most frequent first; names that stand once go by
    their suffix if they are many."""
    places = [(file.case is None, PurePosixPath(file.name).name) for file in files]
    times = Counter(places)
    single = Counter(
        (beside, _suffix(name)) for (beside, name), count in times.items() if count == 1
    )
    kinds: dict[tuple[bool, str], list[OutputFile]] = {}
    for file, (beside, name) in zip(files, places, strict=True):
        alone = times[beside, name] == 1 and single[beside, _suffix(name)] >= _ALIKE
        kinds.setdefault((beside, f"*{_suffix(name)}" if alone else name), []).append(file)
    ordered = sorted(kinds.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1]))
    return [
        (_name(name), sorted(found, key=lambda f: (f.case or "", f.name)))
        for (_, name), found in ordered
    ]


def _kind(root: Fence, name: str, files: Sequence[OutputFile]) -> Iterator[Fact]:
    first = files[0]
    head, form = _head(first, root)
    case = None if first.case is None else _name(first.case)
    yield Fact(kind="file_head", text=f"The file {_place(first)} {head}", source="file", case=case)
    rest = files[1:]
    looked = rest[:: max(1, math.ceil(len(rest) / _OTHERS))]
    others = [(file, _form(file, root)) for file in looked] if form is not None else []
    unlike = [
        f"{_place(file)} {other}" for file, other in others if other is not None and other != form
    ]
    if unlike:
        text = (
            f"{len(unlike)} of {len(others)} other files {name} that were looked at differ from"
            f" {_place(first)} ({form}): "
        )
        yield _fact("files_differ", text + _listed(unlike, 400, "; "), "file")


def _head(file: OutputFile, root: Fence) -> tuple[str, str | None]:
    """(what the file holds, its form as `_form` gives it) in words."""
    form = _form(file, root)
    if _suffix(file.name) not in _TEXT_SUFFIXES:
        return f"{form}.", form
    try:
        checked_size(file.path, root)
        with file.path.open("rb") as opened:
            start = opened.read(_HEAD_BYTES)
    except (Refused, OSError) as error:
        return (
            (
                "cannot be opened:"
                f" {error.text if isinstance(error, Refused) else 'the system refuses it'}."
            ),
            form,
        )
    if not start.strip():
        return "is empty.", form
    if b"\0" in start:
        return f"is binary; its first bytes are {start[:8].hex(' ')}.", form
    lines = [" ".join(line.split()) for line in start.decode("utf-8", "replace").splitlines()]
    text = (" " if file.name.endswith(".json") else "\n").join(line for line in lines if line)
    more = "" if len(text) <= _HEAD and len(start) < _HEAD_BYTES else " ..."
    keys = f" has {form} and" if form is not None and file.name.endswith(".json") else ""
    return f"{keys} begins: {sanitize_line(text[:_HEAD])}{more}".strip(), form


def _form(file: OutputFile, root: Fence) -> str | None:
    """What files of one kind should have in common: shape and type, keys, or the header; None where
    that says nothing.

    A broken file says that it is, whatever its kind.
    """
    path, suffix = file.path, _suffix(file.name)
    try:
        if suffix == ".npy":
            array = npy_head(path, root)
            return f"holds an array of shape {array.shape} and type {_name(str(array.dtype))}"
        if suffix in (".nii", ".nii.gz"):
            volume = volume_head(path, root)
            spacing = (math.hypot(*map(float, volume.affine[:3, axis])) for axis in range(3))
            size = " x ".join(f"{step:.3g}" for step in spacing)
            return (
                f"holds a volume of shape {volume.shape}, type {volume.dtype} and spacing {size} mm"
            )
        if suffix in _IMAGES:
            return "holds an image of {} x {} pixels".format(*image_size(path, root))
        if suffix == ".json":
            return _keys(read_json(path, root)) if checked_size(path, root) <= _MAX_KEYED else None
        if suffix in (".csv", ".tsv"):
            checked_size(path, root)
            with path.open("rb") as opened:
                line = opened.readline(_HEAD_BYTES)
            return f"has the header {_name(line.decode('utf-8', 'replace'), 120)}"
    except Refused as refused:
        return f"is broken: it {refused.text}"
    except (OSError, ValueError, ArithmeticError):
        return "cannot be opened"
    return None


def _keys(value: object) -> str:
    if isinstance(value, dict):
        return (
            f"the keys {_listed([_name(str(key)) for key in sorted(value, key=str)], 160)}"
            if value
            else "no keys"
        )
    if isinstance(value, list):
        return (
            f"a list of objects with {_keys(value[0])}"
            if value and isinstance(value[0], dict)
            else "a list"
        )
    return "a single value"


# -- measures
def _measures(check: OutputCheck) -> Iterator[Fact]:
    """One line a quantity that the checks measured in the delivered files."""
    columns: dict[str, dict[str, float]] = {}
    for case, values in sorted(check.s4_checks.measures.items()):
        for name, value in values.items():
            if math.isfinite(value):
                columns.setdefault(name, {})[case] = value
    track = TRACKS.find(check.track)
    unit = f" ({track.unit})" if track is not None and track.unit else ""
    for name, column in columns.items():
        low, high = min(column, key=column.__getitem__), max(column, key=column.__getitem__)
        shown = [f"{_name(case, 24)} {value:.4g}" for case, value in list(column.items())[:_CASES]]
        more = f" and {len(column) - _CASES} more cases" if len(column) > _CASES else ""
        span = (
            f"min {column[low]:.4g} in {_name(low, 24)}, median {median(column.values()):.4g}, max"
            f" {column[high]:.4g} in {_name(high, 24)}"
        )
        text = f"{_listed(shown, 520)}{more} ({span})"
        if column[low] == column[high] and len(column) > 1:
            text = f"{column[low]:.4g} in all {len(column)} cases"
        yield _fact(
            "measure",
            f"{_name(name)}{unit}, measured in the delivered file of each case: {text}.",
            "file",
        )


def _fact(kind: str, text: str, source: FactSource, turn: int | None = None) -> Fact:
    return Fact(kind=kind, text=text, source=source, turns=(turn,) if turn else ())


def _yes(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def _name(text: str, most: int = 60) -> str:
    """A name that a stranger chose, on one line and short."""
    line = sanitize_line(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _place(file: OutputFile) -> str:
    return _name(f"{file.case}/{file.name}" if file.case is not None else file.name, 80)


def _suffix(name: str) -> str:
    lower = name.lower()
    return ".nii.gz" if lower.endswith(".nii.gz") else PurePosixPath(lower).suffix


def _listed(parts: Iterable[str], room: int, between: str = ", ") -> str:
    """As many parts as have room (characters), at least one, and how many are left."""
    shown, left = list[str](), 0
    for part in parts:
        room -= len(part) + len(between)
        if room < 0 and shown:
            left += 1
        else:
            shown.append(part)
    return between.join(shown) + (f" and {left} more" if left else "")
