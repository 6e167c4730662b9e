"""Every page of a site in a real Chromium, on a telephone and on a desk: `python
benchmarks/browser.py SITE [--pages N]`.

A page fails that writes an error, that asks for anything outside its folder, that is wider than its
window, or that is empty. At 400 and 1280 px. Exit 1 where a page fails, 2 without Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = (400, 1280)
SECONDS = 20
"""What a page may take to be there."""
STATE = (
    "[document.readyState, document.documentElement?.scrollWidth, innerWidth,"
    " document.body?.innerText.length ?? 0]"
)


class Tab:
    """One tab, spoken to by the DevTools protocol through two pipes: JSON texts, each ended by a
    zero byte."""

    def __init__(self, reads: int, writes: int) -> None:
        self.reads, self.writes = os.fdopen(reads, "rb", 0), os.fdopen(writes, "wb", 0)
        self.rest, self.number, self.session = b"", 0, {}
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = {
            "sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)[
                "sessionId"
            ]
        }
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer; what happens meanwhile goes to `events`."""
        self.number += 1
        asked = {"id": self.number, "method": method, "params": parameters, **self.session}
        self.writes.write(json.dumps(asked).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                self.rest += self.reads.read(1 << 16)
            text, self.rest = self.rest.split(b"\0", 1)
            message: dict[str, Any] = json.loads(text)
            if message.get("id") == self.number:
                return message.get("result", message)
            self.events.append(message)

    def faults(self, page: Path) -> list[str]:
        """What is wrong with a page at the present width."""
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        end = time.monotonic() + SECONDS
        while True:
            said = self.call("Runtime.evaluate", expression=STATE, returnByValue=True)["result"][
                "value"
            ]
            state, wide, window, length = said
            if state == "complete" or time.monotonic() > end:
                break
            time.sleep(0.02)
        time.sleep(0.1)  # for what a script does after the page is there
        self.call("Runtime.evaluate", expression="0")
        kinds = [(event.get("method"), event.get("params", {})) for event in self.events]
        asked = [
            params["request"]["url"]
            for kind, params in kinds
            if kind == "Network.requestWillBeSent"
        ]
        found = [
            json.dumps(params)[:200]
            for kind, params in kinds
            if kind in ("Runtime.exceptionThrown", "Log.entryAdded")
        ]
        found += [
            f"asks for {url[:80]}"
            for url in asked
            if not url.startswith(("file:", "data:", "blob:", "about:"))
        ]
        found += [f"is {wide} px wide"] if wide > window else []
        found += ["is not complete"] if state != "complete" else []
        return found + (["is empty"] if length < 50 else [])


@contextmanager
def browser(program: str) -> Iterator[Tab]:
    """A headless Chromium with a profile of its own."""
    theirs, writes = os.pipe()
    reads, ours = os.pipe()
    with tempfile.TemporaryDirectory() as profile:
        command = [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        joined = ["sh", "-c", f'exec "$@" 3<&{theirs} 4>&{ours}', "sh", *command]
        process = subprocess.Popen(joined, pass_fds=(theirs, ours), stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(ours)
        try:
            yield Tab(reads, writes)
        finally:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("site", type=Path, help="a folder that `ambjudge site` wrote")
    parser.add_argument(
        "--pages", type=int, help="so many pages of runs, drawn by chance, instead of all"
    )
    asked = parser.parse_args()
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        print("no Chromium here", file=sys.stderr)
        return 2
    site = asked.site.resolve()
    runs = sorted((site / "pages").glob("*.html"))
    if asked.pages is not None:
        runs = random.Random(1).sample(runs, min(asked.pages, len(runs)))
    pages = [*sorted(site.glob("*.html")), *runs]
    failed = 0
    with browser(program) as tab:
        for width in WIDTHS:
            tab.call(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=900,
                deviceScaleFactor=1,
                mobile=False,
            )
            for page in pages:
                if faults := tab.faults(page):
                    failed += 1
                    print(f"{width} px  {page.relative_to(site)}: {'; '.join(faults)}", flush=True)
    print(
        f"{len(pages):,} pages at {' and '.join(map(str, WIDTHS))} px: {failed} with a fault"
        " (target 0)"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
