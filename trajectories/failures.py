"""Failed executions read from what the environment answered: tracebacks, exit codes, shell, package and device errors.

`failures(run)` gives at most one `Failure` an action: the error that ended it, with the causes that led there. What an
agent wrote itself (code, text) is never read. A text is scanned once, line by line, with patterns that cannot
backtrack over more than one line, so that megabytes of output stay cheap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from .any_case import AnyCase
from .memo import once_a_run
from .models import Action, Frozen, Observation, Run

Family = Literal[
    "code", "syntax", "package", "path", "permission", "device", "memory", "disk", "network", "model", "timeout",
    "killed", "blocked", "shell", "tool", "exit",
]  # fmt: skip
ENVIRONMENT: frozenset[Family] = frozenset(
    {"package", "path", "permission", "device", "memory", "disk", "network", "model"}
)
"""Families that speak of access to data, models, packages, APIs or resources (E2), not of the agent's own code (E4)."""

_LINE_LIMIT = 1_000
_MESSAGE_LIMIT = 300


class Failure(Frozen):
    """One failed action. `action` counts from 0 within the turn; `message` is one line of at most 300 characters."""

    turn: int
    action: int
    kind: str
    """Exception type (without module), or a short name: "pip", "command not found", "exit 1", "timeout", ..."""
    family: Family
    message: str
    environment: bool
    """The blocker was access to data, model, package, API or resource."""
    frame: str | None = None
    """`file:line in function` of the innermost frame that is not library code, if a traceback showed one."""
    signature: str = ""
    """kind, frame function and message without numbers, paths and quotes: equal when the same thing failed again."""
    chain: tuple[str, ...] = ()
    """Exception types of a chained traceback, first cause first; one element or none otherwise."""
    exit_code: int | None = None
    hidden: bool = False
    """The environment reported success or nothing: an exit code swallowed by a pipe, a `|| true`, a caught exception."""
    confidence: float = 1.0
    """How sure it is that the action failed, in [0, 1]; below 0.6 it is a hint only (a message in passing output)."""


class Finding(NamedTuple):
    """One error found in a text: where its last line starts, and what it says."""

    line: int
    kind: str
    family: Family
    message: str
    confidence: float
    frame: str | None = None
    chain: tuple[str, ...] = ()
    cut: bool = False
    in_library: bool = False
    """The innermost frame is library code: packages that do not fit each other rather than a wrong call."""


