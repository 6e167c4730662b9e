"""Reads runs and files at addresses such as `s3://bucket/runs`, through fsspec.

A tree is listed once; its runs are copied to this machine one at a time and deleted after use. The
schemes are fixed here and the credentials are those of the user's environment: nothing that is read
decides either. Names in a listing are untrusted: none leads out of the folder that a run is copied
into.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any, NamedTuple

from ...atomic_files import acquire_lock
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
"""`memory` exists in this process only, for tests and notebooks."""
_MAX_BYTES = 8 * 1024**3
"""Bytes of one run, or of one file of scorecards."""
_LOCK_NAME = "in-use"
"""The file of a private folder that its owner keeps locked as long as it lives."""
_SWEPT: set[Path] = set()
"""Folders in which this process has removed what killed processes left."""
_VERSION_KEYS = (
    "ETag",
    "etag",
    "md5Hash",
    "LastModified",
    "mtime",
    "updated",
    "modified",
    "created",
)
"""What file systems call the version of a file in a listing, in order of preference."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]{0,40})://")


def scheme_of(text: str | os.PathLike[str]) -> str | None:
    """The part before `://`; None if there is none."""
    match = _SCHEME.match(str(text))
    return match[1] if match else None


def is_address(text: str | os.PathLike[str]) -> bool:
    """Whether this names something that is read through fsspec."""
    return scheme_of(text) in SCHEMES


class RemoteFile(NamedTuple):
    """A file in a listing."""

    key: str
    """Its path for fsspec."""
    size: int
    """Bytes."""
    version: str
    """Differs between versions of the file; "" if the file system has nothing that does."""


if TYPE_CHECKING:
    _Path = Path
else:
    # Before Python 3.12 only the class of this machine's paths can be a base class.
    _Path = type(Path())


class RemotePath(_Path):
    """An address where a path is expected: `str` gives the address; no such file exists here."""

    files: tuple[RemoteFile, ...] = ()
    """The files of the run, if this is the conversation of a run that was listed."""

    def __str__(self) -> str:
        scheme, *names = self.parts
        return f"{scheme}//{'/'.join(names)}"

    def __fspath__(self) -> str:
        return str(self)

    def __reduce__(self) -> Any:
        return _with_files, (str(self), self.files)

    def absolute(self) -> RemotePath:
        return self

    def is_absolute(self) -> bool:
        return True

    @property
    def stamp(self) -> str | None:
        """The run's files as listed: while this stays the same, nothing needs to be read again.

        None if versions of a file cannot be told apart.
        """
        if not self.files or not all(file.version for file in self.files):
            return None
        return "\n".join(f"{file.key}\t{file.size}\t{file.version}" for file in self.files)


def _with_files(address: str, files: tuple[RemoteFile, ...]) -> RemotePath:
    path = RemotePath(address)
    path.files = files
    return path


def find_runs(address: str) -> Iterator[RemotePath]:
    """The conversations at or below an address, each with its run's files.

    The order is that of `layout.find_conversations`; the tree is listed once. InputError if it
    cannot be listed, or holds no run.
    """
    fs, root = _file_system(address)
    scheme, place = scheme_of(address), root.strip("/")
    top = _listing_root(root)
    files = {file.key.lstrip("/"): file for file in _list_files(fs, top, address)}
    tree = _tree(files)

    def list_folder(folder: str) -> Listing:
        key = folder.replace(os.sep, "/").removeprefix(f"{scheme}://")
        return tree.get(key, Listing(set(), set()))

    is_empty = True
    for path in conversations_below(top.strip("/"), list_folder):
        key = path.replace(os.sep, "/")
        if place and key != place and not key.startswith(f"{place}/"):
            continue  # beside the address: the listing began above it
        is_empty = False
        conversation = RemotePath(f"{scheme}://{key}")
        folder = str(run_folder(conversation, list_folder)).removeprefix(f"{scheme}://")
        run_files = [files[name] for name in _keys_of_run(folder, list_folder)]
        yield _with_files(str(conversation), tuple(run_files))
    if is_empty:
        raise InputError(
            "holds no conversation.json at any depth",
            "a run is <run>/process/conversation.json",
            address,
        )


