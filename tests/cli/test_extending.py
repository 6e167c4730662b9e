"""What docs/extending.md shows, built from the page as an installed package and used: a door is
where others come in."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from ambjudge.errors import ConfigError
from ambjudge.plugins import Door, Plugin, scan
from ambjudge.testing import STEPS, tiny_run

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```\w+\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def install(site: Path, name: str, version: str, doors: dict[str, dict[str, str]]) -> None:
    """The metadata that an installer leaves behind."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line
        for door, names in doors.items()
        for line in (f"[{door}]", *(f"{k} = {v}" for k, v in names.items()))
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's package, as if installed there."""
    site = tmp_path_factory.mktemp("site")
    blocks = dict(_BLOCK.findall((ROOT / "docs" / "extending.md").read_text("utf-8")))
    (site / "acme").mkdir()
    (site / "acme" / "__init__.py").write_text("")
    for name, text in blocks.items():
        (site / name).write_text(text, encoding="utf-8")
    project = tomllib.loads(blocks["pyproject.toml"])["project"]
    install(site, project["name"], project["version"], project["entry-points"])
    return site


@pytest.fixture
def call(site: Path, tmp_path: Path):
    """Run a command line beside the package; (exit code, stdout, stderr)."""

    def run(*args: str | Path, module: str = "ambjudge.cli", **env: str) -> tuple[int, str, str]:
        paths = os.pathsep.join(
            part for part in (env.pop("SITE", str(site)), os.environ.get("PYTHONPATH")) if part
        )
        done = subprocess.run(
            [sys.executable, "-m", module, *map(str, args)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
            env={**os.environ, "AMBJUDGE_STORE": "none", "PYTHONPATH": paths, **env},
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What is warned of, also after a command with -q in this process."""
    with caplog.at_level("WARNING"):
        yield caplog


def counted(folder: Path, *counts: str) -> Path:
    """A run of the page's track."""
    outputs = {f"case_{number}/count.txt": count for number, count in enumerate(counts, 1)}
    tiny_run(
        folder,
        task="cells-count-task",
        brief="Count cells.",
        outputs=outputs,
        report={"metrics": {"exact": 0.5}},
    )
    return folder


def test_the_pages_own_tests_pass(call, site):
    code, out, err = call(site / "test_acme.py", "-q", "-p", "no:cacheprovider", module="pytest")
    assert (code, err) == (0, ""), out


def test_a_run_is_scored_by_the_new_track_judge_and_detector(call, tmp_path):
    code, out, err = call(
        "score", counted(tmp_path / "run", "0", "0"), "--judge", "acme:0.5", "--json"
    )
    card = json.loads(out)
    assert (code, err) == (0, ""), card
    assert (card["run"]["track"], card["rubric"]["id"], card["judge"]["name"]) == (
        "counting",
        "counting",
        "acme:0.5",
    )
    assert [card["stages"][f"S{n}"]["score"] for n in range(1, 6)] == [0, 0, 0.5, 1, 1]
    assert "detector:acme_zero_counts" in {code["by"] for code in card["codes"]}
    assert [re.sub("sha256:[0-9a-f]{16}$", "#", name) for name in card["plugins"]] == [
        "detectors:acme acme-agents 1.0 #",
        "judges:acme acme-agents 1.0 #",
        "tracks:counting acme-agents 1.0 #",
    ]


def test_runs_come_in_go_out_and_a_command_reads_them(call, tmp_path):
    steps = [
        {"say": "Look.", "bash": "ls", "out": "a b", "exit": 0},
        {"say": "Count.", "bash": "wc", "out": "", "exit": 1},
    ]
    (tmp_path / "log.acme").write_text(
        json.dumps({"goal": "Count.", "task": "cells-count-task", "steps": steps})
    )
    assert call("import", "acme", "log.acme", "--out", "runs")[0] == 0
    assert call("turns", "runs")[:2] == (0, "2\n")
    assert call("import", "conversation", "runs", "--to", "acme", "--out", "lines")[0] == 0
    assert json.loads((tmp_path / "lines" / "log.json").read_text())["goal"] == "Count."


def test_doctor_and_help_show_them_and_a_switch_leaves_them_out(call, tmp_path):
    code, out, _ = call("doctor", "--json")
    entries = {entry["what"]: entry for entry in json.loads(out) if "acme" in entry["state"]}
    assert set(entries) == {
        "tracks: counting",
        "detectors: acme",
        "judges: acme",
        "importers: acme",
        "exporters: acme",
        "tables: long_runs",
        "commands: turns",
    }
    assert all(entry["ok"] and entry["state"] == "acme-agents 1.0" for entry in entries.values())
    assert re.search("turns +From acme-agents 1.0.", call("--help")[1])
    run = counted(tmp_path / "run", "1", "2")
    for allowed, is_listed in (("", False), ("other", False), ("ACME_agents", True)):
        assert ("From acme" in call("--help", AMBJUDGE_PLUGINS=allowed)[1]) is is_listed
    code, _, err = call("score", run, "--track", "counting", AMBJUDGE_PLUGINS="")
    assert code == 2
    assert "unknown track 'counting' (known: report_generation, vqa," in err


def test_what_is_broken_is_one_line_and_the_rest_works(call, tmp_path):
    site = tmp_path / "site"
    (site / "bad").mkdir(parents=True)
    (site / "bad" / "__init__.py").write_text("")
    (site / "bad" / "data.py").write_text(
        "from ambjudge.tracks import Track\nTRACK = Track('unchecked')\n"
    )
    (site / "bad" / "late.py").write_text("import os\nraise SystemExit('gone')\n")
    (site / "bad" / "tags.py").write_text(
        "from ambjudge.error_codes.registry import detector\n@detector('bad_first', code='E1',"
        " stage='S1', independence='from_trace')\ndef a(ctx):\n    return 1 /"
        " 0\n@detector('missing_files', code='E5', stage='S5', independence='from_files')\ndef"
        " b(ctx):\n    return ()\n"
    )
    install(
        site,
        "bad",
        "0.1",
        {
            "ambjudge.tracks": {
                "vqa": "bad.nothing:T",
                "odd": "bad:__name__",
                "unchecked": "bad.data:TRACK",
            },
            "ambjudge.detectors": {"bad": "bad.tags"},
            "ambjudge.judges": {"bad": "bad.late:make", "rules": "bad:make"},
            "ambjudge.windows": {"bad": "bad"},
        },
    )
    run = tmp_path / "run"
    tiny_run(run, track="vqa", outputs={"q1/answer.json": "{}"})
    code, out, err = call("score", run, "--json", SITE=str(site))
    lines = [line for line in err.splitlines() if "WARNING" in line]
    assert json.loads(out)["run"]["track"] == "vqa"
    expected = (
        "judge 'rules' of bad 0.1 left out: ambjudge has one of this name",
        "track 'vqa' of bad 0.1 left out: ambjudge has one of this name",
        (
            "track 'odd' of bad 0.1 cannot be used: it is not a Track named 'odd' (update or remove"
            " bad, or"
        ),
        "track 'unchecked' of bad 0.1 cannot be used: it has no check; make it a CheckedTrack",
        (
            "module of detectors 'bad' of bad 0.1 cannot be used: ValueError: there is"
            " already a detector named 'missing_files'"
        ),
    )
    assert len(lines) == len(expected), err
    assert all(words in line for words, line in zip(expected, lines, strict=True)), err
    code, _, err = call("score", run, "--judge", "bad:x", SITE=str(site))
    assert code == 3
    assert "judge 'bad' of bad 0.1 cannot be used: SystemExit: gone" in err
    code, out, _ = call("doctor", "--json", SITE=str(site))
    assert code == 1
    assert {
        entry["what"]
        for entry in json.loads(out)
        if entry["ok"] is False and "bad 0.1" in entry["state"]
    } == {
        "tracks: vqa",
        "tracks: odd",
        "tracks: unchecked",
        "detectors: bad",
        "judges: bad",
        "judges: rules",
        "windows: bad",
    }


def test_what_fails_on_a_run_is_said_and_scores_nothing(call, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "frail.py").write_text(
        "from ambjudge.error_codes.registry import detector\nfrom ambjudge.judge.checks.track"
        " import CheckedTrack\ndef"
        " check(submission):\n    return {}['cases']\nTRACK = CheckedTrack('frail', check=check,"
        " files=('x.txt',))\n@detector('frail_one', code='E1', stage='S1',"
        " independence='from_trace')\ndef a(ctx):\n    return 1 / 0\n"
    )
    install(
        site,
        "frail",
        "3",
        {"ambjudge.tracks": {"frail": "frail:TRACK"}, "ambjudge.detectors": {"frail": "frail"}},
    )
    tiny_run(tmp_path / "run", track="frail", outputs={"case_1/x.txt": ""})
    code, out, err = call("score", "run", "--json", SITE=str(site))
    card = json.loads(out)
    assert (code, card["stages"]["S4"]["score"], card["stages"]["S5"]["score"]) == (0, None, None)
    failed = "the check of track frail (frail 3) failed: KeyError: 'cases'; S4 and S5 stay unscored"
    assert failed in card["warnings"]
    assert re.search(
        "WARNING: detector frail_one left out of .*run: ZeroDivisionError: division by zero", err
    )


def test_another_version_of_a_package_makes_other_keys(call, site, tmp_path):
    def key(**env: str) -> str:
        lines = (
            "from ambjudge.judge.questions.verdict_keys import code_sha256\nprint(code_sha256())"
        )
        (tmp_path / "key.py").write_text(lines)
        return call(module="key", **env)[1]

    other = tmp_path / "other"
    shutil.copytree(site, other)
    (other / "acme" / "detectors.py").write_text(
        (site / "acme" / "detectors.py").read_text() + "# edited\n"
    )
    keys = [key(), key(), key(AMBJUDGE_PLUGINS=""), key(SITE=str(other))]
    assert keys[0]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_nothing_is_loaded_from_the_folder_one_works_in(tmp_path, monkeypatch):
    install(tmp_path, "evil", "1", {"ambjudge.commands": {"evil": "evil:main"}})
    assert [plugin.name for plugin in scan([str(tmp_path)], None)] == ["evil"]
    monkeypatch.chdir(tmp_path)
    assert scan(["", ".", str(tmp_path)], None) == ()


def test_metadata_that_is_none_and_packages_that_are_there_twice(tmp_path, warned):
    install(
        tmp_path / "a",
        "one",
        "2.0",
        {"ambjudge.judges": {"x": "one:make"}, "console_scripts": {"one": "one:main"}},
    )
    install(tmp_path / "b", "One", "1.0", {"ambjudge.judges": {"y": "one:make"}})
    install(tmp_path / "b", "cut", "1.0", {"ambjudge.judges": {"no value": ""}})
    (tmp_path / "b" / "cut-1.0.dist-info" / "entry_points.txt").write_bytes(
        b"[ambjudge.judges]\n\xff\xfe\nx\n"
    )
    (tmp_path / "b" / "file.dist-info").write_text("")
    plugins = scan([str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "none")], None)
    assert plugins == (Plugin("judges", "x", "one:make", "one", "2.0"),)
    assert "cut-1.0.dist-info left out" in warned.text


def test_a_door_loads_once_names_what_it_knows_and_keeps_its_own(warned):
    foreign = [
        Plugin("d", "mine", "os:path", "p", "1"),
        Plugin("d", "os", "math", "p", "1"),
        Plugin("e", "x", "math", "p", "1"),
        Plugin("d", "gone", "no_such_module_at_all", "p", "1"),
        Plugin("d", "mine", "math", "q", "1"),
    ]
    door = Door("d", "thing", {"os": "os"}, foreign=lambda: foreign)
    assert door.names == ("os", "mine", "gone")
    assert door.get("os") is os
    assert list(door) == [os, os.path]
    assert list(door) == [os, os.path]
    assert [record.message[:46] for record in warned.records] == [
        "thing 'os' of p 1 left out: ambjudge has one o",
        "thing 'mine' of q 1 left out: p 1 has one of t",
        "thing 'gone' of p 1 cannot be used: ModuleNotF",
    ]
    with pytest.raises(ConfigError, match=r"unknown thing 'nothing' \(known: os, mine, gone\)"):
        door.get("nothing")


@pytest.mark.slow
def test_pip_installs_the_same(site, tmp_path):
    source = tmp_path / "source"
    (source / "acme").mkdir(parents=True)
    for path in (site / "pyproject.toml", *(site / "acme").iterdir()):
        if path.is_file():
            (source / path.relative_to(site)).write_bytes(path.read_bytes())
    target = tmp_path / "target"
    quiet = [
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--disable-pip-version-check",
    ]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *quiet, "--target", target, source], check=True
    )
    assert set(scan([str(target)], None)) == set(scan([str(site)], None))
    assert (target / "acme" / "counting.yaml").is_file()


def test_steps_of_the_tiny_run_are_read(tmp_path):
    run = tiny_run(tmp_path)
    assert len(run.turns) == len(STEPS) + 1
    assert run.plan.exists
    assert run.turns[2].failed