# What a message says about its cause, most specific first; read on the final lines of tracebacks and on plain lines.
_CAUSES: tuple[tuple[Family, AnyCase], ...] = (
    ("memory", AnyCase(
        r"out of memory|OutOfMemoryError|can't allocate memory|cannot allocate memory|unable to allocate|bad_alloc"
        r"|^MemoryError|insufficient memory")),
    ("device", AnyCase(
        r"no kernel image is available|not compiled with cuda|cuda error|no nvidia driver|no cuda gpus|cudnn error"
        r"|CUBLAS_STATUS|CUDNN_STATUS|cuda driver version|device-side assert|Attempting to deserialize object on a cuda"
        r"|invalid device ordinal|nvidia-smi has failed|no gpu (?:is )?(?:available|found)|nvidia driver on your system|cuda (?:is )?(?:not available|unavailable)"
        r"|insufficient (?:gpu|driver)|mps backend out")),
    ("disk", AnyCase(r"no space left on device|disk quota exceeded")),
    ("model", AnyCase(
        r"error\(s\) in loading state_dict|size mismatch for |unexpected key\(s\) in state_dict|missing key\(s\) in state_dict"
        r"|invalid load key|UnpicklingError|weights only load failed|PytorchStreamReader|not a valid model identifier"
        r"|does not appear to have a file named|can't load (?:the (?:model|config)|(?:\w{1,12} )?(?:tokenizer|config|feature|processor))|SafetensorError"
        r"|does not recognize this architecture|unrecognized (?:model|configuration class|processing class) |tokenizer class \S{1,60} does not exist"
        r"|couldn't instantiate the backend tokenizer|unable to load (?:weights|vocabulary|tokenizer)"
        r"|INVALID_PROTOBUF|INVALID_GRAPH|\[ONNXRuntimeError\] : \d{1,2} : NOT_IMPLEMENTED|Protobuf parsing failed|unknown (?:layer|builtin op)\b|invalid magic number"
        r"|kMaxSupportedFileFormatVersion|require users to upgrade torch|git[ -]?lfs pointer|is (?:only )?a(?:n lfs)? pointer\b|load model .{0,200} failed|unsupported model IR version|No Op registered for"
        r"|file signature not found|HeaderTooLarge|InvalidHeaderDeserialization|MetadataIncompleteBuffer|deserializing header"
        r"|failed finding central directory|pickle data was truncated|Ran out of input|file might be corrupted|not in gzip format"
        r"|does not look like a tar archive|End-of-central-directory signature|unknown (?:model|architecture)\b|git-lfs\.github\.com/spec"
        r"|no file named (?:pytorch_model|model\.)|couldn't find (?:any )?(?:model|checkpoint|weights)"
        r"|checkpoint .{0,60}(?:not found|does not exist)|could not load model|RepositoryNotFound|GatedRepo"
        r"|RevisionNotFound|EntryNotFound|DatasetNotFound|couldn't find .{0,80} on the (?:hugging ?face )?hub")),
    ("network", AnyCase(
        r"max retries exceeded|connection (?:refused|reset|aborted|timed out|error)|ConnectionError|ConnectTimeout|ReadTimeout"
        r"|name resolution|could not resolve host|name or service not known|no such host|dial tcp\b|i/o timeout|network is unreachable|SSLError|SSL: "
        r"|certificate verify failed|ProxyError|NewConnectionError|RemoteDisconnected|IncompleteRead|cas service error"
        r"|failed to establish a new connection|unable to resolve host|HTTP Error \d|HTTPError|client error|server error"
        r"|(?:status|error|http)[ :]+(?:code )?(?:401|403|404|407|429|500|502|503|504)\b|too many requests|rate ?limit"
        r"|\b(?:401 Unauthorized|403 Forbidden|404 Not Found)|api[ _-]?key|AuthenticationError|unauthorized"
        r"|licen[cs]e (?:key|file|server|check|required|expired|not found)|\bLicen[cs]eError|valid licen[cs]e|activation key|PermissionDenied: 403|quota (?:exceeded|exhausted)|insufficient_quota|gated repo|you must (?:be authenticated|have access)"
        r"|couldn't connect to '?https?://|outgoing traffic has been disabled"
        r"|OfflineModeIsEnabled|LocalEntryNotFound|URLError|WebFetch|unable to access 'http")),
    ("package", AnyCase(
        r"ModuleNotFoundError|No module named|ImportError|cannot import name|DLL load failed|PackageNotFoundError"
        r"|DistributionNotFound|VersionConflict|externally-managed-environment|could not find a version|no matching distribution"
        r"|ResolutionImpossible|conflicting dependencies|subprocess-exited-with-error|metadata-generation-failed"
        r"|failed building wheel|failed to build|could not build wheels|could not install packages|PackagesNotFoundError"
        r"|ResolvePackageNotFound|UnsatisfiableError|LibMambaUnsatisfiable|no solution found|unable to locate package"
        r"|no installation candidate|ensurepip is not available|no such file or directory: '[^']{0,80}\.so"
        r"|module compiled against API version|exec format error|Microsoft Visual C\+\+|command '(?:gcc|g\+\+|cc|nvcc|cmake|x86_64-[\w-]{1,40})'|docker daemon|is not a (?:supported|valid) wheel|requires a different Python|invalid ELF header|wrong ELF class|undefined symbol: "
        r"|cannot open shared object file|numpy\.dtype size changed|compiled using NumPy 1|_ARRAY_API not found"
        r"|there is no package called|\bloadNamespace\(|Error in library\(|GLIBC\w*_[\d.]+' not found|fatal error: \S+\.h(?:pp)?: no such file"
        r"|module '[\w.]{1,60}' has no attribute|requires? (?:the )?[\w.-]{1,40} (?:library|package)")),
    ("permission", AnyCase(r"PermissionError|permission denied|operation not permitted|read-only file system")),
    ("timeout", AnyCase(r"TimeoutExpired|TimeoutError|timed out")),
    ("path", AnyCase(r"FileNotFoundError|NotADirectoryError|IsADirectoryError|no such file or directory")),
    ("syntax", AnyCase(r"^(?:SyntaxError|IndentationError|TabError)\b|syntax error")),
)  # fmt: skip
_API_MISUSE = re.compile(r"cannot import name|has no attribute")
_FETCHES = re.compile(
    r"\bpip3? install\b|\bconda (?:install|create|env)\b|\bapt(?:-get)? install\b|\buv (?:pip|add|sync)\b|\bwget\b|\bcurl\b"
    r"|\bgit clone\b|snapshot_download|hf_hub_download|huggingface-cli|urlretrieve|load_dataset\("
)
_INPUT_PATH = re.compile(
    r"data|model|checkpoint|ckpt|weight|input|image|public|/mnt|share|corpus|\.(?:nii|pt|pth|onnx|safetensors|npy|csv|h5|h5ad|dcm)\b",
    re.IGNORECASE,
)
_OWN_PATH = re.compile(r"output|result|log|workspace|config|/tmp|figure|plot", re.IGNORECASE)
_NO_COMMAND = re.compile(r"No such file or directory: '[\w+-]{1,40}'$")
_INSTALLER = re.compile(
    r"subprocess-exited-with-error|originates from a subprocess|Failed to build|failed-wheel-build|metadata-generation-failed"
)
_NO_MODULE = re.compile(r"No module named '?([A-Za-z_]\w{0,60})'?\s*$")
_MODULE_FILE = re.compile(r"(?:>{1,2}|tee|open\(|Path\(|/workspace)[^\n]{0,120}?\b([A-Za-z_]\w{0,60})\.py\b")
"""A Python file that the run writes or keeps in its own folder."""
_LOCALHOST = re.compile(r"localhost|127\.0\.0\.1|0\.0\.0\.0")

