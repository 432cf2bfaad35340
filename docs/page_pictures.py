"""Takes the pictures of the page: `make pictures`, after `make demo`.

page-graph.png      two programs of the demo side by side, in the middle of training
page-where.png      where training went, under five programs of the paper's runs
page-scorecard.png  the top of the page that `mastery paper --redraw` writes
"""

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from mastery.paper.page import DATA, read_shipped, write_page

FOLDER = Path(__file__).parent / "img"
DEMO = Path(__file__).parent.parent / "demo"
WIDTH = 1240


def main() -> None:
    reports = sorted(DEMO.glob("*/report.html"))
    if not reports:
        raise SystemExit("there is no report in demo; run make demo first")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        take_graph(browser, reports[-1])
        write_page(read_shipped(DATA), Path(folder))
        take_where(browser, Path(folder) / "interactive.html")
        take_scorecard(browser, Path(folder) / "paper.html")
        browser.close()


def take_graph(browser: Browser, report: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": 1110})
    page.goto(f"{report.as_uri()}#beside=uniform&task=2Dlh&t=2M")
    page.wait_for_selector("main[aria-busy=false]")
    page.wait_for_timeout(1500)  # so that the agents have moved
    save("page-graph", page.screenshot())


def take_where(browser: Browser, interactive: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": 900})
    page.goto(f"{interactive.as_uri()}#curriculum=obstructed-maze&jobs=obstructed-maze-today")
    page.wait_for_selector("main[aria-busy=false]")
    page.locator("#transport").evaluate("(bar) => bar.remove()")
    part = page.locator("#where")
    part.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    save("page-where", part.screenshot())


def take_scorecard(browser: Browser, paper: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": 1000})
    page.goto(paper.as_uri())
    save("page-scorecard", page.screenshot())


def save(name: str, content: bytes) -> None:
    Image.open(io.BytesIO(content)).convert("RGB").save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
