"""The constructed runs as one archive: `make data` unpacks it into data/constructed, for the
benchmarks that read it.

    python benchmarks/constructed_archive.py                 check
    benchmarks/data/constructed.tar.xz and unpack it
    python benchmarks/constructed_archive.py --pack FOLDER   write it anew from FOLDER/SET/runs/RUN,
    and its hash

The same files give the same bytes: names sorted, no times, owners or modes.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import lzma
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE = ROOT / "benchmarks" / "data" / "constructed.tar.xz"
TARGET = ROOT / "data" / "constructed"
MAX_BYTES = 500_000_000
_STAMP = "unpacked.sha256"


def hash_file(archive: Path) -> Path:
    """Where the hash of an archive is kept: beside it, as `sha256sum -c` reads it."""
    return archive.with_name(archive.name + ".sha256")


def sha256(archive: Path) -> str:
    with archive.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pack(source: Path, archive: Path = ARCHIVE) -> None:
    """Write the runs of `source` (SET/runs/RUN/...) as an archive, and its hash beside it."""
    files = sorted(
        path for path in source.glob("*/runs/**/*") if path.is_file() and not path.is_symlink()
    )
    with (
        lzma.open(archive, "wb", preset=9 | lzma.PRESET_EXTREME) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for path in files:
            member = tarfile.TarInfo(path.relative_to(source).as_posix())
            content = path.read_bytes()
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    hash_file(archive).write_text(f"{sha256(archive)}  {archive.name}\n", encoding="ascii")


def unpack(archive: Path = ARCHIVE, target: Path = TARGET) -> bool:
    """Unpack an archive whose hash is the stated one; False when the target holds it already.

    ValueError for another hash, a member that is no plain file inside the target, or more than
    `MAX_BYTES` in all; the target is then as it was.
    """
    stated = hash_file(archive).read_text(encoding="ascii").split()[0]
    stamp = target / _STAMP
    if stamp.is_file() and stamp.read_text(encoding="ascii").strip() == stated:
        return False
    if (found := sha256(archive)) != stated:
        raise ValueError(
            f"{archive.name} is damaged or another one: its hash is {found}, not {stated}"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        fresh = Path(folder) / target.name
        _extract(archive, fresh)
        (fresh / _STAMP).write_text(stated + "\n", encoding="ascii")
        if target.exists():
            shutil.rmtree(target)
        fresh.rename(target)
    return True


def _extract(archive: Path, target: Path) -> None:
    left = MAX_BYTES
    with tarfile.open(archive, "r|xz") as tar:
        for member in tar:
            name = PurePosixPath(member.name)
            content = tar.extractfile(member) if member.isreg() else None
            if (
                content is None
                or name.is_absolute()
                or ".." in name.parts
                or "\\" in member.name
                or ":" in member.name
            ):
                raise ValueError(
                    f"{archive.name}: {member.name!r} is no plain file inside the target"
                )
            left -= member.size
            if left < 0:
                raise ValueError(f"{archive.name} unpacks to more than {MAX_BYTES:,} bytes")
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                shutil.copyfileobj(content, file)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pack", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    try:
        if options.pack:
            pack(options.pack)
        elif unpack():
            print(f"constructed runs unpacked into {TARGET}")
    except (OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
