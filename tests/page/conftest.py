"""Opens a page in the browser of tests/conftest.py."""

import re

import pytest


@pytest.fixture
def visit(browser):
    """Opens the page at an address; at the end, nothing may have gone wrong on it."""
    contexts, wrong = [], []

    def go(url, width=1280, dark=False, expected=()):
        scheme = "dark" if dark else "light"
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
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
    for context in contexts:
        context.close()
    assert wrong == []
