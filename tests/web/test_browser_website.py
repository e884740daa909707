"""Badge and frame in a page of another origin; pages behind a forwarded port."""

import base64
import re
import threading
import zlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lab.browser import FILES, Browser, Start
from lab.data_sets import write_files
from lab.services import daemon
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = pytest.mark.slow

OWNER_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Owner</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>html {{ color-scheme: {scheme} }} body {{ margin: 0; background: {background} }}</style></head>
<body><h1>Ann</h1>{badge}<p>Before.</p>{iframe}<p>After.</p></body></html>"""
LIGHT = (253, 246, 227)
DARK = (34, 34, 34)


class Website(NamedTuple):
    """A page of another origin with the two elements that owners copy."""

    browser: Browser
    url: str
    file: Path
    badge: str
    iframe: str
    headers: dict[str, str]

    def isolate(self, policy: str) -> None:
        """Isolate the pages from other origins, with this embedder policy."""
        self.headers["Cross-Origin-Embedder-Policy"] = policy
        self.headers["Cross-Origin-Opener-Policy"] = "same-origin"

    def open(self, width: int, system: str = "light", **parts: str) -> Any:
        """Open it with other `parts`.

        The result is the height of the frame and of its content, and the colour of its
        text.
        """
        usual = {"scheme": "normal", "background": "#fff", "badge": self.badge}
        page = OWNER_PAGE.format(**usual | {"iframe": self.iframe} | parts)
        self.file.write_text(page)
        self.browser.open(
            f"{self.url}?{abs(hash(page))}", width, system
        )  # another page is not a cached one
        self.browser.switch_to.frame(0)
        is_loaded = "document.readyState == 'complete'"
        WebDriverWait(self.browser, 10).until(
            lambda browser: self.browser.value(is_loaded)
        )
        shown = self.browser.value(
            "[innerHeight, document.documentElement.offsetHeight, style('body').color]"
        )
        self.browser.switch_to.default_content()
        return shown


class Pages(SimpleHTTPRequestHandler):
    """Serves the files of a folder with more headers."""

    def __init__(self, *arguments: Any, headers: dict[str, str], **keywords: Any):
        self.more_headers = headers
        super().__init__(*arguments, **keywords)

    def end_headers(self) -> None:
        for name, value in self.more_headers.items():
            self.send_header(name, value)
        super().end_headers()


@pytest.fixture
def website(
    request: pytest.FixtureRequest, browser: Browser, service_of: Start, tmp_path: Path
) -> Iterator[Website]:
    """The website of the sample's owner, or of another that a test names."""
    browser.open(service_of(getattr(request, "param", "sample")))
    elements = browser.value(
        "all('#website + .clients pre').map(code => code.textContent)"
    )
    headers: dict[str, str] = {}
    handler = partial(Pages, directory=tmp_path, headers=headers)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}/owner.html"
        yield Website(browser, url, tmp_path / "owner.html", *elements, headers)
        server.shutdown()


def colour_at(browser: Browser, x: float, y: float) -> tuple[int, ...]:
    """The red, green and blue of one point of the viewport: the only pixel of a PNG."""
    clip = {"x": round(x), "y": round(y), "width": 1, "height": 1, "scale": 1}
    shot = base64.b64decode(
        browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip})["data"]
    )
    at = shot.index(b"IDAT")
    row = zlib.decompressobj().decompress(
        shot[at + 4 : at + 4 + int.from_bytes(shot[at - 4 : at], "big")]
    )
    return tuple(row[1:4])  # after the filter type, which is without effect here


# By website: its colour scheme, its background, parameters of the frame, more style of
# the frame, and the background that the frame must have. None: the website's is that of
# the system, the frame's may be any.
SITES = {
    "light": ("light", LIGHT, "", "", LIGHT),
    "light only": ("normal", LIGHT, "", "", LIGHT),
    "dark": ("dark", DARK, "&theme=dark", "", DARK),
    "dark without a scheme": ("normal", DARK, "&theme=dark", "color-scheme:dark", DARK),
    "dark by mistake": ("normal", DARK, "&theme=dark", "", None),
    "either by the wrong theme": ("light dark", None, "", "", None),
    "either": ("light dark", None, "&theme=auto", "", None),
}


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("system", ["light", "dark"])
def test_a_frame_is_readable_on_the_website_of_another_origin(
    browser: Browser, website: Website, site: str, system: str
) -> None:
    scheme, background, parameters, more_style, expected = SITES[site]
    iframe = website.iframe.replace('/embed"', f'/embed?limit=1{parameters}"')
    iframe = iframe.replace('style="', f'style="{more_style};')
    own = background or (LIGHT if system == "light" else DARK)
    browser.complaints()
    *_, text = website.open(
        1200, system, scheme=scheme, background=f"rgb{own}", iframe=iframe
    )
    left, top = browser.value("[box('iframe').x, box('iframe').top]")
    seen = colour_at(browser, left + 2, top + 2)
    assert expected in (None, seen)
    text_colour = tuple(map(int, re.findall("[0-9]+", text)))
    assert abs(sum(seen) - sum(text_colour)) > 600, "dark on light, or light on dark"
    assert browser.complaints() == []


