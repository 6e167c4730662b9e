"""Functions of shell scripts stand where they are called, and the facts of turns follow."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from ambjudge.trajectories.shell_functions import MAX_CALLS, written_out
from test_features import HEAD, LIST_CASES, PREDICT, SAVE, facts_of

LIB = "oct() {\n  python - $1 <<'Q'\nprint(1)\nQ\n}\n"

TEXTS = [
    pytest.param("f() { python run.py $1; }\nf a", {}, ["python run.py a"], ["f()"], id="on-one-line"),
    pytest.param("function f {\n  python run.py ${1} $2\n}\nf a b", {}, ["python run.py a b"], ["function"], id="keyword"),
    pytest.param("f() {\n  python run.py \"$@\"\n}\nf a b c", {}, ['python run.py "a b c"'], [], id="all-words"),
    pytest.param("f() { python run.py $1; }\nfor c in a b; do f $c; done", {}, ["do\npython run.py $c\n; done"], [], id="in-a-loop"),
    pytest.param("f() { python run.py $1; }\nf a && f b | tail", {}, ["python run.py a", "python run.py b", "| tail"], [], id="twice-on-a-line"),
    pytest.param("g() { python run.py $1; }\nf() { g $1; }\nf a", {}, ["python run.py a"], [], id="a-function-that-calls-one"),
    pytest.param(". /w/lib.sh\noct a", {"lib.sh": LIB}, ["python - a <<'Q'\nprint(1)\nQ"], [], id="sourced"),
    pytest.param("cd /w\nsource lib.sh; oct a", {"lib.sh": LIB}, ["python - a <<'Q'"], [], id="sourced-by-word"),
    pytest.param("f() { python run.py; }\necho not called", {}, ["echo not called"], ["run.py"], id="never-called"),
    pytest.param("f() { python run.py; }\necho f\n./f\nx=f.py", {}, ["echo f"], ["run.py"], id="a-word-of-that-name"),
    pytest.param("cat > lib.sh <<'P'\nf() { python run.py; }\nP\nls", {}, ["f() { python run.py; }", "ls"], [], id="written-to-a-file"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "files", "there", "absent"), TEXTS)
def test_texts(code, files, there, absent):
    text = written_out(code, files)
    assert all(part in text for part in there), text
    assert not any(part in text for part in absent), text


@pytest.mark.parametrize(
    ("call", "scope"),
    [
        pytest.param("run case_0001", "one", id="one-case"),
        pytest.param("for c in $(ls /data/public); do run $c; done", "all", id="each-case"),
    ],
)
@pytest.mark.parametrize("place", ["here", "in-an-earlier-file"])
def test_a_function_that_runs_the_model(tmp_path, call, scope, place):
    body = f"run() {{\npython - $1 <<'Q'\n{HEAD}c = sys.argv[1]\nif True:\n{PREDICT}{SAVE}Q\n}}\n"
    before = [("bash", f"cat > /workspace/lib.sh <<'P'\n{body}P", "")] if place != "here" else []
    code = f"{body if place == 'here' else '. /workspace/lib.sh'}\n{call}"
    found = facts_of(tmp_path, "bash", code, LIST_CASES if scope == "all" else "", *before)
    assert (found.cases_scope, found.forward_pass, found.writes_outputs) == (scope, True, True)


@given(st.text(alphabet="f(){} \n$1@<'Q;|.a", max_size=300))
def test_any_text_comes_through(text):
    assert isinstance(written_out(text, {"a": text}), str)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("f() { f; f; }\nf", id="calls-itself"),
        pytest.param("f() { " + "echo x; " * 400 + "}\n" + "f\n" * 5_000, id="called-thousands-of-times"),
        pytest.param("f() {\n" * 2_000, id="never-closed"),
        pytest.param("f() { cat <<Q\n" + "f\n" * 20_000, id="here-document-without-end"),
    ],
)
def test_hostile_scripts_stay_small(code, no_runaway):
    with no_runaway():
        assert len(written_out(code, {})) < len(code) + 2 * (MAX_CALLS + 1) * 10_000
