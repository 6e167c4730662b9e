"""Runs and files at addresses (`s3://bucket/runs`), by fsspec: listed once, brought here one at a
time, deleted after use.

Which schemes there are is said here, credentials are those that the user's environment has: nothing
that is read decides either. What a listing names is data: no name of it leads out of the folder
that a run is brought into.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any, NamedTuple

from ...atomic_files import held_alone
from ...errors import AmbjudgeError, InputError
from ...sanitize import mask, sanitize_line
from .layout import (
    AGENT_FOLDERS,
    CONVERSATION_NAMES,
    FOLDERS_READ,
    MAX_OUTPUT_FILES,
    TRACE_NAMES,
    TREES_READ,
    Listing,
    conversations_below,
    run_folder,
)

SCHEMES = ("s3", "gs", "memory")
"""`memory` is of this process alone, for tests and notebooks."""
_MOST_BYTES = 8 * 1024**3
"""Of one run, or one file of scorecards."""
_LOCK = "in-use"
"""Of a private folder: its owner holds it as long as it lives."""
_SWEPT: set[Path] = set()
_TIMES = ("ETag", "etag", "md5Hash", "LastModified", "mtime", "updated", "modified", "created")
"""What file systems call the version of an object in a listing; the first that there is."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]{0,40})://")


def scheme_of(text: str | os.PathLike[str]) -> str | None:
    """What stands before `://`, if something does."""
    found = _SCHEME.match(str(text))
    return found[1] if found else None


def is_address(text: str | os.PathLike[str]) -> bool:
    """Whether this names something that is read through fsspec."""
    return scheme_of(text) in SCHEMES


class Object(NamedTuple):
    """A file of a listing: its key (for fsspec), its bytes, and what tells its versions apart ("":
    nothing does)."""

    key: str
    size: int
    version: str


if TYPE_CHECKING:
    _Path = Path
else:
    # before Python 3.12 only the class of this machine's paths can be derived from
    _Path = type(Path())


class RemotePath(_Path):
    """An address where a path is wanted: `str` gives the address; there is no such file here."""

    files: tuple[Object, ...] = ()
    """Of a run's conversation that was listed: the files of the run."""

    def __str__(self) -> str:
        scheme, *rest = self.parts
        return f"{scheme}//{'/'.join(rest)}"

    def __fspath__(self) -> str:
        return str(self)

    def __reduce__(self) -> Any:
        return _listed, (str(self), self.files)

    def absolute(self) -> RemotePath:
        return self

    def is_absolute(self) -> bool:
        return True

    @property
    def stamp(self) -> str | None:
        """The run's files as the listing has them: while it stays, nothing needs to be read. None
        where versions of a file cannot be told apart."""
        if not self.files or not all(file.version for file in self.files):
            return None
        return "\n".join(f"{file.key}\t{file.size}\t{file.version}" for file in self.files)


def _listed(address: str, files: tuple[Object, ...]) -> RemotePath:
    path = RemotePath(address)
    path.files = files
    return path


def find_runs(address: str) -> Iterator[RemotePath]:
    """The conversations at or below an address in the order of `layout.find_conversations`, each
    with its run's files.

    One listing; InputError where it cannot be had, or holds no run.
    """
    fs, root = _file_system(address)
    wanted = root.strip("/")
    objects = {file.key.lstrip("/"): file for file in _objects(fs, _top(root), address)}
    tree: defaultdict[str, Listing] = defaultdict(lambda: Listing(set(), set()))
    for key in objects:
        folder, _, name = key.rpartition("/")
        tree[folder].files.add(name)
        while folder:
            above, _, name = folder.rpartition("/")
            if name in tree[above].subfolders:
                break
            tree[above].subfolders.add(name)
            folder = above
    scheme, nothing, found = scheme_of(address), Listing(set(), set()), False

    def listing(folder: str) -> Listing:
        return tree.get(folder.replace(os.sep, "/").removeprefix(f"{scheme}://"), nothing)

    for key in conversations_below(_top(root).strip("/"), listing):
        key = key.replace(os.sep, "/")
        if key == wanted or not wanted or key.startswith(f"{wanted}/"):
            found = True
            conversation = RemotePath(f"{scheme}://{key}")
            folder = str(run_folder(conversation, listing)).removeprefix(f"{scheme}://")
            yield _listed(
                str(conversation), tuple(objects[name] for name in _of_run(folder, listing))
            )
    if not found:
        raise InputError(
            "holds no conversation.json at any depth",
            "a run is <run>/process/conversation.json",
            address,
        )


