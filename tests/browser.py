"""A real browser without a window, for the pages that drol writes and serves."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass
class Visit:
    """An open page, what went wrong on it, and what it asked the network for."""

    page: Any  # playwright's, which is imported where there is a browser
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def visit(
    address: str, width: int = 1400, height: int = 900, scheme: Literal["light", "dark"] = "light"
) -> Iterator[Visit]:
    """Open an address (file:// or http://) in Chromium; skip the test where there is none."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    sync_playwright = pytest.importorskip("playwright.sync_api").sync_playwright
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        seen = Visit(page)
        page.on("console", lambda line: seen.errors.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("request", lambda request: seen.requests.append(request.url))
        page.goto(address)
        yield seen
        browser.close()


def until(page: Any, condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something is true; a page whose policy forbids `eval` cannot be asked to wait itself."""
    for _ in range(int(seconds * 10)):
        if condition():
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"not true within {seconds} seconds")
