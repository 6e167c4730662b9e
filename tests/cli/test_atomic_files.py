"""Files get their names whole: through links, never in place of what is no file, and whatever ends
the writer."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from ambjudge.atomic_files import PART, NewFile, acquire_lock, atomic_write, file_behind
from ambjudge.commands.card_files import CardFile
from ambjudge.errors import InputError
from ambjudge.trajectories.reading import remote
from ambjudge.trajectories.reading.remote import private_folder


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_link_stays_and_permissions_too(tmp_path: Path) -> None:
    target, link = tmp_path / "a" / "target", tmp_path / "link"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("a/target")
    with atomic_write(link) as part:
        part.write_text("new")
        assert target.read_text() == "old"
    assert (link.is_symlink(), target.read_text(), target.stat().st_mode & 0o777) == (
        True,
        "new",
        0o640,
    )
    with atomic_write(tmp_path / "deep" / "new") as part:
        part.write_text("x")
    usual = tmp_path / "usual"
    usual.touch()
    assert (tmp_path / "deep" / "new").stat().st_mode == usual.stat().st_mode
    assert names(tmp_path / "a") == ["target"]


def test_what_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    with pytest.raises(KeyError), atomic_write(path) as part:  # noqa: PT012
        part.write_text("half")
        raise KeyError
    with (
        pytest.raises(InputError, match="cannot be written: No space left on device"),
        atomic_write(path) as part,
    ):
        raise OSError(28, "No space left on device")
    with pytest.raises(FileNotFoundError), atomic_write(path):
        (tmp_path / "of another").read_text()
    with pytest.raises(InputError, match="cannot be written"), atomic_write(path / "below a file"):
        pass
    assert (names(tmp_path), path.read_text()) == (["f"], "old")


def test_two_commands_on_one_file_do_not_meet(tmp_path: Path) -> None:
    one, other = NewFile(tmp_path / "f"), NewFile(tmp_path / "f")
    one.part.write_text("one")
    other.part.write_text("other")
    other.keep()
    one.keep()
    assert ((tmp_path / "f").read_text(), names(tmp_path)) == ("one", ["f"])


def test_pipes_devices_and_descriptors_are_no_files_to_replace(tmp_path: Path) -> None:
    """Also where the shell has sent a descriptor into a file, and through a link."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with atomic_write(tmp_path / "pipe") as part:
        part.write_text("through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    file = os.open(tmp_path / "sent", os.O_RDWR | os.O_CREAT)
    (tmp_path / "link").symlink_to(f"/dev/fd/{file}")
    os.write(file, b"said before\n")
    with ExitStack() as stack:
        cards = CardFile(tmp_path / "link", stack)
        cards.write("a card")
        cards.keep()
    assert os.pread(file, 100, 0) == b"said before\na card\n"
    os.close(file)
    assert [
        file_behind(Path(name))
        for name in ("/dev/stdout", "/dev/null", "/proc/self/fd/1", tmp_path)
    ] == [None] * 4
    assert names(tmp_path) == ["link", "pipe", "sent"]


def test_what_killed_commands_left_is_removed_by_the_next_and_what_lives_is_not(
    tmp_path: Path, monkeypatch
) -> None:
    dead, living = tmp_path / f".dead{PART}", tmp_path / f".living{PART}"
    dead.touch()
    held = os.open(living, os.O_RDWR | os.O_CREAT)
    assert acquire_lock(held)
    NewFile(tmp_path / "f").keep()
    assert names(tmp_path) == [living.name, "f"]
    os.close(held)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / f"ambjudge-{os.getuid()}-killed"
    left.mkdir()
    (left / "in-use").touch()
    with private_folder() as first:
        (tmp_path / f"ambjudge-{os.getuid()}-of-another").symlink_to(first)
        remote._SWEPT.clear()
        with private_folder() as second:
            assert (left.exists(), first.is_dir(), second.is_dir()) == (False, True, True)
    assert not first.exists()
