"""Headless Chromium, driven by its driver, and the data sets whose pages it opens.

Nothing here reaches another host: the browser resolves no name.

Sections: the browser - data sets.
"""

import copy
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from selenium import webdriver

from lab.annotated_data import EDITORIAL, annotated_insights
from lab.data_sets import DATA_SETS, Files
from lab.page_samples import attacking_files
from lab.tools import program

# ---- The browser ----

OFFLINE = [
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
]
OFFLINE += ["--disable-component-update", "--no-first-run"]
OFFLINE += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


# What the tests ask a page about: elements, and the style and the edges of the first
# one.
HELPERS = """const all = selector => [...document.querySelectorAll(selector)];
    const style = selector => getComputedStyle(document.querySelector(selector));
    const box = selector => document.querySelector(selector).getBoundingClientRect();"""


class Browser(webdriver.Chrome):
    """Chromium, with the few things that the tests do to a page and ask of it."""

    def open(
        self, url: str, width: int = 1440, scheme: str = "light", **features: str
    ) -> None:
        """Open a page in a viewport of this width and a colour scheme."""
        self.emulate(prefers_color_scheme=scheme, **features)
        self.resize(width)
        self.get(url)
        self.resize(width)  # again, since the size of text is set only in a loaded page

    def emulate(self, media: str = "", **features: str) -> None:
        """Show pages on this medium, to a reader with these preferences."""
        preferences = [
            {"name": name.replace("_", "-"), "value": value}
            for name, value in features.items()
        ]
        self.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": media, "features": preferences}
        )

    def resize(self, width: int, text_percent: int = 100) -> None:
        """Give the viewport this width in pixels, and text this size."""
        size = {
            "width": width,
            "height": 900,
            "deviceScaleFactor": 1,
            "mobile": width < 500,
        }
        self.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        sizes = {
            "standard": 16 * text_percent // 100,
            "fixed": 13 * text_percent // 100,
        }
        self.execute_cdp_cmd("Page.setFontSizes", {"fontSizes": sizes})

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return self.execute_script(f"{HELPERS} return {expression}")

    def unfold(self) -> None:
        """Open every folded part of the page."""
        self.value("all('details').forEach(part => part.open = true)")

    def press(self, *keys: str) -> None:
        """Press keys in the element that has the focus."""
        self.switch_to.active_element.send_keys(*keys)

    def complaints(self) -> list[str]:
        """The console's messages since the last call, but for expected statuses."""
        messages = [entry["message"] for entry in self.get_log("browser")]
        return [
            text
            for text in messages
            if "the server responded with a status of 40" not in text
        ]

    def requested(self) -> list[str]:
        """The URLs that pages have requested since the last call."""
        events = [
            json.loads(entry["message"])["message"]
            for entry in self.get_log("performance")
        ]
        sent = [
            event["params"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [request["request"]["url"] for request in sent]


@contextmanager
def open_browser(profile: Path) -> Iterator[Browser]:
    """A running browser with an empty profile in this directory."""
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium")
    for argument in [*OFFLINE, f"--user-data-dir={profile}"]:
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    driver = Browser(options, webdriver.ChromeService(program("chromedriver")))
    # Ends the start page of the browser, which requests files of its own.
    driver.get("about:blank")
    try:
        yield driver
    finally:
        driver.quit()


# ---- Data sets ----


def polish_files() -> Files:
    """The sample of a business that speaks Polish, whose words are long."""
    document, insights = copy.deepcopy(DATA_SETS["sample"]())
    document["business"]["language"] = "pl"
    return document, insights


def annotated_files(limit: int) -> Files:
    """The sample of which a model has read the newest `limit` reviews."""
    document, _ = DATA_SETS["sample"]()
    return document, annotated_insights(document, EDITORIAL, limit)


def exemplified_files() -> Files:
    """The sample with figures of which only examples are known."""
    document, insights = DATA_SETS["sample"]()
    return document, insights | {"per_review": {}}


# The newest reviews of which the frame must have room for the longest three.
NEWEST = 20


def longest_first(name: str) -> Files:
    """A data set whose newest three are the longest of its newest twenty.

    They are compared as the frame cuts them.
    """
    document = copy.deepcopy(DATA_SETS[name]()[0])
    reviews = sorted(document["reviews"], key=lambda one: one["date"], reverse=True)
    longest = sorted(reviews[:NEWEST], key=_shown_length, reverse=True)
    for number, review in enumerate(longest[:3]):
        review["date"] = f"2026-12-{10 + number}"
    return (document,)


def _shown_length(review: dict[str, Any]) -> int:
    return len((review.get("text") or "")[:280])


FILES: dict[str, Callable[[], Files]] = {
    **DATA_SETS,
    "hostile": attacking_files,
    "polish": polish_files,
    "half read": partial(annotated_files, 60),
    "wholly read": partial(annotated_files, 1000),
    "exemplified": exemplified_files,
}
for owner in ("sample", "bare", "german", "hebrew", "japanese"):
    FILES[f"{owner}, longest first"] = partial(longest_first, owner)

# Gives the base URL of the daemon with the data set of a name.
Start = Callable[[str], str]