def _tree(keys: Iterable[str]) -> dict[str, Listing]:
    """The folders that these keys imply, each with its listing."""
    tree: defaultdict[str, Listing] = defaultdict(lambda: Listing(set(), set()))
    for key in keys:
        folder, _, name = key.rpartition("/")
        tree[folder].files.add(name)
        while folder:
            parent, _, name = folder.rpartition("/")
            if name in tree[parent].subfolders:
                break  # the folders above are known, too
            tree[parent].subfolders.add(name)
            folder = parent
    return dict(tree)


def _listing_root(root: str) -> str:
    """Where to list from.

    An address may name a run's conversation or its process/ folder; the listing must still cover
    the whole run.
    """
    parent, _, name = root.rstrip("/").rpartition("/")
    if parent and name in CONVERSATION_NAMES + TRACE_NAMES:
        root = parent
        parent, _, name = root.rpartition("/")
    if parent and name == "process":
        root = parent
        parent, _, name = root.rpartition("/")
    return parent if parent and name in AGENT_FOLDERS else root


def _keys_of_run(folder: str, list_folder: Callable[[str], Listing]) -> list[str]:
    """The keys of everything that is read of the run in this folder, sorted."""
    keys: set[str] = set()
    for relative in FOLDERS_READ:
        place = f"{folder}/{relative}".strip("/")
        keys.update(f"{place}/{name}".lstrip("/") for name in list_folder(place).files)
    pending = [f"{folder}/{relative}".strip("/") for relative in TREES_READ]
    while pending:
        place = pending.pop()
        listing = list_folder(place)
        keys.update(f"{place}/{name}" for name in listing.files)
        pending += [f"{place}/{name}" for name in listing.subfolders]
    return sorted(keys)


@contextmanager
def staged(run: RemotePath) -> Iterator[Path]:
    """A local copy of a run's conversation, with all files of its listing, for as long as needed.

    InputError if the run is too large or cannot be copied. Errors raised while the copy exists name
    the address instead of the copy.
    """
    size = sum(file.size for file in run.files)
    if len(run.files) > MAX_OUTPUT_FILES or size > _MAX_BYTES:
        raise InputError(
            f"has {len(run.files):,} files with {size:,} bytes: too much to copy",
            "at most 8 GiB a run; copy it to a local folder",
            run,
        )
    with _local_copy(str(run), run.files) as folder:
        local = folder.joinpath(run.parts[0].removesuffix(":"), *run.parts[1:])
        try:
            yield local
        except AmbjudgeError as error:
            error.message = error.message.replace(str(local), str(run))
            error.hint = error.hint.replace(str(local), str(run))
            raise


def find_files(address: str, suffixes: tuple[str, ...]) -> list[RemotePath]:
    """The file at an address, or the files directly below it, with one of these suffixes."""
    fs, root = _file_system(address)
    files = _list_files(fs, root, address, maxdepth=1)
    return [
        _with_files(f"{scheme_of(address)}://{file.key.lstrip('/')}", (file,))
        for file in files
        if file.key.endswith(suffixes)
    ]


def read_small(address: str, limit: int = 65_536) -> bytes | None:
    """The first bytes of a file at an address, at most `limit`; None if there is no file."""
    fs, root = _file_system(address)
    with _address_errors(address):
        try:
            return bytes(fs.cat_file(root, start=0, end=limit))
        except FileNotFoundError:
            return None


def size_of(address: str) -> int | None:
    """The size in bytes of the file at an address; None if there is no file."""
    fs, root = _file_system(address)
    with _address_errors(address):
        try:
            return int(fs.info(root)["size"])
        except FileNotFoundError:
            return None


def check_writable_place(address: str) -> None:
    """Raise InputError early if nothing can be written to an address later.

    Catches an unknown scheme, a missing package and a missing bucket.
    """
    fs, root = _file_system(address)
    # A user who may write need not be allowed to list.
    with _address_errors(address), suppress(PermissionError):
        fs.find(root)


def upload(file: Path, address: str) -> None:
    """Write a local file to an address; InputError unless it then has the same size there."""
    fs, root = _file_system(address)
    with _address_errors(address):
        fs.put_file(str(file), root)
    written, size = size_of(address), file.stat().st_size
    if written != size:
        raise InputError(f"has {written} bytes after writing {size}", "try again", address)