def _top(root: str) -> str:
    """Where to list from, so that a run is whole though the address names its conversation or its
    process/ folder."""
    above, _, name = root.rstrip("/").rpartition("/")
    if above and name in CONVERSATION_NAMES + TRACE_NAMES:
        root = above
        above, _, name = root.rpartition("/")
    if above and name == "process":
        root = above
        above, _, name = root.rpartition("/")
    return above if above and name in AGENT_FOLDERS else root


def _of_run(folder: str, listing: Callable[[str], Listing]) -> list[str]:
    """The keys of all that is read of a run in this folder, sorted."""
    found = {
        f"{place}/{name}".lstrip("/")
        for place in (f"{folder}/{below}".strip("/") for below in FOLDERS_READ)
        for name in listing(place).files
    }
    pending = [f"{folder}/{below}".strip("/") for below in TREES_READ]
    while pending:
        subfolders, files = listing(place := pending.pop())
        found.update(f"{place}/{name}" for name in files)
        pending += [f"{place}/{name}" for name in subfolders]
    return sorted(found)


@contextmanager
def staged(run: RemotePath) -> Iterator[Path]:
    """The conversation of a run that is here, with all files of its listing, as long as this lasts.

    InputError for a run that is too large or cannot be brought here; errors met while it is here
    speak of the address.
    """
    if len(run.files) > MAX_OUTPUT_FILES or sum(file.size for file in run.files) > _MOST_BYTES:
        size = f"{len(run.files):,} files with {sum(file.size for file in run.files):,} bytes"
        raise InputError(
            f"has {size}: too much to bring here",
            "at most 8 GiB a run; copy it to a local folder",
            run,
        )
    with _brought(str(run), run.files) as folder:
        here = folder.joinpath(*_parts(run))
        try:
            yield here
        except AmbjudgeError as error:
            error.message, error.hint = (
                text.replace(str(here), str(run)) for text in (error.message, error.hint)
            )
            raise


def find_files(address: str, suffixes: tuple[str, ...]) -> list[RemotePath]:
    """The file at an address, or those directly below it, with one of these endings."""
    fs, root = _file_system(address)
    files = _objects(fs, root, address, maxdepth=1)
    return [
        _listed(f"{scheme_of(address)}://{file.key.lstrip('/')}", (file,))
        for file in files
        if file.key.endswith(suffixes)
    ]


def read_small(address: str, most: int = 65_536) -> bytes | None:
    """A small file at an address; None where there is none."""
    fs, root = _file_system(address)
    with _reached(address):
        try:
            return bytes(fs.cat_file(root, start=0, end=most))
        except FileNotFoundError:
            return None


def size_of(address: str) -> int | None:
    """Bytes of the file at an address; None where there is none."""
    fs, root = _file_system(address)
    with _reached(address):
        try:
            return int(fs.info(root)["size"])
        except FileNotFoundError:
            return None


def check_writable_place(address: str) -> None:
    """InputError at once where nothing can be written later: an unknown scheme, a missing package,
    no such bucket."""
    fs, root = _file_system(address)
    with _reached(address), suppress(PermissionError):  # who may write need not be allowed to list
        fs.find(root)


def upload(file: Path, address: str) -> None:
    """Write a file of this machine to an address, whole; InputError unless it then has the same
    size there."""
    fs, root = _file_system(address)
    with _reached(address):
        fs.put_file(str(file), root)
    if (there := size_of(address)) != (here := file.stat().st_size):
        raise InputError(f"has {there} bytes after writing {here}", "try again", address)


