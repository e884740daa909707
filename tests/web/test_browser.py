"""The pages in a real browser: headless Chromium, driven by its driver, talking to running services.

Nothing here reaches another host: the browser resolves no name. Browser and services are shared by all tests,
and the tests of a page share its loading.

Browser - Services - Every page - Layout - Use - The owner's website
"""

import base64
import json
import os
import re
import subprocess
import threading
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from lab.data_sets import DATA_SETS, write_files
from lab.page_samples import ATTACKS, attacking_files
from lab.services import daemon
from lab.tools import program
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = pytest.mark.slow

# ---- Browser ----

OFFLINE = [
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
]
OFFLINE += ["--disable-component-update", "--no-first-run"]
OFFLINE += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


# What the tests ask a page about: elements, and the style and the edges of the first one.
HELPERS = """const all = selector => [...document.querySelectorAll(selector)];
    const style = selector => getComputedStyle(document.querySelector(selector));
    const box = selector => document.querySelector(selector).getBoundingClientRect();"""


class Browser(webdriver.Chrome):
    """Chromium, with the few things that the tests do to a page and ask of it."""

    def open(
        self, url: str, width: int = 1440, scheme: str = "light", **features: str
    ) -> None:
        """Open a page in a viewport of this width, in a light or a dark colour scheme."""
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
        """The console's messages since the last call, without those of expected statuses."""
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


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium")
    root = ("--no-sandbox",) if os.geteuid() == 0 else ()
    for argument in (
        *OFFLINE,
        *root,
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    driver = Browser(options, webdriver.ChromeService(program("chromedriver")))
    driver.get(
        "about:blank"
    )  # ends the start page of the browser, which requests files of its own
    yield driver
    driver.quit()


# ---- Services ----

FILES = DATA_SETS | {"hostile": attacking_files}
Start = Callable[[str], str]


@pytest.fixture(scope="module")
def service_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """The base URL of the daemon with the data set of a name, started when it is first asked for."""
    with ExitStack() as running:

        @cache
        def start(name: str) -> str:
            data = write_files(tmp_path_factory.mktemp(name), *FILES[name]())
            return running.enter_context(daemon(data=data)).base_url

        yield start


# ---- Every page ----

REVIEW = "/reviews/01M7F1SV60XJ4PFV38D0FMZ6BZ"
SEARCH = "/reviews?query=a&rating=5&min_rating=2&mentions_technician=okafor"
WRONG = "/reviews?query=a&rating=7&until=2026-02-30&page=0"
UNMATCHED = "/reviews?query=zzz"
CRITICISM = "/reviews?mentions=aspects/wait_time&sentiment=negative"
ATTACK = f"/reviews?query={quote(ATTACKS[0])}&rating={quote(ATTACKS[4])}"
ATTACKING_REVIEW = f"/reviews/{quote('<script>window.attacked=13</script>', safe='')}"
PATHS = {
    "sample": [
        "/",
        "/reviews",
        SEARCH,
        WRONG,
        UNMATCHED,
        CRITICISM,
        REVIEW,
        "/embed",
        "/embed?theme=dark",
        "/nothing",
    ],
    "hostile": [
        "/",
        "/reviews",
        ATTACK,
        ATTACKING_REVIEW,
        "/embed?theme=auto&limit=10",
    ],
    "german": ["/", "/reviews"],
    "one": ["/", "/reviews/only%2F1"],
    "bare": ["/"],
    "none": ["/", "/reviews", "/embed"],
}
PAGES = [(name, path) for name, paths in PATHS.items() for path in paths]


class Page(NamedTuple):
    """A loaded page: its data set and URL, complaints about it, and the URLs that it requested."""

    name: str
    url: str
    complaints: list[str]
    requested: list[str]


@pytest.fixture(scope="module")
def loaded(request: pytest.FixtureRequest, browser: Browser, service_of: Start) -> Page:
    """The page of a data set and a path, loaded once for all its tests."""
    name, path = request.param
    browser.get("about:blank")  # ends the requests of the page before
    browser.complaints(), browser.requested()
    browser.open(service_of(name) + path)
    return Page(name, browser.current_url, browser.complaints(), browser.requested())


@pytest.fixture
def page(loaded: Page, browser: Browser) -> Page:
    """The loaded page, shown as at first; loaded again if another test has opened something else."""
    if browser.current_url == loaded.url:
        browser.emulate()
        browser.resize(1440)
    else:
        browser.open(loaded.url)
    return loaded


each_page = pytest.mark.parametrize("loaded", PAGES, indirect=True, ids="-".join)


@each_page
def test_a_page_loads_without_a_complaint_and_asks_no_other_host(
    page: Page, service_of: Start
) -> None:
    assert page.complaints == []
    assert page.url in page.requested
    own = (
        service_of(page.name) + "/",
        "data:image/svg+xml;base64,",
    )  # the browser's icon of a date field
    assert all(url.startswith(own) for url in page.requested)


# What reaches beyond the screen or its own box, and every number that is broken into two lines.
BROKEN = r"""const edge = document.documentElement.clientWidth, broken = [];
    if (document.documentElement.scrollWidth > edge) broken.push('scrolls sideways');
    const hidden = 'svg *, .visually-hidden, .visually-hidden *, .skip, select, input';
    for (const element of document.querySelectorAll(`body *:not(${hidden})`)) {
        const box = element.getBoundingClientRect(), content = element.clientWidth && element.scrollWidth;
        if (box.width && (box.left < -1 || box.right > edge + 1) || content > element.clientWidth + 1)
            broken.push(element.outerHTML.slice(0, 80));
    }
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        if (texts.currentNode.parentElement.closest('style, script, code, [rel=bookmark]')) continue;
        const numbers = /(?<![\p{L}\d])\+?\d([\d.,:-]*\d)?(?![\p{L}\d])/gu;
        for (const found of texts.currentNode.data.matchAll(numbers)) {
            const range = document.createRange();
            range.setStart(texts.currentNode, found.index);
            range.setEnd(texts.currentNode, found.index + found[0].length);
            const lines = new Set([...range.getClientRects()].map(line => Math.round(line.top)));
            if (lines.size > 1) broken.push(found[0]);
        }
    }
    return broken"""


@each_page
def test_a_page_fits_every_screen_and_breaks_no_number(
    page: Page, browser: Browser
) -> None:
    browser.unfold()
    for width, text_percent in (
        (1440, 100),
        (820, 100),
        (390, 100),
        (360, 150),
        (320, 100),
        (320, 200),
    ):
        browser.resize(width, text_percent)
        assert (
            browser.value("style('html').fontSize") == f"{16 * text_percent // 100}px"
        )
        assert browser.execute_script(BROKEN) == [], (width, text_percent)


@each_page
def test_axe_finds_no_fault(page: Page, browser: Browser) -> None:
    # The sample is seen in light colours on a wide screen.
    if page.name != "sample":
        browser.emulate(prefers_color_scheme="dark")
        browser.resize(390)
    browser.unfold()

    script = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    browser.execute_script(script)
    # axe takes a transparent page for white; the contrast of a dark frame is tested below.
    rules = {"color-contrast": {"enabled": "theme=dark" not in page.url}}
    run = "axe.run({rules: arguments[0]}).then(arguments[1])"

    found = browser.execute_async_script(run, rules)

    assert len(found["passes"]) > 15
    faults = []
    for fault in found["violations"]:
        faults.append((fault["id"], [node["html"] for node in fault["nodes"]]))
    assert faults == []


# Smaller than the 24 CSS pixels of WCAG 2.2 (2.5.8), which excepts links in a sentence.
SMALL_TARGETS = """const small = [];
    for (const target of document.querySelectorAll('a, button, input, select, summary')) {
        const box = target.getBoundingClientRect(), parent = target.parentElement;
        const inline = getComputedStyle(target).display == 'inline';
        const around = parent.innerText.replace(target.innerText, '').trim();
        const sentence = inline && around.length > 20;
        if (box.width && !target.matches('.skip') && !sentence && (box.width < 24 || box.height < 24))
            small.push(target.outerHTML.slice(0, 120));
    }
    return small"""


@each_page
def test_a_finger_hits_every_target(page: Page, browser: Browser) -> None:
    browser.unfold()
    small = {}

    # As axe's rule `target-size` demands, which takes minutes for a long page.
    for width in (320, 1440):
        browser.resize(width)
        small[width] = browser.execute_script(SMALL_TARGETS)

    assert small == {320: [], 1440: []}


EVENTS = """for (const element of document.querySelectorAll('*')) {
    for (const kind of ['mouseover', 'focus', 'load', 'error', 'click'])
        if (kind != 'click' || !element.closest('a')) element.dispatchEvent(new Event(kind, {bubbles: true}));
}"""


@each_page
def test_attacks_do_nothing(page: Page, browser: Browser) -> None:
    browser.execute_script(EVENTS)
    assert browser.value("window.attacked") is None
    assert browser.current_url == page.url
    assert set(browser.value("all('a').map(link => link.protocol)")) <= {
        "http:",
        "https:",
        "mailto:",
        "tel:",
    }


# ---- Layout: by rule a data set, a path, a width, what the reader prefers, and an expression that holds ----

FORCED = {"forced_colors": "active", "prefers_color_scheme": "dark"}
PAPER = {"media": "print"}
SIGNS = """(signs => new Set(signs).size == 3 &&
    ['fault', 'praise', 'neutral'].every((kind, at) => style('.bar .' + kind).fill == signs[at]))(
    all('.legend i').map(sign => getComputedStyle(sign).backgroundColor))"""
NO_GAP = """(tops => tops.every((top, at) => at == 0 || top > tops[at - 1] && top - tops[at - 1] < %d))(
    ['h1', '.lead', '.search', 'main section'].map(selector => box(selector).top))"""
STARS = "style('.rating-panel .stars').color == style('.score').color"
LAYOUT: dict[str, tuple[str, str, int, dict[str, str], str]] = {
    "forced colours leave signs": ("sample", "/", 1440, FORCED, SIGNS),
    "forced colours leave stars": ("sample", "/", 1440, FORCED, STARS),
    "a short page fills a screen": (
        "sample",
        "/nothing",
        1440,
        {},
        "box('footer').bottom >= innerHeight - 1",
    ),
    "a lone footer has no gap": (
        "none",
        "/",
        1440,
        {},
        "box('#developers').bottom == box('footer').top",
    ),
    "a phone shows a review": ("bare", "/reviews", 360, {}, "box('article').top < 740"),
    "a wide screen has no gap": ("bare", "/", 1440, {}, NO_GAP % 450),
    "a tablet has no gap": ("bare", "/", 820, {}, NO_GAP % 600),
    "a phone has no gap": ("bare", "/", 360, {}, NO_GAP % 600),
    "paper has reviews": (
        "sample",
        "/",
        1440,
        PAPER,
        "style('#reviews').display == 'block'",
    ),
    "paper has no endpoints": (
        "sample",
        "/",
        1440,
        PAPER,
        "style('#developers').display == 'none'",
    ),
    "paper has no form": (
        "sample",
        "/reviews",
        1440,
        PAPER,
        "style('.search').display == 'none'",
    ),
}


@pytest.mark.parametrize("rule", LAYOUT)
def test_a_layout_obeys_its_rule(
    browser: Browser, service_of: Start, rule: str
) -> None:
    name, path, width, features, expression = LAYOUT[rule]
    browser.open(service_of(name) + path, width)
    browser.emulate(**features)
    assert browser.value(expression)


# ---- Use: by shell and by keyboard ----


@pytest.mark.parametrize("name", ["sample", "hostile"])
def test_every_curl_line_works_as_it_is_pasted(
    browser: Browser, service_of: Start, name: str, tmp_path: Path
) -> None:
    (tmp_path / ".curlrc").write_text("fail\nsilent\nshow-error\n")
    browser.open(service_of(name))
    browser.unfold()
    lines = browser.value("all('.endpoints pre').map(line => line.innerText)")
    assert len(lines) >= 8
    place: Any = {"cwd": tmp_path, "env": os.environ | {"CURL_HOME": str(tmp_path)}}
    for line in lines:
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, timeout=60, **place
        )
        assert done.returncode == 0 and done.stdout, (line, done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == [".curlrc"]


def test_the_tab_key_begins_at_a_skip_link_and_its_focus_is_visible(
    browser: Browser, service_of: Start
) -> None:
    browser.open(service_of("sample"))
    browser.press(Keys.TAB)
    assert browser.value("document.activeElement.hash") == "#content"
    assert browser.value("box(':focus').top") == 0
    for _ in range(4):
        browser.press(Keys.TAB)
        assert browser.value("style(':focus').outlineStyle") != "none"


MAX_TABS = 60  # more than the page has targets before its first review


def tab_to(browser: Browser, target: str) -> None:
    """Press the tab key until the element that matches `target` has the focus."""
    for _ in range(MAX_TABS):
        if browser.value(f"document.activeElement.matches('{target}')"):
            return
        browser.press(Keys.TAB)
    pytest.fail(f"the tab key never reaches {target}")


def test_the_form_finds_words_by_keyboard_alone_and_says_how_many(
    browser: Browser, service_of: Start
) -> None:
    browser.open(service_of("sample") + "/reviews")

    for target, keys in [("#query", "BACK"), ("#rating", "5"), ("button", Keys.ENTER)]:
        tab_to(browser, target)
        browser.press(keys)
    WebDriverWait(browser, 10).until(lambda browser: "query=" in browser.current_url)

    url = urlsplit(browser.current_url)
    assert dict(parse_qsl(url.query)) == {"query": "BACK", "rating": "5"}
    assert url.fragment == "results"
    search = url._replace(path="/api/reviews/search").geturl()
    with urllib.request.urlopen(search, timeout=30) as answer:
        count = json.load(answer)["matched"]
    heading = browser.value("all('#results-h')[0].innerText")
    assert heading == f"{count} reviews · Words: BACK · Stars: 5 stars"


# ---- The owner's website: badge and frame in a page of another origin ----

OWNER_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Owner</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>html {{ color-scheme: {scheme} }} body {{ margin: 0; background: {background} }}</style></head>
<body><h1>Ann</h1>{badge}<p>Before.</p>{iframe}<p>After.</p></body></html>"""
LIGHT = (253, 246, 227)
DARK = (34, 34, 34)


class Website(NamedTuple):
    """A page of another origin with the two elements that the home page of the sample gives to copy."""

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
        """Open it with other `parts`; the height of the frame and of its content, the colour of its text."""
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
def website(browser: Browser, service_of: Start, tmp_path: Path) -> Iterator[Website]:
    browser.open(service_of("sample"))
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


# By website: its colour scheme, its background, parameters of the frame, more style of the frame, and the
# background that the frame must have. None: the website's is that of the system, the frame's may be any.
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
    assert browser.value("all('img')[0].naturalWidth") == 252
    own = {f"{service_of('sample')}/{path}" for path in ("badge.svg", "embed")}
    assert set(browser.requested()) - {browser.current_url, "data:,"} == own


def has_frame_sizing(browser: Browser) -> bool:
    """Whether this browser gives a frame the height of its content (Chrome from 154 on)."""
    supported: bool = browser.value("CSS.supports('frame-sizing', 'content-height')")
    return supported


# What the owner's style says to other browsers.
FIXED = "frame-sizing:content-height", ""


@pytest.mark.parametrize("width", [320, 390, 600, 820, 1200])
def test_a_frame_of_a_browser_without_frame_sizing_has_room_for_three_reviews(
    website: Website, width: int
) -> None:
    fixed = website.iframe.replace(*FIXED)

    frame_height, content_height, _ = website.open(width, iframe=fixed)

    assert frame_height >= content_height


LOW = "min-height:max(34rem,104rem - 100vw)", "min-height:10rem"
LOW_PIXELS = 160


@pytest.mark.parametrize("width", [390, 1200])
def test_a_frame_grows_with_its_content_where_the_browser_can(
    browser: Browser, website: Website, width: int
) -> None:
    low = website.iframe.replace(*LOW)

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
    assert browser.value("all('img')[0].naturalWidth") == 252
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
