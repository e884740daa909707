"""The pages in a real browser: headless Chromium, driven by its driver, talking to a running service.

Nothing here reaches another host: the browser resolves no name.
"""

import base64
import json
import os
import re
import subprocess
import threading
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
from data_sets import DATA_SETS
from page_samples import ATTACKS, SMALLEST, attacking_files, write_files
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from services import Address, daemon
from small_files import review
from tools import program
from werkzeug.serving import make_server
from werkzeug.wrappers import Response

Chrome = webdriver.Chrome
OFFLINE = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
OFFLINE += ["--disable-component-update", "--no-first-run"]
OFFLINE += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
pytestmark = pytest.mark.slow

FILES = {"sample": DATA_SETS["sample"](), "empty": (SMALLEST,), "hostile": attacking_files()}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium")
    profile = tmp_path_factory.mktemp("profile")
    root = ("--no-sandbox",) if os.geteuid() == 0 else ()
    for argument in (*OFFLINE, *root, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options, webdriver.ChromeService(program("chromedriver")))
    yield driver
    driver.quit()


def serving(directory: Path, *files: Any) -> AbstractContextManager[Address]:
    """The daemon with these data files, which it finds in `directory`."""
    return daemon(data=write_files(directory, *files))


@pytest.fixture(scope="module", params=FILES)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    with serving(tmp_path_factory.mktemp("data"), *FILES[request.param]) as address:
        yield address


