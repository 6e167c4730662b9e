"""A run as the rules of the heuristic judge see it, and what a rule answers: a value with its reason and its quotes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps

from ...trajectories.failures import Failure, failures
from ...trajectories.features import features
from ...trajectories.models import Run
from ...trajectories.record.quotes import PLAN_TURN, QuoteIndex
from ...trajectories.world import case_ids
from ..scorecard import Evidence
from .programs import Step, clip, steps, without_comments, without_searches

QUOTE_CHARS = 160
"""A quote is one line of at most this many characters: enough to find it, little enough to read."""
MAX_EVIDENCE = 4

Pattern = re.Pattern[str]

LOADS = re.compile(
    r"torch\.load\(|torch\.jit\.load|load_state_dict\(|\.from_pretrained\(|load_model\(|load_weights\(|load_checkpoint\(|safetensors"
    r"|InferenceSession\(|snapshot_download\(|hf_hub_download\(|\bYOLO\(|joblib\.load\(|timm\.create_model\([^\n]*pretrained ?= ?True"
    r"|\bwget\b|\bcurl\b[^\n]*-[oLO]|\bgdown\b|huggingface-cli download|\bhf download|nnUNetv2_download|weights ?= ?[\w.]*(?:DEFAULT|IMAGENET)"
    r"|initialize_from_trained_model_folder|pipeline\(|download_weights|MedSAM|sam_model_registry|(?:Open|Azure)AI\(|anthropic\.Anthropic\("
)
FORWARD = re.compile(
    r"no_grad|inference_mode|\.generate\(|\.predict\(|\.forward\(|sliding_window_inference|\.run\(None|nnUNetv2_predict|predict_from_"
    r"|\bTotalSegmentator\b|\btotalsegmentator\(|chat\.completions|messages\.create\(|\bpipeline\(|\byolo (?:predict|detect)|\.infer\("
)
DUMMY = re.compile(r"\w\(\s*(?:torch|np|numpy)\.(?:random\.\w+|zeros|ones|randn?|empty|full)\(")
"""A call on an invented tensor: it shows that a model answers, not what it makes of a case."""
DELIVERS = re.compile(
    r"agents?_outputs|\b(?:report\.txt|answer\.json|prediction\.json|predictions\.csv|enhanced\.npy|sct\.nii|dseg\.nii|lesion\.nii|organ\.nii)"
)
SAVES = re.compile(
    r"nib\.save\(|np\.savez?(?:_compressed)?\(|json\.dump\(|\.to_csv\(|csv\.(?:Dict)?[wW]riter|\.write\(|\.write_text\(|\.to_filename\("
    r"|\.save\(|imwrite\(|WriteImage\(|imsave\(|\bcp\b|shutil\.copy|savemat\("
)
READS_INPUT = re.compile(
    r"nib\.load\(|nibabel\.load\(|Image\.open\(|imread\(|np\.load\(|dcmread\(|ReadImage\(|read_csv\(|read_parquet\(|json\.loads?\(|h5py\.File\(|open\("
)
CLASSICAL_CALL = re.compile(
    r"threshold_\w+\(|watershed\(|regionprops\(|find_contours\(|findContours\(|HoughCircles\(|blob_\w+\(|denoise_\w+\(|gaussian_filter\(|median_filter\(|KMeans\(|kmeans2?\(|RandomForest|LogisticRegression|(?:ndi|ndimage|measure)\.label\("
)
_CALL = re.compile(r"(?<![\w.])([A-Za-z_]\w{1,60})\(|\.([A-Za-z_]\w{1,60})\(")
_CHECKER = re.compile(r"(?:valid|check|verif|eval|score|metric|submit|lint)[\w-]{0,40}\.py", re.IGNORECASE)
"""A given script that looks at deliverables instead of making them."""
_EDITS_SOURCE = re.compile(r"['\"][\w./~-]{1,120}\.(?:py|sh|ya?ml|toml)['\"]")
_REPLACES = re.compile(r"\.replace\(|\bre\.subn?\(|\.insert\(|splitlines\(")
_SCRIPT_OPTION = re.compile(r"\.py\b[^\n;|&]{0,200}?\s(-{0,2}[a-z][\w-]{2,30})(?=[\s;|&]|$)")
"""A flag or command that a script is started with."""
_DEFINED = re.compile(r"^[ \t]*def (\w{2,60})\(", re.MULTILINE)
_AUXILIARY = re.compile(
    r"(?:^|_)(?:load|read|open|list|get|find|iter|write|save|dump|export|print|show|plot|draw|check|validate|main|log|parse)|(?:path|ids|cases|files)$",
    re.IGNORECASE,
)
"""Names of functions around a method: they read, write or show, and their call applies nothing."""
_LEARNED_WEIGHTS = re.compile(r"[\w/.-]{1,80}\.(?:pth?|onnx|ckpt|safetensors|gguf|tflite|h5)\b")
_ARRAY_ENDING = re.compile(r"\.(?:npz|npy|pkl|pickle|joblib|bin|pb|keras|pdparams|mlmodel)\b")
_ARRAYS = re.compile(rf"(?<![\w.-])/?((?:[\w.<>{{}}*-]{{1,60}}/){{0,8}})([\w-]{{3,60}}){_ARRAY_ENDING.pattern}")
"""Files that hold weights as often as data: their place tells which."""
_MODEL_PLACE = re.compile(r"\b(?:models?|weights|checkpoints?|ckpts?|zoo)/|MODEL_?CARDS?|MODELS\.md", re.IGNORECASE)

_FAMILY = re.compile(
    r"^[ \t]*class ([A-Z]\w{4,40})|(?<![\w.-])([A-Za-z]\w{4,40})\.(?:py\b|from_pretrained\(|load\()", re.MULTILINE
)
_GENERIC_FAMILY = frozenset(
    {"model", "models", "network", "networks", "weights", "detector", "classifier", "segmenter", "generator", "encoder", "checkpoint", "inference", "predict", "common", "utils", "torch"}
)  # fmt: skip


_FOLDER_LOADED = re.compile(r"from_pretrained\(\s*[rf]?['\"]([\w./-]{3,120})['\"]")
_GENERIC_STEMS = _GENERIC_FAMILY | {
    "best", "best_model", "final", "last", "net", "pytorch_model", "pretrained", "public", "data", "ckpt", "diffusion_pytorch_model", "adapter_model",
}  # fmt: skip
"""What any model's file or folder may be called: the word in a plan names none."""