_HEADER = "Traceback (most recent call last)"
_FRAME = re.compile(r'\s*File "([^"\n]{1,400})", line (\d+)(?:, in (\S{1,120}))?')
_FINAL = re.compile(
    r"\s*(?:\w{0,20}: )?((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{1,80}|[a-z_]\w{0,40}\.error|(?:[a-z_]\w{0,40}\.){1,6}\w{0,40}(?:Error|Exception|error))"
    r"(?:: ?(.*))?$"
)
_TYPE_NAME = re.compile(r"(?:Error|Exception|Interrupt|Exit|Expired|Warning|Timeout|NotFound|Invalid|Iteration|error)$")
_BARE_FINAL = re.compile(
    r"((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Expired))(?:: ?(.*))?$"
)
_CAUGHT = re.compile(
    r"(?:^|.{0,200}?[\s:=(\[|>!-])((?:[A-Za-z_]\w{0,60}\.){0,4}(?:[A-Z]\w{0,60}(?:Error|Exception)|StopIteration(?=\()))(?=[:(,] ?\S| [^\s\d=(]|\)?$)"
)
_CODE_LINE = re.compile(r"\s*(?:raise|except|import|from|class|def|return|if|assert|with|#|>>>|\w{1,40} = )")
_CATCHES = re.compile(r"\bexcept\b|\|\||2>&1|\.py\b|tryCatch")
"""Code in which an error can end a step without ending the action."""
_UNREADABLE = frozenset({
    "JSONDecodeError", "BadZipFile", "BadGzipFile", "EOFError", "UnicodeDecodeError", "UnpicklingError", "ParseError", "ReadError",
})  # fmt: skip
_UNREAD = re.compile(
    r"Can't get attribute|unsupported pickle protocol|cannot work out file type|corrupt|can(?:not|'t) (?:open|read|decode|parse) |unknown file format|version mismatch|\[Errno 22\] Invalid argument|truncated|unexpected (?:EOF|end of)|not a zip file|bad magic",
    re.IGNORECASE,
)
"""Words of an error that means a file cannot be read; of a model's own file that is a matter of access."""
_READS_ASSET = re.compile(
    r"(?=[^\n]{0,400}(?:load|open|read|extract|parse))[^\n]{0,400}(?:models?/|weights?/|checkpoints?/|tokenizer|vocab|\.(?:pth?|onnx|ckpt|safetensors|h5|whl)\b)",
    re.IGNORECASE,
)
_LOADER = re.compile(
    r'/(?:torch/serialization|torch/jit/_serialization|joblib/numpy_pickle\w{0,10}|safetensors/\w{1,20}|onnxruntime/capi/\w{1,60}|keras/[\w/]{0,60}saving\w{0,10}|h5py/_hl/files)\.py", line \d{1,6}, in (?=\w{0,40}(?:load|open|read|init|restore|create))'
)
"""A frame of a library's own reader of weight files: an error below it is the file's."""
_CALLED_WRONG = frozenset({"TypeError", "AttributeError", "NameError"})
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_PREFIX = re.compile(r"^(?:\[rank\d+\]: ?|E {2,}(?=\w)|\s*[|+]-?[ +-]*(?=\S))")
_LIBRARY = re.compile(r"site-packages|dist-packages|/lib/python\d|<frozen |/runpy\.py|<__array_function__")

