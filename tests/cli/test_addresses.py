"""Runs and scorecards at addresses: what a folder of this machine gives, and nothing of a listing
leads elsewhere."""

from __future__ import annotations

import copy
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import ambjudge
import pytest
from ambjudge.errors import InputError
from ambjudge.trajectories.reading.layout import find_conversations, run_folder
from ambjudge.trajectories.reading.load import load_conversation
from ambjudge.trajectories.reading.remote import RemoteFile, RemotePath, find_runs, staged

fsspec = pytest.importorskip(
    "fsspec", reason="fsspec is not installed: pip install 'ambjudge[cloud]'"
)
RUNS = Path(__file__).parents[1] / "data" / "recorded" / "runs"
PUBLIC = ("--public", RUNS.parent / "public")
NAMES = ["crc-lite-01", "vqa-lite-01"]


@pytest.fixture
def memory(monkeypatch, tmp_path) -> Iterator:
    """An empty fsspec `memory://`, and a folder for temporary files that is seen to be empty at the
    end."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs
    fs.store.clear()
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.fixture
def s3(monkeypatch) -> Iterator:
    """A bucket `bucket` on an S3 server of this machine."""
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'ambjudge[cloud]'")
    server = pytest.importorskip(
        "moto.server", reason="moto is not installed: pip install 'moto[s3]' flask flask-cors"
    )
    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    secrets = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret"}
    for name, value in {
        **secrets,
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    fs = fsspec.filesystem("s3", use_listings_cache=False)
    fs.mkdir("bucket")
    yield fs
    type(fs).clear_instance_cache()
    running.stop()


def put(fs, folder: Path, place: str) -> None:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            fs.pipe_file(f"{place}/{file.relative_to(folder).as_posix()}", file.read_bytes())


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> str:
    """What a folder of this machine gives, with RUNS for its path."""
    folder = tmp_path_factory.mktemp("expected")
    for name in NAMES:
        shutil.copytree(RUNS / name, folder / name)
    cards = ambjudge.score_many(folder, public=PUBLIC[1])
    return "".join(f"{card.to_json()}\n" for card in cards).replace(str(folder), "RUNS")


def test_an_address_gives_what_a_folder_gives_and_an_unchanged_run_is_not_read_again(
    out, memory, expected, monkeypatch
):
    for name in NAMES:
        put(memory, RUNS / name, f"/runs/{name}")
    expected = expected.replace("RUNS", "memory://runs")
    command = ("score", "memory://runs", "--json", "--store", "s.db", *PUBLIC)
    assert out(*command)[1] == expected
    assert (
        out(
            "score",
            "memory://runs",
            "--store",
            "none",
            "--out",
            "memory://new/cards.jsonl",
            *PUBLIC,
        )[0]
        == 0
    )
    assert memory.cat_file("/new/cards.jsonl").decode() == expected

    def read(*_args, **_options):
        raise PermissionError("nothing is to be read")

    monkeypatch.setattr(type(memory), "get", read)
    assert out(*command)[:2] == (0, expected)
    memory.pipe_file("/runs/crc-lite-01/plan.md", b"Another plan.")
    code, cards, err = out(*command)
    assert (code, len(cards.splitlines())) == (1, 1)
    assert (
        "memory://runs/crc-lite-01/process/conversation.json: cannot be reached or read:"
        " PermissionError" in err
    )


def test_s3_gives_what_a_folder_gives(out, s3, expected):
    for name in NAMES:
        put(s3, RUNS / name, f"bucket/runs/{name}")
    expected = expected.replace("RUNS", "s3://bucket/runs")
    code, cards, _ = out(
        "score", "s3://bucket/runs/", "--json", "--out", "s3://bucket/all.jsonl", *PUBLIC
    )
    assert (code, cards, s3.cat_file("bucket/all.jsonl").decode()) == (0, expected, expected)
    for number in "12":
        code, _, err = out(
            "score",
            "s3://bucket/runs",
            "--shard",
            f"{number}/2",
            "--out",
            "s3://bucket/parts",
            *PUBLIC,
        )
        assert code == 0, err
    parts = [
        s3.cat_file(name).decode() for name in s3.find("bucket/parts") if name.endswith(".jsonl")
    ]
    assert (len(parts), "".join(parts)) == (2, expected)
    code, _, err = out(
        "score", "s3://bucket/runs", "--shard", "1/2", "--out", "s3://bucket/parts", *PUBLIC
    )
    assert (code, "up to date" in err) == (0, True)
    assert out("leaderboard", "s3://bucket/parts")[0] == 0
    s3.pipe_file("bucket/runs/crc-lite-01/process/conversation.json", b"no")
    code, cards, err = out("score", "s3://bucket/runs", "--json", *PUBLIC)
    assert (code, cards.splitlines()) == (1, expected.splitlines()[1:])
    assert "s3://bucket/runs/crc-lite-01/process/conversation.json" in err
    for line in (
        ("score", "s3://nowhere-at-all/runs"),
        ("score", "s3://bucket/runs", "--out", "s3://nowhere-at-all/x"),
    ):
        code, cards, err = out(*line)
        assert (code, cards, "s3://nowhere-at-all" in err) == (2, "", True)


def test_scorecards_that_cannot_be_sent_stay_here(out, memory, expected, monkeypatch):
    put(memory, RUNS / NAMES[0], f"/runs/{NAMES[0]}")

    def refuse(*_args, **_options):
        raise PermissionError("read only")

    monkeypatch.setattr(type(memory), "put_file", refuse)
    code, _, err = out("score", "memory://runs", "--out", "memory://out/cards.jsonl", *PUBLIC)
    assert (code, "memory://out/cards.jsonl" in err) == (2, True)
    part = Path(err.rpartition("scorecards so far are in ")[2].rstrip(")\n"))
    assert (
        part.read_text("utf-8")
        == expected.replace("RUNS", "memory://runs").splitlines(keepends=True)[0]
    )
    shutil.rmtree(part.parent)


CONVERSATION = b'[{"role": "user", "content": "Task."}, {"role": "assistant", "content": "Done."}]'


@pytest.mark.parametrize(
    "files",
    [
        [
            "run_3/process/conversation.json",
            "run_3/process/trace.jsonl",
            "run_3/outputs/plan/plan.md",
        ],
        [
            "a/workspace/process/messages.json",
            "a/detail_report.json",
            "a/workspace/agents_outputs/c1/x/y.json",
        ],
        [
            "a/outputs/process/conversation.json",
            "a/process/agent_summary.json",
            "a/agent_outputs/c1.txt",
        ],
        [
            "conversation.json",
            "b/conversation.json",
            "a/process/trace.jsonl",
            "a/process/plan.md",
            "outputs/q1/answer.json",
        ],
        [
            "a/messages.json",
            "a/conversation.json",
            "a/agents_outputs/c/conversation.json",
            ".git/conversation.json",
        ],
    ],
)
def test_runs_are_found_and_read_at_an_address_as_in_a_folder(memory, tmp_path, files):
    root = tmp_path / "memory" / "set"
    for name in [*files, "a/checkpoints/large.bin", "notes.txt"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(
            CONVERSATION if name.endswith(("on.json", "es.json")) else b"{}\n"
        )
    put(memory, root, "/set")
    folders = {
        str(path.parent.relative_to(root))
        for path in find_conversations(root)
        if path.suffix == ".json"
    }
    for below in ("", *folders):
        here = [load(path) for path in find_conversations(root / below)]
        address = f"memory://set/{below}".rstrip("/.")
        there = []
        for found in find_runs(address):
            assert not any("checkpoints" in file.key for file in found.files)
            with staged(found) as path:
                there.append(load(path))
                assert str(found).endswith(path.as_posix().partition("/memory/set/")[2])
        if there != here:  # from inside its process/ folder a trace is found too
            assert [one[0] for one in here] == [one[0] for one in there if one[0] in dict(here)], (
                address
            )


def load(path: Path) -> tuple[str, str]:
    try:
        run = load_conversation(path)
        return run.id, run.content_sha256
    except InputError as error:
        return run_folder(path).name, error.message.rpartition(":")[2]


def test_names_of_a_listing_lead_nowhere_else(out, memory, tmp_path, caplog):
    for key in ("/set/a/process/conversation.json", "/set/b/process/conversation.json"):
        memory.pipe_file(key, CONVERSATION)
    outside = (
        "/set/a/outputs/../../../../../../../../../evil",
        "/set/a/outputs//evil",
        "/set/a/outputs/x\0y",
    )
    for key in outside:
        memory.store[key] = memory.store["/set/a/process/conversation.json"]
    memory.pipe_file("/set/b/outputs/plan", b"both a file")
    memory.store["/set/b/outputs/plan/plan.md"] = memory.store["/set/b/outputs/plan"]
    listed = list(find_runs("memory://set"))
    assert [run.name for run in listed] == ["conversation.json"] * 2
    assert not any("evil" in file.key or "\0" in file.key for run in listed for file in run.files)
    with staged(listed[0]) as here:
        assert here.read_bytes() == CONVERSATION
        assert here.is_relative_to(tmp_path / "temporary")
    code, cards, err = out("score", "memory://set", "--json")
    assert (code, len(cards.splitlines()), "memory://set/b/process" in err) == (1, 1, True)


def test_an_address_names_no_place_here():
    path = RemotePath("s3://bucket/a/process/conversation.json")
    assert (str(path), str(path.parent.parent), path.absolute()) == (
        "s3://bucket/a/process/conversation.json",
        "s3://bucket/a",
        path,
    )
    assert not path.exists()
    listed = RemotePath(path)
    listed.files = (RemoteFile("bucket/a/process/conversation.json", 1, "v"),)
    sent = copy.deepcopy(listed)  # by the same method as pickle, which takes it to workers
    assert (sent, sent.files, sent.stamp) == (listed, listed.files, listed.stamp)
    assert path.stamp is None


def test_what_is_missing_is_said_in_one_line(out, monkeypatch):
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    code, _, err = out("score", "gs://bucket/runs")
    assert (code, err.count("\n"), "pip install" in err) == (2, 1, True)
    for line in (("memory://none",), ("memory://user:secret@x",), ("memory://none", "--dry-run")):
        code, cards, err = out("score", *line)
        assert (code, cards, err.count("\n")) == (2, "", 1), err
    assert not os.path.exists("memory:")