@dataclass(frozen=True)
class Finding:
    """What a rule found. `value` is None when the criterion does not apply (`applies` False)."""

    value: float | None
    rationale: str
    evidence: tuple[Evidence, ...] = ()
    applies: bool = True

    @staticmethod
    def inapplicable(why: str) -> Finding:
        return Finding(None, why, applies=False)


def once_a_step(holds: Callable[[View, Step], bool]) -> Callable[[View, Step], bool]:
    """Remember with the view what holds of a step: several rules ask the same of every turn."""

    @wraps(holds)
    def remembered(view: View, step: Step) -> bool:
        key = (holds.__name__, step.turn)
        if key not in view.known:
            view.known[key] = holds(view, step)
        return view.known[key]

    return remembered


@dataclass
class View:
    """Facts of one run, read once and shared by all rules."""

    run: Run
    index: QuoteIndex = field(init=False)
    known: dict[tuple[str, int], bool] = field(init=False, default_factory=dict, repr=False)
    """What holds of steps, by the question and the turn."""

    def __post_init__(self) -> None:
        self.index = QuoteIndex(self.run)

    # -- facts --------------------------------------------------------------------------------------------------------

    @cached_property
    def failures(self) -> tuple[Failure, ...]:
        return tuple(f for f in failures(self.run) if f.confidence >= 0.6)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """One step a turn, in order."""
        hidden = frozenset((f.turn, f.action) for f in self.failures)
        return steps(self.run, features(self.run), hidden)

    @cached_property
    def cases(self) -> tuple[str, ...]:
        return case_ids(self.run)

    @cached_property
    def plan(self) -> str:
        """The plan's text, "" without one."""
        return clip(self.run.plan.text or "")

    @cached_property
    def notes(self) -> str:
        """The plan and other documents that the agent wrote before the batch (comparisons, model surveys)."""
        texts = [self.plan]
        for turn in self.run.turns[: self.boundary - 1]:
            for action in turn.actions:
                if action.kind == "write" and (action.path or "").endswith((".md", ".txt")):
                    texts.append(clip(action.code))
        return "\n\n".join(t for t in texts if t)

    @cached_property
    def learned(self) -> bool:
        """Whether the run rests on a learned model or a model service.

        A model that was only tried does not count where a classical method made the deliverables in its place.
        """
        if any(s.ok and (s.facts.forward_pass or FORWARD.search(s.code)) for s in self.steps):
            return True
        tried = any(s.facts.loads_model or s.facts.forward_pass or LOADS.search(s.attempted) for s in self.steps)
        return tried and not any(s.ok and self.delivers(s) and self._classical(s) for s in self.steps)

    @once_a_step
    def _classical(self, step: Step) -> bool:
        code = step.code
        return (
            step.facts.classical_method
            or bool(CLASSICAL_CALL.search(code))
            or (self.delivers(step) and bool(READS_INPUT.search(code)))
        )

    @once_a_step
    def loads(self, step: Step) -> bool:
        """A succeeded step reads or fetches weights, or opens a model service."""
        return (
            step.ok
            and not step.usage_only
            and (step.facts.loads_model or step.facts.obtains_weights or bool(LOADS.search(step.code)))
        )

    @once_a_step
    def applies_model(self, step: Step) -> bool:
        """A succeeded step applies the model (or the classical method, in a run without a learned one)."""
        if not step.ok or step.usage_only:
            return False
        if self.learned:
            forward = bool(FORWARD.search(without_searches(step.code))) and not self.ruled_out(step)
            return step.facts.forward_pass or forward or self._applies_replacement(step)
        return self._classical(step) or self.runs_tool(step) or bool(self.method_functions & _calls(step.own))

    def _applies_replacement(self, step: Step) -> bool:
        """A step applies the classical method that made the deliverables after a learned model was given up."""
        functions, calls = self.replacement
        return bool(functions & _calls(step.own)) or bool(calls and calls & set(CLASSICAL_CALL.findall(step.own)))

    @cached_property
    def replacement(self) -> tuple[frozenset[str], frozenset[str]]:
        """The run's own functions and the library calls of a delivered classical method, in a run that also tried a
        learned model; empty when a model made the deliverables."""
        last = self.batches[-1] if self.batches else None
        if last is None or last.facts.forward_pass or FORWARD.search(last.code) or self.loads(last):
            return frozenset(), frozenset()
        return self.method_functions, frozenset(CLASSICAL_CALL.findall(last.code))

    @once_a_step
    def runs_tool(self, step: Step) -> bool:
        """A succeeded step starts a tool that came with the task on an input, with a deliverable as its output."""
        return step.ok and any(
            DELIVERS.search(line) and self._names_input(line) and not _CHECKER.search(line) for line in step.started
        )

    def _names_input(self, line: str) -> bool:
        """A command line has an argument beside its deliverable that lies where the inputs lie, or is a loop variable."""
        words = [w for w in line.split() if not DELIVERS.search(w) and not w.endswith(".py")]
        return any(w.startswith("$") or "/" in w or any(case in w for case in self.cases[:500]) for w in words)

    @cached_property
    def method_functions(self) -> frozenset[str]:
        """Functions of the agent's own that a full run (also a failed one) calls: the classical method, when there is
        no learned model. Those that read, write or show are left out."""
        defined = {name for s in self.steps for name in _DEFINED.findall(s.attempted)}
        called: set[str] = set()
        for step in self.steps:
            if self.is_batch(step):
                called |= _calls(step.attempted)
        return frozenset(n for n in called & defined if not _AUXILIARY.search(n))

    @once_a_step
    def delivers(self, step: Step) -> bool:
        """The step's executed code writes deliverables."""
        if step.usage_only:
            return False
        code = step.attempted
        if step.facts.writes_plan and not DELIVERS.search(code) and not self.runs_tool(step):
            return False  # the text of the plan, which is no part of `attempted`, speaks of deliverables
        if step.facts.writes_outputs or self.runs_tool(step):
            return True
        if step.facts.module_only or not DELIVERS.search(code):
            return False
        for text in step.programs:
            if _EDITS_SOURCE.search(text) and _REPLACES.search(text) and not DELIVERS.search(text):
                code = code.replace(without_comments(text), "")  # what it saves is a script
        return bool(SAVES.search(code)) and not self.ruled_out(step)

    @once_a_step
    def ruled_out(self, step: Step) -> bool:
        """The step only starts a script with an option of its own (`--check`) whose branch applies no model and writes
        nothing: the reading of that script got as far as its inputs or weights and saw neither."""
        facts = step.facts
        if not facts.run_paths or not (facts.loads_inputs or facts.loads_model) or FORWARD.search(step.own):
            return False
        if facts.has("forward_pass", "writes_outputs", "applies_module", "classical_method", "shows_results"):
            return False
        options = [option for line in step.own.split("\n") for option in _SCRIPT_OPTION.findall(line)]
        return any(
            re.search(rf"['\"]{re.escape(option)}['\"]", step.attempted.replace(step.own, "")) for option in options
        )

    @once_a_step
    def broad(self, step: Step) -> bool:
        """The step runs over at least half of the cases."""
        share = step.facts.cases_share
        if step.facts.cases_scope == "all" or (share is not None and share >= 0.5 and len(step.facts.cases) != 1):
            return True
        if len(self.cases) >= 4 and step.ok:
            named = sum(1 for case in self.cases if case in step.out)
            return named * 2 >= len(self.cases)
        return False

    @once_a_step
    def is_batch(self, step: Step) -> bool:
        """An attempt to make the deliverables of (nearly) all cases."""
        if not step.facts.executed or not self.delivers(step):
            return False
        reads_only = step.facts.checks_outputs and not (step.facts.forward_pass or FORWARD.search(step.attempted))
        return self.broad(step) and not reads_only

    @cached_property
    def batches(self) -> tuple[Step, ...]:
        """Full runs that succeeded, in order."""
        return tuple(s for s in self.steps if s.ok and self.is_batch(s))

    @cached_property
    def boundary(self) -> int:
        """The turn of the first full run that succeeded; one past the last turn when there was none."""
        return self.batches[0].turn if self.batches else len(self.run.turns) + 1

    @cached_property
    def before(self) -> tuple[Step, ...]:
        """Succeeded steps before the first full run that succeeded, attempts of a full run left out."""
        return tuple(s for s in self.steps if s.ok and s.turn < self.boundary and not self.is_batch(s))

    @cached_property
    def weight_names(self) -> frozenset[str]:
        """Lower-case stems of weight files that the environment showed or code named, and of the model family that they
        begin with: a class or module of that name was shown (`DermaTalk`, `sonowriter.py`)."""
        names: set[str] = set()
        shown: set[str] = set()
        for step in self.steps:
            for text in (step.out, step.attempted):
                names.update(_called_after(m) for m in _LEARNED_WEIGHTS.findall(text))
                names.update(_called_after(f"{m}/model.pt") for m in _FOLDER_LOADED.findall(text))
            shown.update((a or b).lower() for a, b in _FAMILY.findall(step.out))
        names |= self._array_weights()
        names |= {name for name in shown - _GENERIC_FAMILY if any(n.startswith(name) for n in names)}
        return frozenset(n for n in names if len(n) >= 3 and n not in _GENERIC_STEMS)

    def _array_weights(self) -> set[str]:
        """Lower-case stems of array and pickle files that lie with the models: named under a folder of models, or shown
        by a step that reads cards or lists such a folder, and no file of a case."""
        found: set[str] = set()
        data = {stem.lower() for folder, stem in _ARRAYS.findall(self.run.brief) if not _MODEL_PLACE.search(folder)}
        for step in self.steps:
            reads = bool(_MODEL_PLACE.search(step.attempted))
            for text, here in ((step.out, reads), (step.attempted, False)):
                if not _ARRAY_ENDING.search(text):
                    continue
                for folder, stem in _ARRAYS.findall(text):
                    if _MODEL_PLACE.search(folder) or (here and not folder):
                        found.add(stem.lower())
                    elif folder:
                        data.add(stem.lower())
        # A plain word (lung.npz) stands in plans without meaning the file.
        return {stem for stem in found - data if re.search(r"[\d_-]", stem)}

    # -- quotes -------------------------------------------------------------------------------------------------------

    def quote(self, turn: int, *patterns: Pattern | str, where: str = "code out text") -> Evidence | None:
        """Evidence from a turn: the first line, in the places and by the patterns in their order, that really stands there."""
        texts = self._texts(turn, where)
        for pattern in patterns:
            compiled = re.compile(pattern, re.IGNORECASE) if isinstance(pattern, str) else pattern
            for text in texts:
                for line in text.split("\n"):
                    match = compiled.search(line[:MAX_SCAN])
                    if match and (found := self._check(turn, line, match.start())):
                        return found
        return None

    def any_line(self, turn: int, where: str = "out code text") -> Evidence | None:
        """Evidence from a turn: its first line with words."""
        return self.quote(turn, r"[A-Za-z]{2}.*[A-Za-z0-9]", where=where)

    def plan_quote(self, *patterns: Pattern | str) -> Evidence | None:
        """Evidence from the plan, at the turn that wrote the line where that is known."""
        for pattern in patterns:
            compiled = re.compile(pattern, re.IGNORECASE) if isinstance(pattern, str) else pattern
            for line in self.plan.split("\n"):
                match = compiled.search(line) or compiled.search(line.replace("**", "").replace("`", ""))
                if match is None:
                    continue
                for turn in (*self.plan_turns, PLAN_TURN):
                    if found := self._check(turn, line, match.start()):
                        return found
        return None

    def notes_quote(self, words: str) -> Evidence | None:
        """Evidence that these words stand in the plan, or in another document or message before the full run."""
        pattern = re.escape(words.strip()[:80])
        found = self.plan_quote(pattern)
        for turn in self.run.turns[: self.boundary - 1]:
            found = found or self.quote(turn.index, pattern, where="code text")
        return found

    @cached_property
    def plan_turns(self) -> tuple[int, ...]:
        """Turns whose code speaks of plan.md, those that write it first."""
        writing = [s.turn for s in self.steps if s.facts.writes_plan]
        naming = [t.index for t in self.run.turns if t.index not in writing and "plan.md" in t.code]
        return (*writing, *naming)

    def _texts(self, turn: int, where: str) -> list[str]:
        if not 1 <= turn <= len(self.run.turns):
            return []
        found = self.run.turns[turn - 1]
        texts: list[str] = []
        for place in where.split():
            if place == "text":
                texts.append(found.text)
            elif place == "code":
                texts += [a.code for a in found.actions if a.code]
            elif place == "out":
                texts += [a.observation.text for a in found.actions if a.observation is not None]
        return [clip(text) for text in texts]

    def _check(self, turn: int, line: str, at: int) -> Evidence | None:
        for quote in _cuts(line, at):
            found = self.index.check(turn, quote)
            if found.check == "verified":
                return found
        return None