@contextmanager
def _brought(address: str, files: tuple[Object, ...]) -> Iterator[Path]:
    """A private folder with these files, each under its key below the scheme's name."""
    fs, _ = _file_system(address)
    with private_folder() as folder:
        scheme = scheme_of(address) or ""
        places = [folder.joinpath(scheme, *file.key.lstrip("/").split("/")) for file in files]
        with _reached(address):
            fs.get([file.key for file in files], [str(place) for place in places])
        for file, place in zip(files, places, strict=True):
            if not place.is_file() or place.stat().st_size != file.size:
                raise InputError(
                    f"changed while it was read: {file.key}", "run the command again", address
                )
        yield folder


@contextmanager
def private_folder() -> Iterator[Path]:
    """A temporary folder of this user alone, as long as this lasts; what kill -9 leaves, the same
    user's next command that needs one removes."""
    user = getattr(os, "getuid", lambda: 0)()
    _sweep(Path(gettempdir()), user)
    with TemporaryDirectory(prefix=f"ambjudge-{user}-", ignore_cleanup_errors=True) as name:
        lock = Path(name, "new")
        held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            held_alone(held)
            lock.rename(lock.with_name(_LOCK))
            yield Path(name)
        finally:
            os.close(held)


def _sweep(folder: Path, user: int) -> None:
    if folder in _SWEPT:
        return
    _SWEPT.add(folder)
    for old in folder.glob(f"ambjudge-{user}-*"):
        with suppress(OSError):
            about = old.lstat()
            if stat.S_ISDIR(about.st_mode) and about.st_uid == user:
                held = os.open(old / _LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
                try:
                    if held_alone(held):
                        shutil.rmtree(old, ignore_errors=True)
                finally:
                    os.close(held)


def _parts(run: RemotePath) -> tuple[str, ...]:
    return (run.parts[0].removesuffix(":"), *run.parts[1:])


def _objects(fs: Any, root: str, address: str, **options: Any) -> list[Object]:
    """The files at or below a place, but those whose keys could be no files below a folder, of
    which the log says."""
    with _reached(address):
        infos = fs.find(root, detail=True, **options)
    found, odd = [], 0
    for key, info in infos.items():
        if not _is_place(key.lstrip("/")):
            odd += 1
            continue
        version = next((str(info[name]) for name in _TIMES if info.get(name)), "")
        found.append(Object(key, int(info.get("size") or 0), version))
    if odd:
        from ...plugins import warn

        warn(f"{address}: {odd} names of the listing can be no files here and are left out")
    return found


def _is_place(key: str) -> bool:
    """Whether a key can be a file's place below a folder and nowhere else."""
    return (
        "\0" not in key
        and (os.sep == "/" or not set(key) & set('\\:*?"<>|'))
        and not {"", ".", ".."} & set(key.split("/"))
    )


def _file_system(address: str) -> tuple[Any, str]:
    """fsspec's file system of an address and the place in it; InputError for what is not
    understood."""
    scheme = scheme_of(address)
    if scheme not in SCHEMES or "@" in address.partition("://")[2].partition("/")[0]:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise InputError(
            "no address that is understood",
            f"known: {known}; credentials are the environment's",
            address,
        )
    try:
        import fsspec

        fs, root = fsspec.core.url_to_fs(address, use_listings_cache=False)
    except ImportError:
        raise InputError(
            "needs packages that are not installed", 'pip install "ambjudge[cloud]"', address
        ) from None
    except Exception as error:
        raise _sorted_out(error, address) from error
    if scheme != "memory" and not root.strip("/"):
        raise InputError("names no bucket", f"give {scheme}://bucket/place", address)
    return fs, str(root)


@contextmanager
def _reached(address: str) -> Iterator[None]:
    """Every failure as an InputError about this address. What passes by itself the file systems try
    again: s3fs, gcsfs."""
    try:
        yield
    except Exception as error:
        raise _sorted_out(error, address) from error


def _sorted_out(error: Exception, address: str) -> InputError:
    said = sanitize_line(mask(" ".join(f"{error}".split())))[:200]
    if isinstance(error, FileNotFoundError):
        return InputError("is not there", "check the address", address)
    return InputError(
        f"cannot be reached or read: {type(error).__name__}: {said}",
        "check the address, the credentials, the network",
        address,
    )
