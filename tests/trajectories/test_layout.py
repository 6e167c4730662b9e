"""Locating conversations, run ids and outputs; links that leave a run are never followed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from ambjudge.errors import InputError
from ambjudge.trajectories.models import Outputs
from ambjudge.trajectories.reading.layout import (
    find_conversations,
    find_outputs,
    run_folder,
    run_id,
    side_file,
)


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")


TREES = {
    # files -> conversations found
    "one run": (["process/conversation.json"], ["process/conversation.json"]),
    "bare file": (["conversation.json"], ["conversation.json"]),
    "alias beside it": (
        ["process/conversation.json", "process/messages.json"],
        ["process/conversation.json"],
    ),
    "alias above it": (
        ["messages.json", "process/conversation.json"],
        ["process/conversation.json"],
    ),
    "messages only": (["a/messages.json"], ["a/messages.json"]),
    "many, sorted": (
        ["b/process/conversation.json", "a/process/conversation.json", "c/conversation.json"],
        ["a/process/conversation.json", "b/process/conversation.json", "c/conversation.json"],
    ),
    "deep": (
        ["t/lite/agent/1/process/conversation.json"],
        ["t/lite/agent/1/process/conversation.json"],
    ),
    "hidden": (["a/conversation.json", ".git/conversation.json"], ["a/conversation.json"]),
    "in outputs": (
        [
            "a/process/conversation.json",
            "a/outputs/agents_outputs/messages.json",
            "agents_outputs/conversation.json",
        ],
        ["a/process/conversation.json"],
    ),
    "in a workspace": (
        ["a/process/conversation.json", "a/workspace/data/messages.json"],
        ["a/process/conversation.json"],
    ),
    "killed before its conversation": (
        [
            "a/process/trace.jsonl",
            "b/process/conversation.json",
            "b/process/trace.jsonl",
            "c/trace.jsonl",
        ],
        ["a/process/trace.jsonl", "b/process/conversation.json"],
    ),
    "in the workspace of a container": (
        [
            "a/process/system_prompt.md",
            "a/workspace/process/conversation.json",
            "a/workspace/process/trace.jsonl",
        ],
        ["a/workspace/process/conversation.json"],
    ),
    "run in a run's folder": (
        ["conversation.json", "other/conversation.json"],
        ["conversation.json", "other/conversation.json"],
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_trees(name, tmp_path):
    files, expected = TREES[name]
    make(tmp_path, *files)
    assert [str(p.relative_to(tmp_path)) for p in find_conversations(tmp_path)] == expected


def test_a_folder_named_like_the_file(tmp_path):
    make(tmp_path, "conversation.json/process/conversation.json")
    assert len(list(find_conversations(tmp_path))) == 1


def test_links_are_not_walked_and_a_circle_of_them_hides_nothing(tmp_path):
    make(tmp_path / "runs", "b/process/conversation.json")
    make(tmp_path / "elsewhere", "conversation.json")
    (tmp_path / "runs" / "a").symlink_to("a")
    (tmp_path / "runs" / "c").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "runs" / "b" / "up").symlink_to(tmp_path / "runs")
    paths = [str(p.relative_to(tmp_path)) for p in find_conversations(tmp_path / "runs")]
    assert paths == ["runs/b/process/conversation.json"]


@pytest.mark.parametrize("name", ["missing", "empty", "a\0b", "x" * 5000, "pipe"])
def test_nothing_there_is_an_input_error(name, tmp_path):
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError) as caught:
        list(find_conversations(tmp_path / name))
    assert "\n" not in str(caught.value)


IDS = {
    "runs/kidney-01/process/conversation.json": "kidney-01",
    "runs/kidney-01/conversation.json": "kidney-01",
    "kidney/agent/3/process/conversation.json": "agent/3",
    "kidney/agent/run_3/conversation.json": "agent/run_3",
    "kidney/run_1/repeat_2/conversation.json": "kidney/run_1/repeat_2",
    "kidney/agent/7/process/trace.jsonl": "agent/7",
    "ldct/agent_r0/workspace/process/conversation.json": "agent_r0/workspace",
    "somewhere/my talk.json": "my talk",
    "somewhere/x/messages.json": "x",
}


@pytest.mark.parametrize("path", IDS)
def test_ids(path, tmp_path):
    assert run_id(tmp_path / path) == IDS[path]


def test_ids_are_never_empty_or_undecodable():
    assert run_id(Path("/conversation.json"))
    assert run_id(Path("/.json")) == "conversation"
    run_id(Path(os.fsdecode(b"/a/\xff/conversation.json"))).encode()


def test_run_folder(tmp_path):
    assert run_folder(tmp_path / "a/process/conversation.json") == tmp_path / "a"
    assert run_folder(tmp_path / "a/conversation.json") == tmp_path / "a"
    inner = tmp_path / "a/workspace/process/conversation.json"
    assert run_folder(inner) == tmp_path / "a/workspace"
    make(tmp_path, "a/detail_report.json")
    assert run_folder(inner) == tmp_path / "a"
    assert run_id(inner) == "a"


PLACES = [
    "outputs/agents_outputs",
    "agents_outputs",
    "agent_outputs",
    "workspace/agents_outputs",
    "outputs/workspace/agents_outputs",
    "outputs/agent_outputs",
]


@pytest.mark.parametrize("place", PLACES)
def test_places_of_outputs(place, tmp_path):
    make(tmp_path, f"{place}/case_2/a.json", f"{place}/case_1/sub/b.json", f"{place}/all.csv")
    outputs = find_outputs(tmp_path)
    assert outputs.root == tmp_path / place
    assert outputs.cases == ("case_1", "case_2")
    assert set(outputs.of_case("case_1")) == {"sub/b.json"}
    assert outputs.of_case(None)["all.csv"].size == 2


def test_answers_beside_other_folders(tmp_path):
    """The vqa branch's own layout; what is no question is no output."""
    make(
        tmp_path,
        "outputs/q1/answer.json",
        "outputs/q1/notes.txt",
        "outputs/plan/plan.md",
        "outputs/q2/answers.json",
        "outputs/smoke_forward.json",
        "outputs/run_summary.json",
        "outputs/env/lib/answer.py",
    )
    outputs = find_outputs(tmp_path)
    assert (outputs.root, outputs.cases) == (tmp_path / "outputs", ("q1",))
    assert set(outputs.of_case(None)) == {"smoke_forward.json"}
    assert find_outputs(tmp_path, ("q1", "q2", "q3")).cases == ("q1", "q2")
    (tmp_path / "outputs/run_summary.json").unlink()
    shutil.rmtree(tmp_path / "outputs/q1")
    assert find_outputs(tmp_path) == Outputs()


