"""A real PostgreSQL server in a temporary folder on a free port, for tests; None where its programs
are missing."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MISSING = (
    "NO POSTGRESQL SERVER ON THIS MACHINE: the store on PostgreSQL is not tested (install Debian's"
    " `postgresql`)"
)


def programs() -> Path | None:
    """The folder of initdb and pg_ctl: on PATH, else Debian's newest version."""
    found = shutil.which("pg_ctl")
    folders = (
        [Path(found).parent]
        if found
        else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    )
    return next((f for f in folders if (f / "initdb").exists() and (f / "pg_ctl").exists()), None)


def _as_user() -> tuple[list[str], str | None]:
    """The server refuses to run as root: the prefix that runs a command as another user, and that
    user's name."""
    if os.getuid() != 0:
        return [], None
    name = next(n for n in ("postgres", "nobody") if n in {p.pw_name for p in pwd.getpwall()})
    user = pwd.getpwnam(name)
    return [
        "setpriv",
        f"--reuid={user.pw_uid}",
        f"--regid={user.pw_gid}",
        "--clear-groups",
        "--",
    ], name


@contextmanager
def server() -> Iterator[str]:
    """URL of an empty database on a server that ends with the block."""
    folder = programs()
    assert folder is not None
    prefix, user = _as_user()
    home = Path(tempfile.mkdtemp(prefix="ambjudge-pg-"))
    if user is not None:
        shutil.chown(home, user)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = home / "data"

    def run(*command: str) -> None:
        subprocess.run(
            [*prefix, *command],
            check=True,
            cwd=home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    try:
        run(
            str(folder / "initdb"),
            "-D",
            str(data),
            "-U",
            "ambjudge",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        )
        options = (
            f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={home} -c"
            " fsync=off"
        )
        run(
            str(folder / "pg_ctl"),
            "-D",
            str(data),
            "-o",
            options,
            "-l",
            str(home / "log"),
            "-w",
            "start",
        )
        yield f"postgresql://ambjudge@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run(
            [*prefix, str(folder / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop"],
            cwd=home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        shutil.rmtree(home, ignore_errors=True)