# Plain lines: pattern, kind, family (None: read from the message), confidence when the exit code does not say failure.
_LINES: tuple[tuple[re.Pattern[str], str, Family | None, float], ...] = (
    (re.compile(r"\s*error: externally-managed-environment"), "pip", "package", 0.95),
    (re.compile(r"\s*ERROR: (?:Could not find a version|No matching distribution|Could not install packages|Cannot install"
                r"|Failed building wheel|Failed to build|Could not build wheels|ResolutionImpossible|Invalid requirement"
                r"|HTTP error|Exception:|Package .{1,80} requires a different Python|.{1,300} is not a (?:supported|valid) wheel"
                r"|Wheel .{1,200} is invalid|Directory .{1,200} is not installable|.{1,200} does not appear to be a Python project"
                r"|Ignored the following versions)"), "pip", "package", 0.95),
    (re.compile(r"(?:gzip|gunzip|tar|xz|bzip2|7z): .{0,300}(?:not in gzip format|does not look like|unexpected end of file|not recoverable)"
                r"|\s*End-of-central-directory signature not found"), "archive", "model", 0.9),
    (re.compile(r"Resolving \S{1,200} .{0,120}failed: "), "download", "network", 0.9),
    (re.compile(r"\s*ERROR: Could not open requirements file"), "pip", "path", 0.95),
    (re.compile(r"\s*(?:error: (?:subprocess-exited-with-error|metadata-generation-failed|failed-wheel-build)"
                r"|× (?:No solution found|Failed to build|Encountered error while))"), "pip", "package", 0.9),
    (re.compile(r"\S{0,200}python[\d.]*: No module named \S"), "No module", "package", 0.9),
    (re.compile(r"Failed to build \S|ERROR: Failed to build"), "pip", "package", 0.9),
    (re.compile(r"(?:\S{1,40} \S{1,40} )?ERROR [45]\d\d: "), "download", "network", 0.9),
    (re.compile(r"(?:PackagesNotFoundError|ResolvePackageNotFound|UnsatisfiableError|CondaHTTPError|LibMambaUnsatisfiableError"
                r"|EnvironmentLocationNotFound|CondaError|EnvironmentNameNotFound)\b"), "conda", "package", 0.95),
    (re.compile(r"E: (?:Unable to|Could not|Package|Sub-process|Failed|The repository|Version)"), "apt", "package", 0.9),
    (re.compile(r"npm ERR!|npm error "), "npm", "package", 0.8),
    (re.compile(r"Error in (?:library|loadNamespace|install\.packages)\("), "R package", "package", 0.9),
    (re.compile(r"(?:Error in .{1,200}? ?: ?$|Error in .{1,120}\) : |Execution halted)"), "R error", "code", 0.8),
    (re.compile(r"(?:\S{1,200}: )?(?:line \d{1,6}: )?[^:\n]{1,200}: (?:command )?not found\s*$"), "command not found", "shell", 0.6),
    (re.compile(r"\S{0,80}python[\d.]*: can't open file"), "can't open file", "path", 0.95),
    (re.compile(r"\S{0,100}(?:ba|da|z|k)?sh: (?:line )?\d*:? ?.{1,300}: No such file or directory\s*$"), "No such file", "path", 0.7),
    (re.compile(r"\S{0,100}(?:ba|da|z|k)?sh: .{1,300}: Permission denied\s*$"), "Permission denied", "permission", 0.8),
    (re.compile(r"\S{0,100}(?:ba|da|z|k)?sh: .{0,200}(?:syntax error|unexpected EOF|event not found)"), "shell syntax", "syntax", 0.9),
    (re.compile(r"(?:cp|mv|rm|mkdir|tar|unzip|touch|chmod|chown|ln|tee|install|gzip|gunzip): .{0,300}"
                r"(?:No such file or directory|Permission denied|Not a directory|cannot \w+|Cannot \w+|File exists|Read-only)"),
     "shell tool", None, 0.6),
    (re.compile(r"(?:ls|cat|cd|head|tail|grep|find|stat|sed|awk|du|wc|file|less|diff|which|xargs|sort|tree): .{1,300}"
                r"(?:No such file or directory|Permission denied|cannot access|can't read|Not a directory|Is a directory)"),
     "look-up", None, 0.3),
    (re.compile(r"\S{1,200}: \d{1,6}: .{1,200}: not found\s*$"), "command not found", "shell", 0.6),
    (re.compile(r"(?:curl: \(\d+\)|wget: |fatal: (?:unable to access|repository|could not read|clone of)|ssh: |git@)"), "download", "network", 0.9),
    (re.compile(r"fatal: not a git repository"), "git", "path", 0.4),
    (re.compile(r"\S{1,200}:\d{1,7}:(?:\d{1,5}:)? (?:fatal )?error: "), "compiler", None, 0.9),
    (re.compile(r"(?:/\S{0,80})?(?:collect2: error|ld: |/usr/bin/ld: cannot)|.{0,80}undefined reference to"), "linker", "code", 0.8),
    (re.compile(r"(?:\S{1,40}/)?g?make(?:\[\d+\])?: \*\*\* "), "make", "code", 0.9),
    (re.compile(r"\s*(?:RuntimeError: )?CUDA out of memory|torch\.(?:cuda\.)?OutOfMemoryError"), "CUDA OOM", "memory", 0.8),
    (re.compile(r"(?:\S{0,200}: line \d+: +\d+ )?Killed(?:\s|$)|oom-kill|Out of memory: Killed"), "killed", "killed", 0.8),
    (re.compile(r"(?:\S{0,200}: line \d+: +\d+ )?(?:Segmentation fault|Bus error|Aborted \(core|Illegal instruction)"), "segfault", "killed", 0.8),
    (re.compile(r"terminate called after throwing|double free or corruption|free\(\): invalid|munmap_chunk"), "abort", "killed", 0.8),
    (re.compile(r"<tool_use_error>"), "tool error", "tool", 0.9),
    (re.compile(r"(?:String to replace not found|File has not been read yet|InputValidationError|File does not exist\."
                r"|No such tool available|Found \d+ matches of the string|No changes to make: old_string"
                r"|File has been (?:modified|unexpectedly)|Command timed out|Error: No such tool)"), "tool error", "tool", 0.9),
    (re.compile(r"(?:Failed the \w+ code execution test|Your solution failed the \w+ code execution)"), "execution failed", "code", 0.9),
    (re.compile(r"(?:Error|ERROR): \S"), "error message", None, 0.4),
    (re.compile(r"(?:Error|Exception) (?:while|when|during|in|loading|running|processing|executing) "), "error message", None, 0.4),
)  # fmt: skip
_TRIGGER = AnyCase(
    r"error|exception|not found|no such|denied|killed|fault|abort|fatal|traceback|cannot|can't|failed|no module|terminate"
    r"|exist|not been|timed out|matches of|no changes|been modified"
    r"|no solution|not in gzip|does not look|central-dir|halted|e: |make|interrupt|expired|undefined|exit|cas service|free\(|curl|wget|wrong|npm|too_long|File \"")  # fmt: skip