def test_badge_and_frame_load_nothing_but_themselves(
    browser: Browser, service_of: Start, website: Website
) -> None:
    browser.get("about:blank")
    browser.requested()
    website.open(1200)
    assert browser.value("all('img')[0].naturalWidth") == 282
    own = {f"{service_of('sample')}/{path}" for path in ("badge.svg", "embed")}
    assert set(browser.requested()) - {browser.current_url, "data:,"} == own


def has_frame_sizing(browser: Browser) -> bool:
    """Whether this browser gives a frame its content's height (Chrome from 154 on)."""
    supported: bool = browser.value("CSS.supports('frame-sizing', 'content-height')")
    return supported


# What the owner's style says to other browsers.
FIXED = "frame-sizing:content-height", ""


# Of a phone to a wide screen; on both sides of where a column is added.
WIDTHS = [320, 360, 390, 430, 480, 540, 556, 600, 700, 820, 850, 890, 1024, 1280]
# The three longest of the newest twenty are the newest.
OWNERS = [
    f"{owner}, longest first"
    for owner in ("sample", "bare", "german", "hebrew", "japanese")
]


@pytest.mark.parametrize("website", OWNERS, indirect=True)
def test_a_frame_of_a_browser_without_frame_sizing_has_room_for_the_longest_three(
    website: Website,
) -> None:
    fixed = website.iframe.replace(*FIXED)

    too_low = []
    for width in WIDTHS:
        frame_height, content_height, _ = website.open(width, iframe=fixed)
        if frame_height < content_height:
            too_low.append((width, frame_height, content_height))

    assert too_low == []


MIN_HEIGHT = "min-height:max([^;]*)"
LOW = "min-height:10rem"
LOW_PIXELS = 160


@pytest.mark.parametrize("width", [390, 1200])
def test_a_frame_grows_with_its_content_where_the_browser_can(
    browser: Browser, website: Website, width: int
) -> None:
    low = re.sub(MIN_HEIGHT, LOW, website.iframe)

    frame_height, content_height, _ = website.open(width, iframe=low)

    can_grow = has_frame_sizing(browser)
    assert frame_height == (content_height if can_grow else LOW_PIXELS)
    assert content_height > LOW_PIXELS


# As a Content-Security-Policy of the website does.
BLOCKED = "style=", "data-style="


def test_a_frame_whose_style_is_blocked_has_the_height_of_its_attribute(
    website: Website,
) -> None:
    blocked = website.iframe.replace(*BLOCKED)

    frame_height, _, _ = website.open(390, iframe=blocked)

    assert frame_height == 900


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_a_frame_is_as_wide_as_the_page(
    browser: Browser, website: Website, width: int
) -> None:
    website.open(width)

    frame, page = browser.value(
        "[box('iframe').width, document.documentElement.clientWidth]"
    )

    assert frame + 4 >= page


@pytest.mark.parametrize("policy", ["require-corp", "credentialless"])
def test_an_isolated_page_shows_badge_and_frame(
    browser: Browser, website: Website, policy: str
) -> None:
    website.isolate(policy)

    website.open(1200)

    assert browser.value("crossOriginIsolated")
    assert browser.value("all('img')[0].naturalWidth") == 282
    browser.switch_to.frame(0)
    assert browser.value("all('article').length") == 3


def test_a_page_behind_a_forwarded_port_has_links_that_work(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = write_files(tmp_path_factory.mktemp("forwarded"), *FILES["bare"]())
    with daemon(data=data, base_url="https://reviews.example/") as service:
        browser.open(f"http://127.0.0.1:{service.port}/")

        browser.value("all('nav a[href$=\"/reviews\"]')[0].click()")

        assert browser.value("all('article').length") > 0
