"""Whether a run called a model: a loader and a generate call in a successful execution
(benchmark.md section 4, vqa).

Code is parsed, so that a plan, a comment or a string that merely speaks of `generate` counts for
nothing; a script that was written earlier counts when an execution runs or imports it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ...trajectories.models import Run
from ...trajectories.turns.actions import split
from ...trajectories.turns.python_code import parse
from ...trajectories.turns.shell import script_runs

_LOADERS = {
    "from_pretrained",
    "pipeline",
    "load_state_dict",
    "load_model",
    "load_checkpoint",
    "load_weights",
    "load_file",
    "create_model",
    "load_model_and_preprocess",
    "load_pretrained_model",
    "InferenceSession",
    "Llama",
    "LLM",
    "OpenAI",
    "Anthropic",
    "InferenceClient",
}
_WEIGHT_MODULES = {"torch", "jit", "joblib", "safetensors"}
_GENERATES = {
    "generate",
    "batch_generate",
    "generate_content",
    "chat",
    "batch_chat",
    "answer",
    "answer_question",
    "predict",
    "infer",
    "forward",
    "run",
    "completion",
    "create_chat_completion",
    "chat_completion",
    "text_generation",
    "visual_question_answering",
}
_REMOTE = re.compile(r"\b(?:completions|messages|responses)\.create$|^litellm\.(?:a?completion)$")
_STARTS = {"exec", "runpy.run_path", "os.system", "os.popen"}
"""Calls that run a file which they name."""
_NOT_MODELS = {
    "subprocess",
    "asyncio",
    "loop",
    "np",
    "numpy",
    "plt",
    "app",
    "unittest",
    "pytest",
    "random",
}
_LOADING = re.compile(r"load|open|from_|restore|read_model|build|get_model|(?:^|\.)[A-Z]\w+$")
_WEIGHTS = re.compile(
    r"\.(?:pth?|ckpt|bin|safetensors|onnx|gguf|h5|keras|tflite|joblib|pkl|npz|ts|weights)$"
)
_COMMAND = re.compile(
    r"\b(?:ollama run \S+|llama-cli\b.{0,200}-m \S+|python[\d.]* -m"
    r" (?:llava|vllm|mlx_vlm|lmdeploy)\b)",
    re.IGNORECASE,
)


def model_call_found(run: Run) -> bool | None:
    """True when a successful execution loads a model and calls it; None when no execution has a
    known outcome."""
    scripts: dict[str, str] = {}
    known = False
    for _, action in run.actions():
        parts = split(action)
        for part in parts:
            if part.kind == "file" and part.path:
                name = part.path.rsplit("/", 1)[-1]
                scripts[name] = (
                    scripts.get(name, "") + "\n" + part.text if part.append else part.text
                )
        if (
            action.kind != "execute"
            or action.observation is None
            or action.observation.kind == "unknown"
        ):
            continue
        known = True
        if action.observation.kind != "ok":
            continue
        texts = [part.text for part in parts if part.kind == "python"]
        for part in parts:
            if part.kind == "shell":
                if _COMMAND.search(part.text):
                    return True
                texts += [
                    scripts[n]
                    for n in (p.rsplit("/", 1)[-1] for p in script_runs(part.text))
                    if n in scripts
                ]
        if _calls_model(texts, scripts):
            return True
    return False if known else None


def _calls_model(texts: list[str], scripts: dict[str, str]) -> bool:
    loads = generates = False
    queue, seen = list(texts), set[str]()
    while queue:
        tree = parse(queue.pop())
        if tree is None:
            continue
        for name in _imports(tree):
            if f"{name}.py" in scripts and name not in seen:
                seen.add(name)
                queue.append(scripts[f"{name}.py"])
        loaded, generated = _model_use(tree)
        loads, generates = loads or loaded, generates or generated
    return loads and generates


def _imports(tree: ast.Module) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[-1] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[-1]
        elif isinstance(node, ast.Call) and (
            _dotted(node.func) in _STARTS or _dotted(node.func).startswith("subprocess.")
        ):
            words = (word for text in _texts(node) for word in text.split())
            yield from (
                word.rsplit("/", 1)[-1].removesuffix(".py")
                for word in words
                if word.endswith(".py")
            )


def _model_use(tree: ast.Module) -> tuple[bool, bool]:
    """(a loader is called, a generate call is made), by the names that are called."""
    loads = generates = False
    models: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _loads(node):
            loads = True
            if _dotted(node.func).endswith(".load_state_dict"):
                models.add(_dotted(node.func).removesuffix(".load_state_dict"))
        if isinstance(node, ast.Assign) and any(
            _loads(c) for c in ast.walk(node.value) if isinstance(c, ast.Call)
        ):
            models.update(_dotted(target) for target in node.targets)
            models.update(
                _dotted(e) for t in node.targets if isinstance(t, ast.Tuple) for e in t.elts
            )
    models.discard("")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _dotted(node.func)
            owner, _, last = name.rpartition(".")
            if name in models or _REMOTE.search(name):
                generates = True
            elif last in _GENERATES and owner and owner.split(".")[0] not in _NOT_MODELS:
                generates = generates or last != "run" or owner in models
    return loads, generates


def _loads(call: ast.Call) -> bool:
    """Whether a call loads a model: by its name, or any function whose name speaks of loading that
    is given a file of weights."""
    name = _dotted(call.func)
    if _is_loader(name):
        return True
    given = (text for a in (*call.args, *(k.value for k in call.keywords)) for text in _texts(a))
    return _LOADING.search(name) is not None and any(_WEIGHTS.search(text) for text in given)


def _texts(node: ast.expr) -> Iterable[str]:
    return (
        n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    )


def _is_loader(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    if last in ("load", "load_file"):
        return bool(_WEIGHT_MODULES & set(owner.split(".")))
    return last in _LOADERS or name.startswith("litellm.")


def _dotted(node: ast.AST) -> str:
    """`a.b.c` of a name or attribute; a call in between is written as its function's name."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Name):
            return ".".join((node.id, *reversed(parts)))
        else:
            return ".".join(("", *reversed(parts))) if parts else ""