MAX_SCAN = 2_000


def _calls(code: str) -> set[str]:
    """Names of the functions and methods that code calls; definitions are no calls."""
    return {a or b for a, b in _CALL.findall(_DEFINED.sub("", code))}


def _called_after(path: str) -> str:
    """Lower-case name that a plan gives to weights: the file's stem, or its folder's where every model's file is called so."""
    folder, _, name = path.rpartition("/")
    stem = name.rsplit(".", 1)[0].lower()
    return folder.rpartition("/")[2].lower() if folder and stem in _GENERIC_STEMS else stem


def _cuts(line: str, at: int) -> list[str]:
    """Ways to cut a line to a quote that holds the match: whole, from its start, or a window of whole words."""
    whole = line.strip()
    if len(whole) <= QUOTE_CHARS:
        return [whole] if whole else []
    at -= len(line) - len(line.lstrip())
    if at < QUOTE_CHARS - 40:
        return [_words(whole[:QUOTE_CHARS], False), whole[: QUOTE_CHARS - 1].rstrip("\\ ")]
    window = whole[max(0, at - 40) : at - 40 + QUOTE_CHARS]
    return [_words(window, True), window.strip("\\ ")]


def _words(text: str, both: bool) -> str:
    """`text` without the words that a cut left broken at its end (and start)."""
    if " " in text[1:-1]:
        text = text[: text.rindex(" ")]
        if both and " " in text.strip():
            text = text[text.index(" ") + 1 :]
    return text.strip().rstrip("\\")


def met(view: View, rationale: str, *evidence: Evidence | None, value: float = 1.0) -> Finding:
    """A positive finding with the evidence that there is, each turn and quote once."""
    kept: list[Evidence] = []
    for item in evidence:
        if item is not None and all((item.turn, item.quote) != (k.turn, k.quote) for k in kept):
            kept.append(item)
    return Finding(value, rationale, tuple(kept[:MAX_EVIDENCE]))


def unmet(rationale: str, *evidence: Evidence | None) -> Finding:
    """A zero that says what was looked for; evidence, where something speaks against it."""
    return Finding(0.0, rationale, tuple(e for e in evidence if e is not None)[:MAX_EVIDENCE])