@once_a_run
def failures(run: Run) -> tuple[Failure, ...]:
    """Every failed action of the run, in order; at most one an action. Hints (confidence < 0.6) are among them."""
    own: set[str] = set()
    found: list[Failure] = []
    for turn in run.turns:
        for slot, action in enumerate(turn.actions):
            written = f"> {action.path}\n" if action.kind in ("write", "edit") else ""
            own.update(_MODULE_FILE.findall(written + action.code[:200_000]))
            failure = action_failure(turn.index, slot, action)
            if failure is None:
                continue
            missing = _NO_MODULE.search(failure.message)
            if failure.family == "package" and missing is not None and missing[1] in own:
                # A module of the run's own that is not where it is looked for is no missing package.
                failure = failure.model_copy(update={"environment": False, "family": "code"})
            found.append(failure)
    return tuple(found)


def action_failure(turn: int, slot: int, action: Action) -> Failure | None:
    """The failure of one action, or None: a success, an unanswered call, or a file shown that happens to name errors."""
    observation = action.observation
    if observation is None or action.kind in ("todo", "submit"):
        return None
    failed = observation.kind in ("failed", "timeout", "blocked")
    if observation.kind == "blocked":
        return _failure(turn, slot, observation, Finding(0, "blocked", "blocked", _first_line(observation.text), 1.0))
    # A file or page that was merely shown may quote any error; only short tool errors count there.
    shown = action.kind in ("read", "search", "web") and not failed
    found = (
        None
        if shown and len(observation.text) > 600
        else _worst(observation, failed, bool(_CATCHES.search(action.code[:60_000])))
    )
    if shown and (found is None or found.family != "tool"):
        return None
    if observation.kind == "timeout":
        message = found.message if found and found.family == "timeout" else _first_line(observation.text)
        # Waiting for a download or an installer is access, waiting for one's own loop is not.
        family: Family = "network" if _FETCHES.search(action.code[:200_000]) else "timeout"
        return _failure(turn, slot, observation, Finding(0, "timeout", family, message, 1.0))
    code = observation.exit_code
    if code in (137, 139, 134, 136, 143, -9, -11) and (found is None or found.family not in ("memory", "killed")):
        found = Finding(0, f"exit {code}", "killed", _last_line(observation.text), 1.0)
    elif code == 124:
        found = Finding(0, "timeout", "timeout", _last_line(observation.text), 1.0)
    unread = found is not None and (
        found.kind in _UNREADABLE
        or _UNREAD.search(found.message) is not None
        or (
            found.in_library
            and found.kind not in _CALLED_WRONG
            and _LOADER.search(observation.text[-40_000:]) is not None
        )
    )
    if found is not None and unread and found.family == "code" and _reads_asset(action):
        found = found._replace(family="model")
    if found is None:
        if not failed:
            return None
        # Exit 1 without any error text is how grep, diff, test and pgrep say "no".
        last = _last_line(observation.text)
        family = "tool" if action.kind not in ("execute", "other") else _cause(last, "exit")
        quiet = family == "exit" and code == 1 and len(observation.text.strip()) < 400 and action.language != "python"
        found = Finding(0, "tool error" if family == "tool" else f"exit {code}", family, last, 0.5 if quiet else 0.7)
    elif failed and found.family in ("code", "exit") and _INSTALLER.search(observation.text[-40_000:]):
        # An error inside a package's own build is the package's.
        found = found._replace(family="package", confidence=0.9)
    elif failed and found.confidence < 0.9:
        probe = found.kind == "look-up"
        found = found._replace(confidence=0.4 if probe else 0.9)
    return _failure(turn, slot, observation, found)


