"""What a failure of access was about: the models (weight files, hub names) and packages that code and message name."""

from __future__ import annotations

import re
from itertools import pairwise

from ..trajectories.actions import split
from ..trajectories.any_case import AnyCase
from ..trajectories.failures import Failure, find_errors
from ..trajectories.models import Action

_EXTENSION = r"(?:pth?|onnx|ckpt|safetensors|h5|hdf5|keras|pkl|joblib|bin|tflite|pb|msgpack|torchscript|gguf|whl)"
WEIGHTS = re.compile(rf"(?<![\w.-])([A-Za-z][\w.-]{{1,80}}?)\.{_EXTENSION}\b")
_SIDE_FILE = re.compile(
    r"/(?:models?|weights|checkpoints?|zoo)/(?:[\w.-]{1,60}/){0,3}([A-Za-z][\w.-]{1,80}?)\.(?:json|txt|model|ya?ml|vocab|zip|t?gz|tar)\b"
)
_HUB = AnyCase(
    r"(?:from_pretrained|hf_hub_download|snapshot_download|create_model|hub\.load|load_model|huggingface-cli download|hf download|git clone|model(?:_id|_name)?=)"
    r"[(\s]{0,3}[^\n'\"]{0,60}?['\"]?(?:https?://[\w.-]{1,80}/)?([\w.-]{1,60}/[\w.-]{2,80})"
)
_HUB_CALL = re.compile(r"from_pretrained|hf_hub_download|snapshot_download|hub\.load\b|\bpipeline\(")
_HUB_NAME = re.compile(r"['\"]([A-Za-z][\w.-]{1,60}/[A-Za-z][\w.-]{1,80})['\"]")
"""A hub id on its own in quotes: a list of candidates that a loop goes through."""
_PULL = re.compile(
    r"\b(?:ollama|docker|podman|modelscope|kaggle models|bentoml models) (?:pull|run|download|get)(?: -{1,2}[\w-]{1,20})* ([A-Za-z][\w.-]{1,60})"
)
_PACKAGE = re.compile(
    r"No module named '?([A-Za-z]\w{1,40})|(?:requirement|found for) '?([A-Za-z][\w-]{1,40})\b|cannot import name .{1,80} from '([A-Za-z]\w{1,40})|\b([A-Za-z]\w{1,40})-\d[\w.]{0,20}-\w{2,12}-\w{2,20}-[\w.]{2,60}\.whl"
)

_INSTALLS = re.compile(r"\b(?:pip3?|conda|mamba|uv pip)(?: -m pip)? install ([^\n;|&>]{1,300})")
_OPTION = re.compile(
    r"-{1,2}(?:index-url|extra-index-url|find-links|target|prefix|[itfr])(?:=|\s{1,3})\S{1,200}|(?<!\S)-{1,2}[\w-]{1,30}"
)
_DISTRIBUTION = re.compile(r"(?<![\w./=-])([A-Za-z][\w-]{1,60})(?:\[[\w,]{1,40}\])?(?=[=<>~!\s'\"]|$)")
GENERAL = frozenset({
    "numpy", "scipy", "pandas", "torch", "torchvision", "torchaudio", "pil", "pillow", "cv2", "opencv",
    "opencv_python", "skimage", "scikit_image", "sklearn", "scikit_learn", "matplotlib", "nibabel", "simpleitk",
    "sitk", "pydicom", "monai", "einops", "timm", "transformers", "tokenizers", "sentencepiece", "safetensors",
    "accelerate", "onnxruntime", "onnx", "tqdm", "yaml", "pyyaml", "h5py", "tensorflow", "keras", "jax", "requests",
    "pip", "versions", "setuptools", "wheel", "huggingface_hub", "pywt", "pywavelets", "imageio", "tifffile", "nltk",
    "spacy", "protobuf", "numba", "bitsandbytes", "flash_attn", "lightning", "pytorch_lightning", "hydra", "omegaconf",
    "gdcm", "pylibjpeg", "seaborn", "the", "a", "an",
})  # fmt: skip
"""Libraries of general use: their lack is met by another tool and takes no model away."""


_NO_NAMES = frozenset({"pip", "ensurepip", "venv", "versions", "setuptools", "wheel", "the", "and"})
"""What stands where a package's name does: the installer's own parts, and words of its messages."""


def models_in(code: str) -> frozenset[str]:
    """Weight files and hub names that code names."""
    hubs = [*(m[1] for m in _HUB.finditer(code)), *(_HUB_NAME.findall(code) if _HUB_CALL.search(code) else ())]
    names = {*WEIGHTS.findall(code), *_PULL.findall(code), *(hub.rpartition("/")[2] for hub in hubs)}
    return frozenset(name for name in names if len(name) > 2)


def names_of(action: Action, failure: Failure) -> tuple[frozenset[str], frozenset[str]]:
    """Models (files, hub names) and packages that a failed action was about."""
    said = failure.message
    if action.observation is not None:
        said = "\n".join([said, *(e.message for e in find_errors(action.observation.text[-8_000:]))])
    code = "\n".join(p.text for p in split(action) if p.kind != "file")[:60_000]
    packages = {"".join(groups) for groups in _PACKAGE.findall(said)}
    for rest in _INSTALLS.findall(code):
        packages |= set(_DISTRIBUTION.findall(_OPTION.sub(" ", rest)))
    models = {*models_in(code), *_SIDE_FILE.findall(code), *WEIGHTS.findall(said)}
    if action.observation is not None and not models:
        # The call stands in a module; the traceback quotes it.
        models |= {m for line in _quoted(action.observation.text) for m in models_in(line)}
    models = {m for m in models if not m.startswith(tuple(f"{p}-" for p in packages))}
    return frozenset(n for n in models if len(n) > 2), frozenset(
        p for p in packages if len(p) > 2 and p not in _NO_NAMES
    )


def _quoted(text: str) -> list[str]:
    """Lines of the agent's own code that tracebacks quote."""
    lines = text[-20_000:].splitlines()
    return [
        after[:600]
        for line, after in pairwise(lines)
        if line.lstrip().startswith('File "') and "-packages/" not in line
    ]


def machine(failure: Failure, names: tuple[frozenset[str], frozenset[str]]) -> bool:
    """Whether a failure is a look at the machine (a missing command, a full disk) that names no model and no package."""
    return failure.family in ("shell", "disk", "permission", "path") and not any(names)


def unrelated(
    one: Failure, names: tuple[frozenset[str], frozenset[str]], other: tuple[frozenset[str], frozenset[str]]
) -> bool:
    """Whether two failures of access are about different things. Models stand in for one another, packages do not.

    `one` and `names` are the later failure and what it names, `other` what the earlier ones name.
    """
    (models, packages), (known_models, known_packages) = names, other
    if models & known_models or packages & known_packages:
        return False
    if machine(one, names):
        return True
    optional = not models and bool(packages) and all(_plain(p) in GENERAL for p in packages)
    before = not known_models and bool(known_packages) and all(_plain(p) in GENERAL for p in known_packages)
    if not models and not known_models and packages and known_packages:
        return True
    return optional or (before and bool(models | packages))


def _plain(package: str) -> str:
    return package.lower().replace("-", "_")
