"""Which calls apply a model to something, and which expressions hold what it returned."""

from __future__ import annotations

import ast
import builtins
import re

from .code_names import first_name, last_name, mentions
from .code_reader import Reader
from .syntax_tree import children, descendants

_MODEL_NAME = re.compile(
    r"(?:model|net|unet|clf|vlm|llm|pipe|pipeline|predictor|detector|segmenter|generator|classifier)\d?"
)
_FORWARD_CALLS = {
    "predict", "predict_proba", "predict_one", "generate", "infer", "inference", "forward", "sliding_window_inference",
    "run_inference", "decision_function", "transcribe", "apply_model",
}  # fmt: skip
_NOT_FORWARD = {
    "eval", "to", "cuda", "cpu", "load_state_dict", "parameters", "named_parameters", "state_dict", "train", "modules",
    "children", "half", "float", "named_modules", "requires_grad_", "size", "items", "keys", "values", "get", "buffers",
    "compile", "summary", "fit", "save", "save_pretrained", "zero_grad", "encode_text", "get_inputs", "get_outputs", "update",
}  # fmt: skip
MADE_UP = {"zeros", "randn", "rand", "ones", "randint"}
"""Functions that make an array up: applied to it, a model only shows that it runs."""
WEIGHTS = re.compile(r"\.(?:pth?|ckpt|safetensors|onnx|h5|keras|pkl|joblib|gguf|tflite)\b|state_dict", re.I)
"""Texts that name a file of weights."""
_BUILTINS = frozenset(dir(builtins))


class Forward(Reader):
    """Forward passes and results, told by the names of what is called and by what is known of them."""

    def is_forward(self, node: ast.Call, name: str, base: str) -> bool:
        if isinstance(node.func, ast.Name):
            if name in self.models or (self.no_grad and name in self.params):
                return True
            if (
                self.no_grad
                and node.args
                and name not in _BUILTINS
                and name not in self.foreign
                and _names_a_value(name)
            ):
                return name not in self.module.functions and name not in self.library.functions
            return bool(node.args) and (
                name in _FORWARD_CALLS - {"generate"}
                or (
                    bool(_MODEL_NAME.fullmatch(name.lower()))
                    and name != "pipeline"
                    and name not in self.module.functions
                    and _names_a_value(name)
                )
            )
        if isinstance(node.func, ast.Call | ast.Subscript):
            return bool(node.args) and (self.no_grad > 0 or _loads_weights(node.func) or self.is_model(node.func))
        if isinstance(node.func, ast.Attribute):
            if base in ("np", "numpy", "os", "plt", "pd", "random", "torch", "F", "json", "re"):
                return False
            if name in _FORWARD_CALLS:
                return True
            return (
                base in self.models
                and name not in _NOT_FORWARD
                and bool(node.args)
                and (
                    self.no_grad > 0
                    or name in ("net", "model", "run", "answer", "ask", "detect", "segment", "denoise", "enhance")
                )
            )
        return False

    def is_result(self, node: ast.AST) -> bool:
        """Whether the expression holds values that a model returned, its shape or type alone left out."""
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "dtype", "size", "ndim", "device"):
            return False
        if isinstance(node, ast.Name):
            return node.id in self.results
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name in ("size", "len", "type", "numel", "dim"):
                return False
            if self.is_forward(node, name, first_name(node.func)):
                return not mentions(node, MADE_UP)
        return any(map(self.is_result, children(node)))


def _loads_weights(node: ast.AST) -> bool:
    """A model that is loaded and applied in one expression: zoo.load("unet.pt")(x), load("a.ts").eval()(x)."""
    while isinstance(node, ast.Call):
        function = node.func
        if last_name(function).startswith(("load", "from_pretrained")):
            return any(WEIGHTS.search(str(c.value)) for a in node.args for c in descendants(a) if isinstance(c, ast.Constant))  # fmt: skip
        node = function.value if isinstance(function, ast.Attribute) else function
    return False


def _names_a_value(name: str) -> bool:
    """Not a class: written small, or in capitals as a module's constant (NET)."""
    return name[:1].islower() or name.isupper()