def find_errors(text: str) -> tuple[Finding, ...]:
    """All errors that a text shows, in order: tracebacks (whole, chained, cut at either end) and single error lines."""
    return tuple(_scan(text))


def _failure(turn: int, slot: int, observation: Observation, found: Finding) -> Failure:
    family = found.family
    environment = family in ENVIRONMENT
    if family == "path" and (_OWN_PATH.search(found.message) or not _INPUT_PATH.search(found.message)):
        environment = False  # a file of the agent's own making that is not where it was looked for
    if family == "shell" or _NO_COMMAND.search(found.message):
        environment = True  # a missing command is a missing tool
    if family == "package" and _API_MISUSE.search(found.message) and not found.in_library:
        environment = False  # the agent's own line asks for a name that the installed package does not have
    if family == "network" and _LOCALHOST.search(found.message):
        environment = False  # the agent's own service is not up
    if family == "killed":
        environment = found.kind not in ("segfault", "abort", "exit 139", "exit 134", "exit 136", "exit -11")
    message = " ".join(found.message.split())[:_MESSAGE_LIMIT]
    function = found.frame.rpartition(" in ")[2] if found.frame and " in " in found.frame else ""
    return Failure(
        turn=turn, action=slot, kind=found.kind, family=family, message=message, environment=environment,
        frame=found.frame, signature=f"{found.kind}|{function}|{normalise(message)}", chain=found.chain,
        exit_code=observation.exit_code, confidence=found.confidence,
        hidden=observation.kind in ("ok", "unknown") and family != "tool",
    )  # fmt: skip


