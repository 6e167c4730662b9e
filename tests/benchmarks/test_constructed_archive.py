"""The archive of constructed runs: what `make data` unpacks, and what it refuses."""

from __future__ import annotations

import io
import json
import tarfile
from collections import Counter
from pathlib import Path

import constructed_archive as kept
import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT / "benchmarks" / "data"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name, text in (
        ("a/runs/one/process/trace.jsonl", "{}"),
        ("b/runs/two/report.json", "[]"),
        ("b/labels/two.json", "no"),
    ):
        path = tmp_path / "from" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "from"


def archive_of(member: tarfile.TarInfo, path: Path) -> Path:
    with tarfile.open(path, "w:xz") as tar:
        tar.addfile(member, io.BytesIO(b"x" * member.size))
    kept.hash_file(path).write_text(f"{kept.sha256(path)}  {path.name}\n")
    return path


def test_the_archive_in_the_repository_is_the_stated_one_and_every_label_has_a_split() -> None:
    assert kept.hash_file(kept.ARCHIVE).read_text().split() == [
        kept.sha256(kept.ARCHIVE),
        kept.ARCHIVE.name,
    ]
    labels = [json.loads(line) for line in (DATA / "labels.jsonl").read_text("utf-8").splitlines()]
    gold = [label for label in labels if "stages" in label]
    assert len({(label["set"], label["run"]) for label in gold}) == len(gold) == 370
    assert Counter(label["split"] for label in gold) == {"dev": 267, "opened": 103}
    held = {
        (path.parts[-3], path.name)
        for path in (ROOT / "tests" / "data" / "constructed").glob("*/runs/*")
    }
    assert held <= {(label["set"], label["run"]) for label in gold}


def test_the_same_runs_give_the_same_bytes_and_come_back(runs: Path, tmp_path: Path) -> None:
    for name in ("one.tar.xz", "two.tar.xz"):
        kept.pack(runs, tmp_path / name)
        (runs / "a" / "runs" / "one" / "process" / "trace.jsonl").touch()
    assert (tmp_path / "one.tar.xz").read_bytes() == (tmp_path / "two.tar.xz").read_bytes()
    assert kept.unpack(tmp_path / "one.tar.xz", tmp_path / "to")
    assert not kept.unpack(tmp_path / "one.tar.xz", tmp_path / "to")
    found = {
        path.relative_to(tmp_path / "to").as_posix() for path in (tmp_path / "to").rglob("*.json*")
    }
    assert found == {"a/runs/one/process/trace.jsonl", "b/runs/two/report.json"}


def test_another_archive_than_the_stated_one_is_not_unpacked(runs: Path, tmp_path: Path) -> None:
    archive = tmp_path / "runs.tar.xz"
    kept.pack(runs, archive)
    archive.write_bytes(archive.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged"):
        kept.unpack(archive, tmp_path / "to")
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize(
    ("name", "kind", "target"),
    [
        ("../outside", tarfile.REGTYPE, ""),
        ("/outside", tarfile.REGTYPE, ""),
        ("a/../../outside", tarfile.REGTYPE, ""),
        ("a\\..\\outside", tarfile.REGTYPE, ""),
        ("link", tarfile.SYMTYPE, "../outside"),
        ("link", tarfile.LNKTYPE, "../outside"),
        ("pipe", tarfile.FIFOTYPE, ""),
    ],
)
def test_a_member_that_points_outside_is_refused(
    name: str, kind: bytes, target: str, tmp_path: Path
) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, target, 3 if kind == tarfile.REGTYPE else 0
    with pytest.raises(ValueError, match="no plain file inside"):
        kept.unpack(archive_of(member, tmp_path / "runs.tar.xz"), tmp_path / "to")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.tar.xz", "runs.tar.xz.sha256"]


def test_an_archive_that_grows_without_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, runs: Path, tmp_path: Path
) -> None:
    kept.pack(runs, tmp_path / "runs.tar.xz")
    monkeypatch.setattr(kept, "MAX_BYTES", 3)
    with pytest.raises(ValueError, match="more than 3 bytes"):
        kept.unpack(tmp_path / "runs.tar.xz", tmp_path / "to")
