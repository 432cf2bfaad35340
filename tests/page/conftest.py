"""Opens a page in the browser of tests/conftest.py."""

import re

import pytest


@pytest.fixture(scope="module")
def contexts(browser):
    """Of the browser, by width and colours: what one has compiled of the page, it keeps."""
    found = {}
    yield found
    for context in found.values():
        context.close()


@pytest.fixture
def visit(browser, contexts):
    """Opens the page at an address; at the end, nothing may have gone wrong on it."""
    pages, wrong = [], []

    def go(url, width=1280, dark=False, expected=()):
        scheme = "dark" if dark else "light"
        if (width, dark) not in contexts:
            contexts[width, dark] = browser.new_context(
                viewport={"width": width, "height": 900},
                color_scheme=scheme,
                reduced_motion="reduce",
            )
        page = contexts[width, dark].new_page()
        pages.append(page)
        own = re.match(r"http://[^/]*/|file:[^#]*", url)[0]

        def said(message):
            known = any(text in message.text for text in expected)
            if message.type in ("error", "warning") and not known:
                wrong.append(message.text)

        def asked(request):
            if not request.url.startswith((own, "data:")):
                wrong.append(f"asked for {request.url}")

        page.on("console", said)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", asked)
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.goto(url)
        page.wait_for_selector("main[aria-busy=false]")
        return page

    yield go
    for page in pages:
        page.close()
    assert wrong == []