def test_links_of_outputs(tmp_path):
    run = tmp_path / "run"
    make(tmp_path, "secret/key.txt", "run/workspace/x/a.json", "run/agents_outputs/case_1/a.json")
    root = run / "agents_outputs"
    (root / "case_1/stolen.txt").symlink_to(tmp_path / "secret/key.txt")
    (root / "case_1/missing.txt").symlink_to(tmp_path / "nowhere")
    (root / "stolen").symlink_to(tmp_path / "secret")
    (root / "relative").symlink_to("../../secret")
    (root / "case_2").symlink_to("../workspace/x")
    (root / "case_1/up").symlink_to("../..")
    (root / "case_1/self").symlink_to("self")
    os.mkfifo(root / "case_1/pipe")
    assert [(f.case, f.name) for f in find_outputs(run).files] == [
        ("case_1", "a.json"),
        ("case_2", "a.json"),
    ]


def test_a_root_that_leaves_the_run_is_not_listed(tmp_path):
    make(tmp_path, "secret/case/key.txt", "run/conversation.json")
    (tmp_path / "run/agents_outputs").symlink_to(tmp_path / "secret")
    assert find_outputs(tmp_path / "run").root is None


def test_a_run_reached_through_a_link_keeps_its_outputs(tmp_path):
    make(tmp_path, "store/agents_outputs/case/a.json")
    (tmp_path / "link").symlink_to("store")
    assert find_outputs(tmp_path / "link").cases == ("case",)


def test_names_that_are_no_utf8_are_listed(tmp_path):
    folder = tmp_path / "agents_outputs" / os.fsdecode(b"c\xff")
    try:
        folder.mkdir(parents=True)
    except OSError:
        pytest.skip("this file system only takes UTF-8 names")
    (folder / "a.json").write_text("x")
    (file,) = find_outputs(tmp_path).files
    assert file.case == "c\ufffd"
    assert file.path.read_text() == "x"
    file.model_dump_json()


def test_side_files_inside_only(tmp_path):
    make(tmp_path, "run/process/trace.jsonl", "run/trace.jsonl", "elsewhere.json")
    (tmp_path / "run/agent_summary.json").symlink_to(tmp_path / "elsewhere.json")
    assert side_file(tmp_path / "run", "trace.jsonl") == tmp_path / "run/process/trace.jsonl"
    assert side_file(tmp_path / "run", "agent_summary.json") is None
