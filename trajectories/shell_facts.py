"""What shell commands do: a table of patterns, each linear and bounded, tried on every line of a command."""

from __future__ import annotations

import re

_DOC = r"[^\s'\"|;]{0,200}(?:\.md|\.rst|README[^\s|;]{0,20}|MODEL_CARDS?[^\s|;]{0,20}|config\.json|\.py|\.ya?ml|\.toml|_ca?rd\.txt|instructions?\.txt|\.cfg)\b"

PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, flags))
    for name, pattern, flags in (
        ("installs_packages", r"\b(?:pip3?|uv pip|mamba|conda|apt|apt-get|npm|yum|apk|gem|cargo|brew|R CMD)\s(?:[-\w=]{1,30}\s){0,4}(?:install|add|INSTALL)\b|install\.packages\(|\buv (?:add|sync)\b|-m venv\b|\bvirtualenv\b|conda create|-m pip install", 0),
        ("builds", r"(?:^|[;&|]\s{0,3})(?:make|cmake|gcc|g\+\+|clang|cargo build|go build|ninja)\b", 0),
        ("checks_environment", r"\bnvidia-smi\b|\bpip3? (?:list|show|freeze)|\bconda (?:list|info|env)|\bnproc\b|\bfree -|\bdf -|\buname\b|\blscpu\b|\b(?:which|command -v|type)\s+\w|--version\b|\bpython[\d.]{0,5} -V\b|\bulimit\b|\bprintenv\b|(?:^|[;&|]\s{0,3})env\b|/proc/(?:cpuinfo|meminfo)|ollama (?:list|ps)|torch\.cuda", 0),
        ("obtains_weights", r"\b(?:wget|aria2c|gdown)\b|\bcurl\b.{0,200}(?:-[oOL]\b|https?://(?!localhost|127))|huggingface-cli download|\bhf download|git (?:lfs )?(?:clone|pull)|ollama pull|kaggle (?:datasets|competitions) download", 0),
        ("lists_inputs", r"(?:^|[;&|(`]\s{0,3}|\$\(|\bdo\s)(?:ls|find|tree|du|stat|file|pwd)\b", 0),
        ("watches_progress", r"\bsleep \d|\btail -(?:f|n|\d)[^|;&\n]{0,120}(?:\.log|\.out|nohup)|\bps (?:aux|-ef|-p)|\bpgrep\b|\bjobs\b|\bwait\b|\bcat [^|;&\n]{0,120}(?:\.log|nohup\.out)", 0),
        ("counts_files", r"\|\s{0,3}wc\b|\bwc -|\bmd5sum\b|\bsha256sum\b|\bdiff\b|\bcmp\b", 0),
        ("training", r"(?:^|[;&|]\s{0,3})\s{0,8}(?:nice -n \d+ )?(?:\./|python[\d.]{0,5}\s|torchrun\s|accelerate\s)[^;|&\n]{0,160}\b(?:train(?:ing)?\b|train_?\w{0,20}\.py|supervised|fit\b|fine_?-?tun\w{0,6}|--do_train)", 0),
        ("packages_outputs", r"\b(?:zip|tar\s+-?c\w*)\s", 0),
        ("runs_tests", r"(?:^|[;&|(]\s{0,3})(?:\w{1,40}=\S{0,80}\s{1,3}){0,4}(?:timeout \d{1,6}\s)?(?:(?:\S{0,80}/)?python[\d.]{0,5}\s(?:-[uBOI]\s){0,3}-m\s(?:pytest|unittest|doctest|nose2?)|(?:\S{0,80}/)?(?:pytest|nosetests))\b(?![^\n;|&]{0,100}--(?:version|help)\b)", 0),
        ("starts_background", r"\bnohup\b|&\s*$|\bsetsid\b|\btmux\b", 0),
    )
)  # fmt: skip
_DOCUMENTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b(?:cat|head|tail|less|more|sed -n|nl|bat|awk)\b[^|;&\n<>]{0,200}?" + _DOC,
        r"-name\s{1,3}['\"]?\\?\*\.(?:md|txt|py|json)\b.{0,200}\bcat\b|\bcat\b.{0,40}\$\(find",
        r"\s--help\b|\bman \w|\bpydoc\b",
    )
)  # fmt: skip
_FILE_READ = re.compile(
    r"(?:^|[;&({]|\bdo\b|\bthen\b|\becho [^;|&]{0,80};)\s{0,8}"
    + r"\b(?:cat|head|less|more|sed -n|jq|xxd|zcat|column)\b\s+[^<>|;&\n]{0,200}[\w*]"
)
_WEIGHTS = re.compile(
    r"\b(?:head|xxd|hexdump|od|file|strings|md5sum|sha256sum|cat)\b[^<>|;&\n]{0,200}(?:\.(?:pth?|ckpt|safetensors|onnx|gguf|bin|h5|pkl|whl)\b|/models?/)"
)
_FOLDERS = re.compile(
    r"\s{0,8}(?:mkdir|chmod|touch|cd|export|set)\b(?![^\n]{0,300}(?:&&|;)\s{0,3}(?!mkdir|chmod|touch|cd|export|set)\w)"
)
_PLAN = re.compile(r"(?<![\w-])plan\.md\b", re.IGNORECASE)
_PLAN_WRITE = re.compile(
    r"(?:>{1,2}|tee\s(?:-a\s)?|sed -i[^|;\n]{0,300}|\bcp\b[^|;\n]{0,200}|\bmv\b[^|;\n]{0,200})\s{0,4}['\"]?[^\s<>|;]{0,200}plan\.md"
)
_REDIRECT = re.compile(r">{1,2}\s{0,4}['\"]?([^\s<>|;&'\"]{1,200})")
_READERS = re.compile(
    r"\b(?:ls|cat|head|tail|find|wc|file|jq|xxd|zcat|du|tree|stat|for|grep|less|column|sed -n|diff|test)\b"
)
_COPIERS = re.compile(r"\b(?:cp|mv|rsync|install)\s+(.{1,400})")


def shell_facts(text: str, outputs: re.Pattern[str]) -> dict[str, str]:
    """Facts of a shell text with the line each was seen on. `outputs` recognises places of delivered files."""
    seen: dict[str, str] = {}
    commands: list[str] = []
    for raw in text.split("\n"):
        line = raw[:1_000]
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        quote = stripped[:160]
        commands.append(line)
        for name, pattern in PATTERNS:
            if name not in seen and pattern.search(line):
                seen[name] = quote
        delivered, planned = bool(outputs.search(line)), bool(_PLAN.search(line))
        if planned:
            seen.setdefault("revises_plan" if _PLAN_WRITE.search(line) else "reads_plan", quote)
        if delivered:
            target = _COPIERS.search(line)
            if any(outputs.search(m) for m in _REDIRECT.findall(line)) or (
                target is not None and outputs.search(target.group(1).split()[-1])
            ):
                seen.setdefault("writes_outputs", quote)
            elif _READERS.search(line):
                seen.setdefault("reads_outputs", quote)
        elif not planned:
            if any(pattern.search(line) for pattern in _DOCUMENTS):
                seen.setdefault("reads_docs", quote)
            elif _WEIGHTS.search(line):
                seen.setdefault("looks_at_weights", quote)
            elif _FILE_READ.search(line):
                seen.setdefault("inspects_inputs", quote)
    if commands and all(_FOLDERS.match(line) for line in commands):
        seen["prepares_folders"] = commands[0].strip()[:160]
    return seen
