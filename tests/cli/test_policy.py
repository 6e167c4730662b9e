"""`--policy`: by name, from a file, in the settings and in Python; every mistake is one line."""

from __future__ import annotations

import json
from pathlib import Path

import ambjudge
import pytest
from ambjudge.errors import ConfigError
from ambjudge.judge.card.fields import Policy
from ambjudge.judge.card.policy_file import load_policy

RUN = Path(__file__).parents[2] / "examples" / "codes"
CHOICES = {"missing": "zero", "breach": "from-stage", "malformed": "zero", "strict_evidence": True}


def policy_of(text: str) -> dict[str, object]:
    return json.loads(text)["policy"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "own.toml",
            'missing = "zero"\nbreach = "from-stage"\nmalformed = "zero"\nstrict_evidence = true\n',
        ),
        (
            "own.yaml",
            "missing: zero\nbreach: from-stage\nmalformed: zero\nstrict-evidence: true\n",
        ),
    ],
)
def test_a_file_of_either_format_is_in_force_everywhere(out, name: str, text: str) -> None:
    Path("project").mkdir()
    file = Path("project", name)
    file.write_text(text, encoding="utf-8")
    assert load_policy(file) == Policy(**CHOICES)
    assert ambjudge.score(RUN, policy=file).policy == Policy(**CHOICES)
    assert policy_of(out("score", RUN, "--json", "--policy", file)[1]).items() >= CHOICES.items()
    # A path in the settings is meant from the settings' folder.
    Path("project", "ambjudge.toml").write_text(f'policy = "{name}"\n', encoding="utf-8")
    text = out("--config", "project/ambjudge.toml", "score", RUN, "--json")[1]
    assert policy_of(text).items() >= CHOICES.items()


def test_names_and_policies_are_policies(out, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_policy("paper") == Policy()
    strict = Policy(strict_evidence=True)
    assert load_policy(strict) is strict
    monkeypatch.setenv("AMBJUDGE_POLICY", "harness")
    assert policy_of(out("score", RUN, "--json")[1])["like"] == "harness"
    assert ambjudge.score(RUN, policy="harness").policy.like == "harness"
    card = policy_of(out("score", RUN, "--json", "--policy", "paper")[1])
    assert "like" not in card or card["like"] == "paper"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("papr", "", "unknown policy 'papr'"),
        ("none.toml", None, "none.toml: no such file"),
        ("none.yaml", None, "none.yaml: cannot be read"),
        ("a.toml", "mising = 1", "a.toml: mising: no such choice (did you mean missing?)"),
        ("a.toml", 'missing = "on"', "a.toml: missing: 'on' is not one of renormalize, zero"),
        ("a.yaml", "strict-evidence: 1", "strict_evidence: 1 is not true or false"),
        ("a.yaml", "- zero", "a.yaml: is not a table of choices"),
        ("a.toml", "missing = ", "a.toml: is not TOML"),
        ("a.yaml", "missing: [", "not YAML"),
        (
            "a.toml",
            'like = "harness"\nmissing = "zero"\nstrict_evidence = true',
            "like = harness also decides missing",
        ),
    ],
)
def test_a_mistake_is_one_line(out, name: str, text: str | None, message: str) -> None:
    if text:
        Path(name).write_text(text, encoding="utf-8")
    code, shown, err = out("score", RUN, "--policy", name)
    assert (code, shown, err.count("\n")) == (2, "", 1)
    assert message in err
    with pytest.raises(ConfigError):
        ambjudge.score(RUN, policy=name)