@pytest.fixture(scope="module", params=DATA_SETS)
def data_set(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    with serving(tmp_path_factory.mktemp("data"), *DATA_SETS[request.param]()) as address:
        yield address


@pytest.fixture(scope="module")
def sample() -> Iterator[Address]:
    with daemon() as address:
        yield address


SEARCH = "/reviews?query=a&rating=5&min_rating=2&mentions_technician=okafor"
WRONG = "/reviews?query=a&rating=7&until=2026-02-30&page=0"
UNFOLD = "for (const each of document.querySelectorAll('details')) each.open = true"
REQUEST = "Network.requestWillBeSent"  # an event of the browser's log
NEWEST = "newest"  # stands for the page of the newest review, or for one that is missing
PATHS = ["/", "/reviews", SEARCH, WRONG, NEWEST]
FRAMES = ["/embed", "/embed?theme=dark", "/embed?theme=auto&limit=10"]


def newest_path(service: Address) -> str:
    """Where the page of the newest review is."""
    with urllib.request.urlopen(service.base_url + "/reviews.json", timeout=30) as answer:
        reviews = json.load(answer)["reviews"]
    return str(reviews[0]["page_url"]).removeprefix(service.base_url) if reviews else "/reviews/none"


def emulate(browser: Chrome, media: str = "", **features: str) -> None:
    """Show pages on this medium, to a reader with these preferences."""
    preferences = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": preferences})


def open_page(
    browser: Chrome,
    service: Address,
    width: int = 1440,
    scheme: str = "light",
    path: str = "/",
    **features: str,
) -> None:
    """Open a page in a viewport of this width, in a light or a dark colour scheme."""
    emulate(browser, prefers_color_scheme=scheme, **features)
    resize(browser, width)
    browser.get(service.base_url + (newest_path(service) if path == NEWEST else path))
    resize(browser, width)  # again, since the size of text is set only in a loaded page


def resize(browser: Chrome, width: int, text_percent: int = 100) -> None:
    """Give the viewport this width in pixels, and text this size."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    sizes = {"standard": 16 * text_percent // 100, "fixed": 13 * text_percent // 100}
    browser.execute_cdp_cmd("Page.setFontSizes", {"fontSizes": sizes})


def in_page(browser: Chrome, script: str) -> Any:
    """The result of a script in the page."""
    return browser.execute_script(f"return {script}")


def style(browser: Chrome, selector: str, name: str) -> str:
    """A computed style of the first element that matches `selector`."""
    return str(in_page(browser, f"getComputedStyle(document.querySelector('{selector}')).{name}"))


def edge(browser: Chrome, selector: str, of: str = "top") -> float:
    """An edge or a size of the first element that matches `selector`, in pixels."""
    return float(in_page(browser, f"document.querySelector('{selector}').getBoundingClientRect().{of}"))


def requested(browser: Chrome, base_url: str) -> list[str]:
    """The URLs that pages below `base_url` have asked for since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [each["params"] for each in messages if each["method"] == REQUEST]
    return [each["request"]["url"] for each in sent if each["documentURL"].startswith(base_url)]


@pytest.mark.parametrize("path", [*PATHS, *FRAMES])
def test_a_page_loads_without_a_complaint_and_asks_no_other_host(
    browser: Chrome, service: Address, path: str
) -> None:
    browser.get_log("performance"), browser.get_log("browser")
    open_page(browser, service, path=path)
    complaints = [each["message"] for each in browser.get_log("browser")]
    assert [each for each in complaints if "the server responded with a status of 40" not in each] == []
    urls = requested(browser, service.base_url)
    assert browser.current_url in urls
    own = (service.base_url + "/", "data:image/svg+xml;base64,")  # the browser's icon of a date field
    assert all(url.startswith(own) for url in urls)


@pytest.mark.parametrize("path", [*PATHS, *FRAMES])
def test_no_page_scrolls_sideways(browser: Chrome, service: Address, path: str) -> None:
    open_page(browser, service, path=path)
    scrolled = {}
    for width in (320, 390, 820, 1440):
        resize(browser, width)
        scrolled[width] = in_page(browser, "document.documentElement.scrollWidth")
    assert all(scrolled[width] <= width for width in scrolled), scrolled


# What reaches beyond the screen, or beyond its own box, and each number that is broken into two lines.
BROKEN = r"""const edge = document.documentElement.clientWidth, broken = [];
    const boxes = document.querySelectorAll('body *:not(svg *, .visually-hidden, .skip, select, input)');
    for (const each of boxes) {
        const box = each.getBoundingClientRect(), content = each.clientWidth && each.scrollWidth;
        if (box.width && (box.left < -1 || box.right > edge + 1) || content > each.clientWidth + 1)
            broken.push(each.outerHTML.slice(0, 80));
    }
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        if (texts.currentNode.parentElement.closest('style, script, code, [rel=bookmark]')) continue;
        const numbers = /(?<![\p{L}\d])\+?\d([\d.,:-]*\d)?(?![\p{L}\d])/gu;
        for (const found of texts.currentNode.data.matchAll(numbers)) {
            const range = document.createRange();
            range.setStart(texts.currentNode, found.index);
            range.setEnd(texts.currentNode, found.index + found[0].length);
            const lines = new Set([...range.getClientRects()].map(each => Math.round(each.top)));
            if (lines.size > 1) broken.push(found[0]);
        }
    }
    return broken"""


@pytest.mark.parametrize("path", ["/", "/reviews", WRONG, NEWEST, "/embed"])
def test_large_text_on_a_narrow_screen_fits_and_breaks_no_number(
    browser: Chrome, data_set: Address, path: str
) -> None:
    open_page(browser, data_set, 390, path=path)
    browser.execute_script(UNFOLD)
    for width, text_percent in ((320, 150), (320, 200), (360, 150), (360, 200), (390, 100)):
        resize(browser, width, text_percent)
        assert style(browser, "html", "fontSize") == f"{16 * text_percent // 100}px"
        assert browser.execute_script(BROKEN) == [], (width, text_percent)


def test_the_home_page_on_a_phone_folds_what_is_for_developers(browser: Chrome, sample: Address) -> None:
    open_page(browser, sample, 390)
    folded = edge(browser, "#developers", "height")
    browser.execute_script(UNFOLD)
    assert folded < 300 < 3000 < edge(browser, "#developers", "height")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_forced_colours_leave_the_legend_its_signs(browser: Chrome, sample: Address, scheme: str) -> None:
    open_page(browser, sample, scheme=scheme, forced_colors="active")
    signs = {".fault": ".fault", ".praise": ".praise", ":not([class])": ".neutral"}
    colours = [style(browser, f".legend {sign}", "backgroundColor") for sign in signs]
    assert colours == [style(browser, f".bar {bar}", "fill") for bar in signs.values()]
    assert len(set(colours)) == 3


def test_forced_colours_give_stars_the_colour_of_text(browser: Chrome, sample: Address) -> None:
    open_page(browser, sample, scheme="dark", forced_colors="active")
    assert style(browser, ".rating-panel .stars", "color") == style(browser, ".score", "color")


@pytest.mark.parametrize("path", ["/reviews?query=zzz", "/reviews/none", "/nothing"])
@pytest.mark.parametrize("width", [320, 1440])
def test_the_footer_of_a_short_page_is_at_the_end_of_the_screen(
    browser: Chrome, sample: Address, width: int, path: str
) -> None:
    open_page(browser, sample, width, path=path)
    assert edge(browser, "footer", "bottom") >= in_page(browser, "innerHeight") - 1


@pytest.mark.parametrize("path", [*PATHS, *FRAMES])
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_axe_finds_no_fault(browser: Chrome, service: Address, width: int, scheme: str, path: str) -> None:
    open_page(browser, service, width, scheme, path)
    browser.execute_script(UNFOLD)
    browser.execute_script((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
    # axe takes a transparent page for white; the contrast of a dark frame is tested below.
    rules = {"color-contrast": {"enabled": "theme=dark" not in path}}
    found = browser.execute_async_script("axe.run({rules: arguments[0]}).then(arguments[1])", rules)
    assert len(found["passes"]) > 15
    assert [(fault["id"], [node["html"] for node in fault["nodes"]]) for fault in found["violations"]] == []


@pytest.mark.parametrize("path", ["/", SEARCH, NEWEST])
def test_every_link_to_this_service_answers(browser: Chrome, sample: Address, path: str) -> None:
    open_page(browser, sample, path=path)
    urls = in_page(browser, "[...document.querySelectorAll('[href]:not(use)')].map(each => each.href)")
    here = {url.partition("#")[0] for url in urls if url.startswith(sample.base_url)}
    assert len(here) >= 5
    for url in here - {sample.base_url + "/api/websub/hub"}:  # which answers POST alone
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert answer.status == 200, url


def test_every_curl_line_works_as_it_is_pasted(browser: Chrome, service: Address, tmp_path: Path) -> None:
    (tmp_path / ".curlrc").write_text("fail\nsilent\nshow-error\n")
    open_page(browser, service)
    browser.execute_script(UNFOLD)
    lines = in_page(browser, "[...document.querySelectorAll('.endpoints pre')].map(each => each.innerText)")
    assert len(lines) >= 8
    place: Any = {"cwd": tmp_path, "env": os.environ | {"CURL_HOME": str(tmp_path)}}
    for line in lines:
        done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=60, **place)
        assert done.returncode == 0 and done.stdout, (line, done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == [".curlrc"]


HANDLED = """[...document.querySelectorAll('*')].flatMap(each => [...each.attributes])
    .map(each => each.name).filter(name => name.startsWith('on') || name == 'style' || name == 'srcdoc')"""
EVENTS = """for (const each of document.querySelectorAll('*')) {
    for (const kind of ['mouseover', 'focus', 'load', 'error', 'click'])
        if (kind != 'click' || !each.closest('a')) each.dispatchEvent(new Event(kind, {bubbles: true}));
}"""


@pytest.mark.parametrize(
    "path", [*PATHS, *FRAMES, f"/reviews?query={quote(ATTACKS[0])}&rating={quote(ATTACKS[4])}"]
)
def test_attacks_do_nothing(browser: Chrome, service: Address, path: str) -> None:
    open_page(browser, service, path=path)
    opened = browser.current_url
    browser.execute_script(EVENTS)
    assert in_page(browser, "window.attacked") is None
    assert browser.current_url == opened
    assert in_page(browser, HANDLED) == []
    strangers = (
        "script:not([type='application/ld+json']), iframe, object, embed, audio, base[href],"
        " img:not([src='badge.svg']), form:not(.search), input:not(.field input)"
    )
    assert browser.find_elements(By.CSS_SELECTOR, strangers) == []
    schemes = in_page(browser, "[...document.querySelectorAll('a')].map(each => each.protocol)")
    assert set(schemes) <= {"http:", "https:", "mailto:", "tel:"}
    data = in_page(browser, "[...document.querySelectorAll('script')].map(each => each.textContent)")
    assert [json.loads(each)["@context"] for each in data] == ["https://schema.org"] * len(data)


@pytest.mark.parametrize("path", ["/", "/reviews", NEWEST])
def test_the_keyboard_begins_at_a_skip_link_and_sees_where_it_is(
    browser: Chrome, sample: Address, path: str
) -> None:
    open_page(browser, sample, path=path)
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("hash") == "#content"
    assert in_page(browser, "document.activeElement.getBoundingClientRect().top") == 0
    for _ in range(4):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        assert in_page(browser, "getComputedStyle(document.activeElement).outlineStyle") != "none"


@pytest.mark.parametrize(
    ("path", "kept", "left_out"),
    [("/", "#reviews", ["#developers", ".search"]), ("/reviews", "article", [".search", "nav", ".pages"])],
)
def test_a_printed_page_has_reviews_but_no_forms_and_endpoints(
    browser: Chrome, sample: Address, path: str, kept: str, left_out: list[str]
) -> None:
    open_page(browser, sample, path=path)
    emulate(browser, "print")
    assert {style(browser, each, "display") for each in left_out} == {"none"}
    assert style(browser, kept, "display") != "none"


def test_the_form_finds_words_by_keyboard_alone_and_says_how_many(browser: Chrome, sample: Address) -> None:
    open_page(browser, sample, path="/reviews")

    def press(*keys: str, until: str = "*") -> None:
        """Press keys in the focused element, then the tab key until `until` has the focus."""
        browser.switch_to.active_element.send_keys(*keys)
        while not in_page(browser, f"document.activeElement.matches('{until}')"):
            browser.switch_to.active_element.send_keys(Keys.TAB)

    press(Keys.TAB, until="#query")
    press("BACK", Keys.TAB)
    press("5", Keys.TAB, until="summary")
    press(Keys.ENTER)
    press(Keys.TAB)
    press("Dr. Tobias", until="button")
    press(Keys.ENTER)
    WebDriverWait(browser, 10).until(lambda browser: "query=" in browser.current_url)
    asked = dict(parse_qsl(urlsplit(browser.current_url).query))
    assert asked == {"query": "BACK", "rating": "5", "mentions_technician": "Dr. Tobias Okafor"}
    search = f"{sample.base_url}/api/reviews/search?{urlencode(asked)}"
    with urllib.request.urlopen(search, timeout=30) as answer:
        matched = json.load(answer)["matched"]
    assert browser.find_element(By.ID, "results-h").text == f"{matched} of 160 reviews match"
    assert urlsplit(browser.current_url).fragment == "results"


@pytest.fixture(scope="module")
def bare_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """180 reviews of one sentence, and no insights but those that are counted."""
    reviews = [review(f"{number:03}", text="Fast, kind and fair.") for number in range(180)]
    with serving(tmp_path_factory.mktemp("bare"), SMALLEST | {"reviews": reviews}) as address:
        yield address


def test_on_a_phone_the_search_form_leaves_room_for_a_review(browser: Chrome, bare_service: Address) -> None:
    open_page(browser, bare_service, 360, path="/reviews")
    assert edge(browser, "article") < 740 and edge(browser, "details") < 600
    assert edge(browser, "#rating") == edge(browser, ".first button"), "one line has stars and button"


@pytest.mark.parametrize(("width", "largest_gap"), [(1440, 450), (820, 600), (360, 600)])
def test_without_insights_no_screen_is_half_empty(
    browser: Chrome, bare_service: Address, width: int, largest_gap: int
) -> None:
    open_page(browser, bare_service, width)
    tops = [edge(browser, selector) for selector in ("h1", ".lead", ".search", "main section")]
    assert all(0 < lower - upper < largest_gap for upper, lower in pairwise(tops)), tops


def test_a_home_page_without_reviews_has_no_gap_above_its_footer(browser: Chrome, tmp_path: Path) -> None:
    with serving(tmp_path, SMALLEST) as empty:
        open_page(browser, empty)
        assert edge(browser, "#developers", "bottom") == edge(browser, "footer")


def test_words_found_are_marked_in_a_light_colour_on_paper(browser: Chrome, sample: Address) -> None:
    open_page(browser, sample, path=SEARCH)
    light = style(browser, "mark", "backgroundColor")
    emulate(browser, "print", prefers_color_scheme="dark")
    assert style(browser, "mark", "backgroundColor") == light


# ---- Badge and frame in a page of another origin: the owner's website ----

OWNER_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Owner</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">{head}
<style>html {{ color-scheme: {scheme} }} body {{ margin: 0; background: {ground} }}</style></head>
<body><h1>Ann</h1>{badge}<p>Before.</p>{frame}<p>After.</p></body></html>"""
PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
BOXES = "[...document.querySelectorAll('body *')].map(each => each.getBoundingClientRect().toJSON())"
LOAD = """const done = arguments[0], parts = [...document.querySelectorAll('[data-src]')];
    const loaded = parts.map(part => new Promise(resolve => part.addEventListener('load', resolve)));
    for (const part of parts) part.src = part.dataset.src;
    Promise.all(loaded).then(() => done(parts.length))"""
LIGHT, DARK = (253, 246, 227), (34, 34, 34)


class Website:
    """A website of another origin: one page with the badge and the frame that the home page gives to copy."""

    def __init__(self, browser: Chrome, badge: str, frame: str):
        self.browser, self.badge, self.frame, self.page = browser, badge, frame, ""
        self.server = make_server("127.0.0.1", 0, self.answer, threaded=True)
        self.url = f"http://127.0.0.1:{self.server.port}"

    def answer(self, *call: Any) -> Any:
        return Response(self.page, mimetype="text/html")(*call)

    def open(self, width: int, system: str = "light", **parts: str) -> tuple[int, int]:
        """Open it with other `parts`; the height of the frame, and the height of its content."""
        usual = {"head": "", "scheme": "normal", "ground": "#fff", "badge": self.badge, "frame": self.frame}
        self.page = OWNER_PAGE.format(**usual | parts)
        open_page(self.browser, Address(0, 0, self.url), width, system)
        with inside_frame(self.browser):
            loaded = "document.readyState == 'complete'"
            WebDriverWait(self.browser, 10).until(lambda browser: in_page(browser, loaded))
            heights = in_page(self.browser, "[innerHeight, document.documentElement.offsetHeight]")
        return heights[0], heights[1]


@contextmanager
def inside_frame(browser: Chrome) -> Iterator[None]:
    """Scripts see the document in the frame."""
    browser.switch_to.frame(0)
    yield
    browser.switch_to.default_content()


@pytest.fixture(scope="module")
def website(browser: Chrome, sample: Address) -> Iterator[Website]:
    open_page(browser, sample)
    find = "[...document.querySelectorAll('#website + .clients pre')].map(each => each.textContent)"
    website = Website(browser, *in_page(browser, find))
    thread = threading.Thread(target=website.server.serve_forever)
    thread.start()
    yield website
    website.server.shutdown()
    thread.join()
    website.server.server_close()


def colour_at(browser: Chrome, x: float, y: float) -> tuple[int, ...]:
    """The red, green and blue of one point of the viewport: the only pixel of a PNG."""
    clip = {"x": round(x), "y": round(y), "width": 1, "height": 1, "scale": 1}
    shot = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip})["data"])
    at = shot.index(b"IDAT")
    row = zlib.decompressobj().decompress(shot[at + 4 : at + 4 + int.from_bytes(shot[at - 4 : at], "big")])
    return tuple(row[1:4])  # after the filter, which has nothing to do


def luminance(colour: tuple[int, ...]) -> float:
    """The relative luminance of WCAG 2."""
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# By website: its colour scheme, its background, parameters of the frame, more of the frame's style, and the
# background that the frame has then. The background None is that of the system, or the browser's choice.
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
    browser: Chrome, website: Website, site: str, system: str
) -> None:
    scheme, ground, parameters, more_style, expected = SITES[site]
    frame = website.frame.replace('/embed"', f'/embed?limit=1{parameters}"')
    frame = frame.replace('style="', f'style="{more_style};')
    own = ground or (LIGHT if system == "light" else DARK)
    browser.get_log("browser")
    website.open(1200, system, scheme=scheme, ground=f"rgb{own}", frame=frame)
    seen = colour_at(browser, edge(browser, "iframe", "x") + 2, edge(browser, "iframe") + 2)
    assert expected in (None, seen)
    with inside_frame(browser):
        written = in_page(browser, "getComputedStyle(document.body).color")
    text = tuple(map(int, re.findall("[0-9]+", written)))
    darker, lighter = sorted(luminance(each) + 0.05 for each in (seen, text))
    assert lighter / darker > 7
    assert browser.get_log("browser") == []


def test_badge_and_frame_load_nothing_but_themselves(
    browser: Chrome, sample: Address, website: Website
) -> None:
    browser.get_log("performance")
    website.open(1200)
    assert in_page(browser, "document.querySelector('img').naturalWidth") == 252
    own = {f"{sample.base_url}/{path}" for path in ("badge.svg", "embed")}
    assert set(requested(browser, "")) - {website.url + "/", "data:,"} == own


@pytest.mark.parametrize("width", [320, 390, 600, 820, 1200])
def test_a_frame_keeps_enough_room_for_three_reviews(browser: Chrome, website: Website, width: int) -> None:
    fixed = website.frame.replace("frame-sizing:content-height", "")  # or it would be as high as its content
    frame_height, content_height = website.open(width, frame=fixed)
    assert frame_height >= content_height
    assert edge(browser, "iframe", "width") == in_page(browser, "document.documentElement.clientWidth")


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_shifts_when_badge_and_frame_load(browser: Chrome, website: Website, width: int) -> None:
    short = website.frame.replace('/embed"', '/embed?limit=1"')  # fits its room with any font
    badge, frame = (each.replace(" src=", f' src="{PIXEL}" data-src=') for each in (website.badge, short))
    website.open(width, badge=badge, frame=frame)
    before = in_page(browser, BOXES)
    assert browser.execute_async_script(LOAD) == 2, "the badge and the frame"
    assert in_page(browser, BOXES) == before


def test_a_frame_whose_style_is_blocked_has_the_size_of_its_attributes(
    browser: Chrome, sample: Address, website: Website
) -> None:
    policy = f"style-src 'self'; frame-src {sample.base_url}"
    website.open(390, head=f'<meta http-equiv=Content-Security-Policy content="{policy}">')
    browser.get_log("browser")  # has complaints about the blocked style
    assert edge(browser, "iframe", "width") > 360
    assert edge(browser, "iframe", "height") == 904, "with the border of 2 pixels"


@pytest.mark.parametrize("width", [390, 1200])
def test_a_frame_grows_with_its_content(website: Website, width: int) -> None:
    low = re.sub("min-height:[^;]*", "min-height:10rem", website.frame)
    frame_height, content_height = website.open(width, frame=low)
    assert frame_height == content_height > 160