@contextmanager
def _local_copy(address: str, files: tuple[RemoteFile, ...]) -> Iterator[Path]:
    """A private folder with copies of these files, each under its key below the scheme's name."""
    fs, _ = _file_system(address)
    with private_folder() as folder:
        scheme = scheme_of(address) or ""
        copies = [folder.joinpath(scheme, *file.key.lstrip("/").split("/")) for file in files]
        with _address_errors(address):
            fs.get([file.key for file in files], [str(copy) for copy in copies])
        # Someone may have written to the bucket since it was listed.
        for file, copy in zip(files, copies, strict=True):
            if not copy.is_file() or copy.stat().st_size != file.size:
                raise InputError(
                    f"changed while it was read: {file.key}", "run the command again", address
                )
        yield folder


@contextmanager
def private_folder() -> Iterator[Path]:
    """A temporary folder that only this user can read, removed afterwards.

    What a process killed with -9 leaves is removed by the same user's next command that needs such
    a folder.
    """
    user = getattr(os, "getuid", lambda: 0)()
    _sweep(Path(gettempdir()), user)
    with TemporaryDirectory(prefix=f"ambjudge-{user}-", ignore_cleanup_errors=True) as name:
        # The lock appears under its name only once it is held: `_sweep` must not see it free.
        lock_file = Path(name, "new")
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            acquire_lock(descriptor)
            lock_file.rename(lock_file.with_name(_LOCK_NAME))
            yield Path(name)
        finally:
            os.close(descriptor)


def _sweep(folder: Path, user: int) -> None:
    """Remove this user's private folders whose owners no longer live."""
    if folder in _SWEPT:
        return
    _SWEPT.add(folder)
    for leftover in folder.glob(f"ambjudge-{user}-*"):
        with suppress(OSError):
            status = leftover.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != user:
                continue
            flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(leftover / _LOCK_NAME, flags)
            try:
                if acquire_lock(descriptor):
                    shutil.rmtree(leftover, ignore_errors=True)
            finally:
                os.close(descriptor)


def _list_files(fs: Any, root: str, address: str, **options: Any) -> list[RemoteFile]:
    """The files at or below a root; a warning counts keys that cannot be files below a folder."""
    with _address_errors(address):
        details = fs.find(root, detail=True, **options)
    files, n_unusable = [], 0
    for key, info in details.items():
        if not _is_relative_path(key.lstrip("/")):
            n_unusable += 1
            continue
        versions = [str(info[name]) for name in _VERSION_KEYS if info.get(name)]
        version = versions[0] if versions else ""
        files.append(RemoteFile(key, int(info.get("size") or 0), version))
    if n_unusable:
        from ...plugins import warn

        warn(f"{address}: {n_unusable} names of the listing cannot be file names and are left out")
    return files


def _is_relative_path(key: str) -> bool:
    """Whether a key is a path below a folder that leads nowhere else."""
    if "\0" in key or not {"", ".", ".."}.isdisjoint(key.split("/")):
        return False
    return os.sep == "/" or set('\\:*?"<>|').isdisjoint(key)


def _file_system(address: str) -> tuple[Any, str]:
    """fsspec's file system for an address, and the path in it.

    InputError for an unknown scheme, credentials in the address, or missing packages.
    """
    scheme = scheme_of(address)
    bucket = address.partition("://")[2].partition("/")[0]
    has_credentials = not set("@:[]").isdisjoint(bucket)
    if scheme not in SCHEMES or has_credentials:
        schemes = ", ".join(f"{name}://" for name in SCHEMES)
        raise InputError(
            "is not an address that ambjudge reads",
            f"use {schemes}; credentials come from the environment",
            f"{scheme}://..." if has_credentials else address,
        )
    try:
        import fsspec

        fs, root = fsspec.core.url_to_fs(address, use_listings_cache=False)
    except ImportError:
        raise InputError(
            "needs packages that are not installed", 'pip install "ambjudge[cloud]"', address
        ) from None
    except Exception as error:
        raise _as_input_error(error, address) from error
    if scheme != "memory" and not root.strip("/"):
        raise InputError("names no bucket", f"give {scheme}://bucket/place", address)
    return fs, str(root)


@contextmanager
def _address_errors(address: str) -> Iterator[None]:
    """Raise every failure as an InputError about this address.

    s3fs and gcsfs themselves retry what may pass.
    """
    try:
        yield
    except Exception as error:
        raise _as_input_error(error, address) from error


def _as_input_error(error: Exception, address: str) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError("does not exist", "check the address", address)
    reason = sanitize_line(mask(" ".join(str(error).split())))[:200]
    return InputError(
        f"cannot be reached or read: {type(error).__name__}: {reason}",
        "check the address, the credentials, the network",
        address,
    )
