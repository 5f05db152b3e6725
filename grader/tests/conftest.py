"""The fixtures of the kit's own tests."""

import signal

import pytest
from grader.tests.by_hand import labs_outside
from grader.tests.lacking import lacking

from labs.harness import machine

# A shell starts what it puts into the background with SIGINT ignored, and so would be all that we start, for whom Ctrl-C is the way to end.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")


@pytest.fixture
def outside_by_hand():
    """`python -m labs outside` on a free port; yields the process and its address."""
    with labs_outside() as started:
        yield started


# Ended with the module: while Playwright runs, its event loop is the main thread's, and no other may start.
@pytest.fixture(scope="module")
def browser():
    """The machine's Chromium, without a window. Where there is none the test is skipped; in CI it fails."""
    path = machine.chromium()
    if path is None:
        lacking("no Chromium on PATH: install it (Debian: apt-get install chromium)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        lacking("no Playwright: pip install -e '.[browser]'")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()
