"""A Chromium for the tests of the page: find one, or install one.

`python tests/support/browser.py` uses an installed Chromium or Chrome, else installs Playwright's,
else the system's package where it may. Where none can be had it says so in one line and exits with
1 if MASTERY_BROWSER=required, as in CI; otherwise the tests of the page are skipped.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
REQUIRED = os.environ.get("MASTERY_BROWSER") == "required"


def find() -> str | None:
    """The path of a browser, or None."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return found or _playwrights()


def _playwrights() -> str | None:
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return None
    with sync_playwright() as driver:
        path = driver.chromium.executable_path
    return path if Path(path).exists() else None


def install() -> None:
    """Install one, by the first way that works; what goes wrong is not of interest."""
    ways = [[[sys.executable, "-m", "playwright", "install", "chromium"]]]
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = ["apt-get", "-qq"]
        ways.append([[*quiet, "update"], [*quiet, "install", "-y", "chromium"]])
    for commands in ways:
        print(f"no Chromium yet: {' '.join(commands[-1])}", flush=True)
        for command in commands:
            subprocess.run(command, capture_output=True, timeout=600, check=False)
        if find():
            return


def main() -> int:
    if find() is None:
        install()
    if (browser := find()) is not None:
        print(f"the page is tested in {browser}")
        return 0
    print("there is no Chromium, and none could be installed: the tests of the page are skipped")
    return 1 if REQUIRED else 0


if __name__ == "__main__":
    sys.exit(main())
