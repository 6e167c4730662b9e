"""Whether a run called a model: a loader and a generate call in a successful execution.

The benchmark caps S4 of vqa runs without one. Code is parsed, so that a plan, a comment or a string
that mentions `generate` does not count; a script that was written earlier counts if an execution
runs or imports it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from ...trajectories.models import Run
from ...trajectories.turns.actions import split
from ...trajectories.turns.python_code import parse, walk_by_level
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
_GENERATE_CALLS = {
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
_REMOTE_CALL = re.compile(
    r"\b(?:completions|messages|responses)\.create$|^litellm\.(?:a?completion)$"
)
_FILE_RUNNERS = {"exec", "runpy.run_path", "os.system", "os.popen"}
"""Calls that run a file named in their arguments, beside those of `subprocess`."""
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
"""Owners of methods called like a model's, such as `subprocess.run` and `random.choice`."""
_LOADING_NAME = re.compile(r"load|open|from_|restore|read_model|build|get_model|(?:^|\.)[A-Z]\w+$")
_WEIGHT_FILE = re.compile(
    r"\.(?:pth?|ckpt|bin|safetensors|onnx|gguf|h5|keras|tflite|joblib|pkl|npz|ts|weights)$"
)
_MODEL_COMMAND = re.compile(
    r"\b(?:ollama run \S+|llama-cli\b.{0,200}-m \S+|python[\d.]* -m"
    r" (?:llava|vllm|mlx_vlm|lmdeploy)\b)",
    re.IGNORECASE,
)


def model_call_found(run: Run) -> bool | None:
    """Whether a successful execution loads a model and calls it.

    None if no execution has a known outcome.
    """
    scripts: dict[str, str] = {}
    any_outcome = False
    for _, action in run.actions():
        parts = split(action)
        for part in parts:
            if part.kind == "file" and part.path:
                name = _file_name(part.path)
                earlier = f"{scripts.get(name, '')}\n" if part.append else ""
                scripts[name] = earlier + part.text
        observation = action.observation
        if action.kind != "execute" or observation is None or observation.kind == "unknown":
            continue
        any_outcome = True
        if observation.kind != "ok":
            continue
        shell = [part.text for part in parts if part.kind == "shell"]
        if any(_MODEL_COMMAND.search(text) for text in shell):
            return True
        programs = [part.text for part in parts if part.kind == "python"]
        for text in shell:
            names = [_file_name(path) for path in script_runs(text)]
            programs += [scripts[name] for name in names if name in scripts]
        if _calls_model(programs, scripts):
            return True
    return False if any_outcome else None


def _file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _calls_model(programs: list[str], scripts: dict[str, str]) -> bool:
    """Whether the programs, with the scripts that they import or run, load a model and call it."""
    loads = generates = False
    queue, visited = list(programs), set[str]()
    while queue:
        tree = parse(queue.pop())
        if tree is None:
            continue
        for name in _imported_names(tree):
            if f"{name}.py" in scripts and name not in visited:
                visited.add(name)
                queue.append(scripts[f"{name}.py"])
        program_loads, program_generates = _model_use(tree)
        loads, generates = loads or program_loads, generates or program_generates
    return loads and generates


def _imported_names(tree: ast.Module) -> Iterator[str]:
    """Last names of the modules that a program imports, and names of the .py files it runs."""
    for node in walk_by_level(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")[-1]
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[-1]
        elif isinstance(node, ast.Call) and _runs_file(_dotted_name(node.func)):
            for text in _string_constants(node):
                for word in text.split():
                    if word.endswith(".py"):
                        yield _file_name(word).removesuffix(".py")


def _runs_file(function: str) -> bool:
    return function in _FILE_RUNNERS or function.startswith("subprocess.")


def _model_use(tree: ast.Module) -> tuple[bool, bool]:
    """Whether a program calls a loader and makes a generate call, by the names that it calls."""
    loads = False
    models: set[str] = set()
    for node in walk_by_level(tree):
        if isinstance(node, ast.Call) and _is_load(node):
            loads = True
            name = _dotted_name(node.func)
            if name.endswith(".load_state_dict"):
                models.add(name.removesuffix(".load_state_dict"))
        elif isinstance(node, ast.Assign) and _contains_load(node.value):
            models.update(_assigned_names(node))
    models.discard("")
    generates = any(
        _is_generate(_dotted_name(node.func), models)
        for node in walk_by_level(tree)
        if isinstance(node, ast.Call)
    )
    return loads, generates


def _contains_load(expression: ast.expr) -> bool:
    calls = (node for node in walk_by_level(expression) if isinstance(node, ast.Call))
    return any(_is_load(call) for call in calls)


def _assigned_names(node: ast.Assign) -> Iterator[str]:
    """The names that an assignment binds, those of a tuple included."""
    for target in node.targets:
        yield _dotted_name(target)
        if isinstance(target, ast.Tuple):
            for element in target.elts:
                yield _dotted_name(element)


def _is_generate(name: str, models: set[str]) -> bool:
    """Whether a call of this name lets a model answer; `models` are names that hold a model."""
    if name in models or _REMOTE_CALL.search(name):
        return True
    owner, _, method = name.rpartition(".")
    if method not in _GENERATE_CALLS or not owner or owner.split(".")[0] in _NOT_MODELS:
        return False
    # `run` is the method of too many other things.
    return method != "run" or owner in models


def _is_load(call: ast.Call) -> bool:
    """Whether a call loads a model.

    Either its function is a known loader, or its name suggests loading and an argument names a file
    of weights.
    """
    name = _dotted_name(call.func)
    if _is_loader(name):
        return True
    if _LOADING_NAME.search(name) is None:
        return False
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    texts = (text for argument in arguments for text in _string_constants(argument))
    return any(_WEIGHT_FILE.search(text) for text in texts)


def _string_constants(node: ast.expr) -> Iterable[str]:
    for child in walk_by_level(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value


def _is_loader(name: str) -> bool:
    owner, _, function = name.rpartition(".")
    if function in ("load", "load_file"):
        return bool(_WEIGHT_MODULES & set(owner.split(".")))
    return function in _LOADERS or name.startswith("litellm.")


def _dotted_name(node: ast.AST) -> str:
    """`a.b.c` for a name or attribute; a call in between is written as its function's name.

    The name begins with a dot if its owner is any other expression.
    """
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
