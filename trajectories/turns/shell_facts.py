"""Facts of shell commands: by their programs, their subcommands and the files that they name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .actions import PLAN_NAME
from .shell import Command

_SUBCOMMANDS: tuple[tuple[str, str, str], ...] = (
    (
        "installs_packages",
        "pip|uv|mamba|conda|apt|apt-get|npm|yum|apk|gem|cargo|brew",
        "install|add|sync|create",
    ),
    ("installs_packages", "R", "INSTALL"),
    ("installs_packages", "virtualenv", ""),
    (
        "checks_environment",
        "pip|conda|mamba|npm|apt|dpkg|rpm|ollama",
        "list|freeze|show|check|info|env|ls|-l|--list|-qa|ps",
    ),
    (
        "checks_environment",
        "nvidia-smi|rocm-smi|nproc|free|df|uname|arch|lscpu|lsmem|lspci|lsblk|which|type|command|ulimit|printenv|env|getconf|hostname|locale",
        "",
    ),
    ("builds", "make|cmake|gcc|g\\+\\+|clang|ninja", ""),
    ("builds", "cargo|go", "build"),
    ("obtains_weights", "wget|aria2c|gdown", ""),
    ("obtains_weights", "huggingface-cli|hf", "download"),
    ("obtains_weights", "git", "clone|pull|lfs"),
    ("obtains_weights", "ollama", "pull"),
    ("obtains_weights", "kaggle", "datasets|competitions|models"),
    ("lists_inputs", "ls|find|tree|du|stat|file|pwd", ""),
    ("watches_progress", "sleep|pgrep|jobs|wait", ""),
    ("counts_files", "wc|md5sum|sha\\d+sum|diff|cmp", ""),
    ("packages_outputs", "zip", ""),
    ("runs_tests", "pytest|nosetests", ""),
    ("reads_docs", "man|pydoc", ""),
)
_TABLE = tuple(
    (fact, re.compile(programs), re.compile(words)) for fact, programs, words in _SUBCOMMANDS
)
_TEST_MODULES = frozenset(["pytest", "unittest", "doctest", "nose", "nose2"])
_TRAINS = re.compile(r"(?:.*/)?train(?:ing)?_?\w{0,20}(?:\.py)?|--do_train")
_READERS = frozenset(
    [
        "cat",
        "head",
        "tail",
        "less",
        "more",
        "sed",
        "nl",
        "bat",
        "awk",
        "jq",
        "xxd",
        "zcat",
        "column",
        "hexdump",
        "od",
        "strings",
    ]
)
_LOOKERS = frozenset(
    [
        *_READERS,
        "ls",
        "find",
        "wc",
        "file",
        "du",
        "tree",
        "stat",
        "grep",
        "diff",
        "cmp",
        "test",
        "[",
        "for",
        "md5sum",
        "sha256sum",
    ]
)
_COPIERS = frozenset(["cp", "mv", "rsync", "install"])
_PREPARES = frozenset(["mkdir", "chmod", "touch", "cd", "export", "set"])
_LOG = re.compile(r"\.(?:log|out)$|nohup")
_DOCUMENT = re.compile(
    r"\.(?:md|rst|py|ya?ml|toml|cfg)$|(?:README|MODEL_CARD)[^/]*$|config\.json$|_ca?rd\.txt$|instructions?\.txt$|\.\*$"
)
_WEIGHTS = re.compile(r"\.(?:pth?|ckpt|safetensors|onnx|gguf|bin|h5|pkl|whl)$|/models?/")
_LOCAL = re.compile(r"https?://(?:localhost|127)")
_STATE = re.compile(
    r"nvidia-smi|rocm-smi|free|df|du|ps|top|uptime|vmstat|printenv|locale|ulimit|uname|arch|hostname|lscpu|lsblk|lspci|lsmem|nproc"
    r"|getconf|date|whoami|id|groups|pwd|ls|tree|find|which|type"
)
_NOTHING = frozenset(["echo", "printf", "true", ":", "cd", "wait", "fi", "done"])
_FIND_ACTS = re.compile(r"-(?:exec|execdir|ok|okdir|delete|fprint\w*|fls)")
_FILTERS = frozenset(
    [
        "head",
        "tail",
        "sort",
        "uniq",
        "grep",
        "wc",
        "cut",
        "tr",
        "awk",
        "sed",
        "column",
        "less",
        "more",
        "cat",
    ]
)
"""Programs that filter text behind a pipe, and read files before one."""
_MACHINE_FILE = re.compile(r"/(?:proc|sys|etc)/")


def shell_facts(commands: Sequence[Command], outputs: re.Pattern[str]) -> dict[str, str]:
    """Facts of commands, each with the line it was seen on. `outputs` matches places of outputs."""
    facts: dict[str, str] = {}
    inside = False  # the folder of the outputs
    for command in commands:
        if command.program == "cd" and command.operands:
            folder = command.operands[0]
            stays = inside and folder[:1] not in "/~"
            inside = stays or outputs.search(folder) is not None
        for fact in _facts(command, outputs, inside):
            facts.setdefault(fact, command.line)
    programs = {command.program for command in commands if command.words}
    if programs and programs <= _PREPARES:
        facts["prepares_folders"] = commands[0].line
    return facts


def _facts(command: Command, outputs: re.Pattern[str], inside: bool) -> list[str]:
    program, words, operands = command.program, command.words, command.operands
    if not words:
        return []
    sub = next((word for word in operands if word not in ("-m", "pip")), "")
    if program == "python" and command.module == "pip":
        program, sub = "pip", next((word for word in operands if word != "pip"), "")
    first = words[1] if len(words) > 1 else ""
    facts = [
        fact
        for fact, programs, subcommands in _TABLE
        if programs.fullmatch(program)
        and (not subcommands.pattern or subcommands.fullmatch(sub) or subcommands.fullmatch(first))
    ]
    if program == "uv" and operands[:2] == ("pip", "install"):
        facts.append("installs_packages")
    if program in ("R", "Rscript") and any("install.packages(" in word for word in words):
        facts.append("installs_packages")
    if program == "python":
        if command.module in ("venv", "virtualenv"):
            facts.append("installs_packages")
        elif command.module in _TEST_MODULES:
            facts.append("runs_tests")
    if any(word == "--version" or (word == "-V" and program == "python") for word in words) or any(
        word.startswith(("/proc/cpuinfo", "/proc/meminfo")) for word in operands
    ):
        facts.append("checks_environment")
    if "--help" in words:
        facts.append("reads_docs")
    if program == "curl" and not any(map(_LOCAL.match, operands)):
        facts.append("obtains_weights")
    if program == "tar" and first.lstrip("-").startswith("c"):
        facts.append("packages_outputs")
    if (program in ("tail", "cat") and any(map(_LOG.search, operands))) or (
        program == "ps" and first
    ):
        facts.append("watches_progress")
    if (program in ("python", "torchrun", "accelerate") or words[0].startswith("./")) and any(
        map(_TRAINS.fullmatch, words)
    ):
        facts.append("training")
    return [*facts, *_files(command, outputs, inside)]


def _files(command: Command, outputs: re.Pattern[str], inside: bool) -> list[str]:
    """Facts of a command by the files that it names."""
    program, words = command.program, command.words
    paths = [*words[1:], *command.targets]
    edits_in_place = program == "sed" and len(words) > 1 and words[1].startswith("-i")
    if any(map(PLAN_NAME.search, paths)):
        written = [*command.targets]
        if program == "tee" or edits_in_place:
            written += words[1:]
        elif program in _COPIERS:
            written += words[-1:]
        return ["revises_plan" if any(map(PLAN_NAME.search, written)) else "reads_plan"]
    if any(map(outputs.search, (*paths, *(command.loop or ())))):
        if any(map(outputs.search, command.targets)) or (
            program in _COPIERS and outputs.search(words[-1])
        ):
            return ["writes_outputs"]
        return ["reads_outputs"] if program in _LOOKERS else []
    if inside and program in _LOOKERS and not command.piped:
        return ["reads_outputs"]
    if program not in _LOOKERS or (
        command.piped and not any("/" in word or "." in word for word in command.operands)
    ):
        return []
    if edits_in_place:
        return []
    if program == "find" and "-exec" in words and any(map(_DOCUMENT.search, words)):
        return ["reads_docs"]
    if program in _READERS and any(map(_DOCUMENT.search, command.operands)):
        return ["reads_docs"]
    if program in (*_READERS, "file", "md5sum", "sha256sum") and any(
        map(_WEIGHTS.search, command.operands)
    ):
        return ["looks_at_weights"]
    reads = program in _READERS and any(
        word[:1].isalnum() or word[:1] in "/.$*~" for word in command.operands
    )
    return ["inspects_inputs"] if reads and not command.targets and not command.piped else []


def asks_machine(commands: Sequence[Command]) -> bool:
    """Whether commands only show the state of the machine or list files (nvidia-smi, ps, ls)."""
    shows = [_shows_state(command) for command in commands if command.words or command.targets]
    return None not in shows and True in shows


def _shows_state(command: Command) -> bool | None:
    """True if a command shows the state of the machine, None if it does something else.

    False if it adds nothing to one that shows it (echo, a filter behind a pipe).
    """
    if any(target != "/dev/null" for target in command.targets):
        return None
    program, options = command.program, command.words[1:]
    if program in _NOTHING or (program in _FILTERS and command.piped):
        return False
    return True if _is_look(command, program, options) else None


def _is_look(command: Command, program: str, options: tuple[str, ...]) -> bool:
    if program == "find":
        return not any(map(_FIND_ACTS.fullmatch, options))
    if _STATE.fullmatch(program) or options in (("--version",), ("-V",)):
        return True
    if program == "command" and options[:1] == ("-v",):
        return True
    if program == "env":  # with operands, it starts a program
        return not command.operands
    if program in _FILTERS:
        files = [word for word in options if "/" in word]
        return bool(files) and all(map(_MACHINE_FILE.match, files))
    if program == "python" and command.module == "pip":
        program, options = "pip", options[2:]
    listings = [
        subcommands
        for fact, programs, subcommands in _TABLE
        if fact == "checks_environment" and programs.fullmatch(program) and subcommands.pattern
    ]
    return bool(options) and any(listing.fullmatch(options[0]) for listing in listings)