def normalise(message: str) -> str:
    """A message without what changes from one attempt to the next: numbers, addresses, paths and quoted values."""
    text = re.sub(r"0x[0-9a-fA-F]+", "#", message[:_MESSAGE_LIMIT])
    text = re.sub(r"(?:/[\w.+-]+){2,}/?", "<path>", text)
    text = re.sub(r"\d+(?:\.\d+)?", "#", text)
    return " ".join(text.lower().split())[:160]


def _worst(observation: Observation, failed: bool, catches: bool = False) -> Finding | None:
    """The error that speaks for the action: the last sure one, stderr before stdout; None when there is none."""
    best: Finding | None = None
    for text in (observation.stderr, observation.stdout):
        found = list(_scan(text))
        if not found:
            continue
        # The last error ends the action; of equal weight the later one, and a traceback beats a stray line.
        pick = max(found, key=lambda f: (f.confidence >= 0.6, bool(f.chain), round(f.confidence, 1), f.line))
        if not failed and pick.confidence >= 0.6 and _recovered(text, pick):
            pick = pick._replace(confidence=0.5)
        elif catches and not failed and pick.confidence == 0.5 and _only_errors(observation, len(found)):
            pick = pick._replace(confidence=0.75)
        if best is None or pick.confidence > best.confidence + 0.2:
            best = pick
        if failed and best.confidence >= 0.6:
            break
    return best


def _recovered(text: str, found: Finding) -> bool:
    """Whether much ordinary output follows an error line in an action that exited well: it was survived on the way."""
    rest = text.splitlines()[found.line + 1 :]
    return len([line for line in rest if line.strip()]) > 40


def _reads_asset(action: Action) -> bool:
    """A model's own file that cannot be read is a matter of access; the agent's own answer that cannot is not."""
    return any(_READS_ASSET.match(line[:_LINE_LIMIT]) for line in action.code[:60_000].splitlines())


def _only_errors(observation: Observation, errors: int) -> bool:
    """Whether caught and printed errors are most of what an action brought: it failed, whatever its exit code says."""
    return errors * 2 >= sum(1 for line in observation.text.splitlines() if line.strip())


def _scan(text: str) -> Iterator[Finding]:
    if not text:
        return
    frames: list[tuple[str, str, str]] = []
    chain: list[str] = []
    opened = False  # inside a traceback (header or frames seen, final line not yet)
    indent = 0  # of the open traceback's header: its final line stands no deeper
    last_chain_line = -10
    pending: Finding | None = None
    for number, raw in enumerate(text.splitlines()):
        if not raw or (not opened and not _TRIGGER.search(raw[:_LINE_LIMIT])):
            continue
        line = raw[:_LINE_LIMIT]
        if line.startswith(("[", "E ", "|", " ", "+")):
            line = _PREFIX.sub("", line, count=1)
        if _HEADER in line:
            if pending is not None and number - last_chain_line > 6:
                yield pending
                pending, chain = None, []
            opened, frames, indent = True, [], _indent(line)
            continue
        if any(mark in line for mark in _CHAIN):
            last_chain_line = number
            continue
        frame = _FRAME.match(line)
        if frame is not None:
            if not opened:
                if pending is not None and number - last_chain_line > 6:
                    yield pending
                    pending, chain = None, []
                frames, indent = [], max(_indent(line) - 2, 0)
            opened = True
            frames.append((frame[1], frame[2], frame[3] or ""))
            continue
        if opened:
            final = _FINAL.match(line) if _indent(line) <= indent else None
            if final is not None and (_TYPE_NAME.search(final[1]) or final[2] is not None):
                kind = final[1].rpartition(".")[2]
                message = f"{kind}: {final[2]}" if final[2] else kind
                chain.append(kind)
                cause = _cause(" ".join((pending.message, message)) if pending else message, "code")
                pending = Finding(
                    number,
                    kind,
                    cause,
                    message,
                    0.95,
                    _frame(frames),
                    tuple(chain),
                    in_library=bool(frames and _LIBRARY.search(frames[-1][0])),
                )
                opened, frames = False, []
            continue
        if pending is not None and number - pending.line > 8 and number - last_chain_line > 6:
            yield pending
            pending, chain = None, []
        if pending is not None and pending.family == "code" and number == pending.line + 1 and line[:1] not in " \t":
            continue
        plain = _plain(number, line)
        if plain is not None:
            yield plain
    if pending is not None:
        yield pending
    if opened:
        # The final line was cut off (or the process died while printing).
        place = _frame(frames)
        yield Finding(len(text), "traceback", "code", f"traceback cut off at {place}" if place else "traceback cut off",
                      0.8 if frames else 0.5, place, ("traceback",), True)  # fmt: skip


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _plain(number: int, line: str) -> Finding | None:
    for pattern, kind, family, confidence in _LINES:
        if pattern.match(line):
            return Finding(
                number,
                kind,
                family or _cause(line, "shell" if kind in ("shell tool", "look-up") else "code"),
                line.strip(),
                confidence,
            )
    bare = _BARE_FINAL.match(line)
    if bare is not None:
        kind = bare[1].rpartition(".")[2]
        # Without a traceback around it this may be a message that a handler printed.
        return Finding(number, kind, _cause(line, "code"), line.strip(), 0.5)
    caught = _CAUGHT.match(line) if not _CODE_LINE.match(line) else None
    if caught is not None:
        message = line[caught.start(1) :].strip()
        return Finding(number, caught[1].rpartition(".")[2], _cause(message, "code"), message, 0.5)
    return None


def _cause(message: str, default: Family) -> Family:
    text = message[:2_000]
    for family, pattern in _CAUSES:
        if pattern.search(text):
            return family
    return default


def _frame(frames: list[tuple[str, str, str]]) -> str | None:
    if not frames:
        return None
    own = [f for f in frames if not _LIBRARY.search(f[0])]
    file, line, function = (own or frames)[-1]
    return f"{file}:{line}" + (f" in {function}" if function else "")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text[:20_000].splitlines() if line.strip()), "")[:_MESSAGE_LIMIT]


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text[-20_000:].splitlines()) if line.strip()), "")[:_MESSAGE_LIMIT]
