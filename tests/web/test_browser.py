"""Every page in a real browser: it fits every screen, is accessible, and obeys nobody.

The browser and the services are shared by all tests, and the tests of a page share its
loading. Their use and layout are in `test_browser_use.py`, badge and frame on another
website in `test_browser_website.py`.
"""

from importlib.resources import files
from typing import NamedTuple
from urllib.parse import quote

import pytest
from lab.browser import Browser, Start
from lab.page_samples import ATTACKS

pytestmark = pytest.mark.slow

REVIEW = "/reviews/01M7F1SV60XJ4PFV38D0FMZ6BZ"
SEARCH = "/reviews?query=a&rating=5&min_rating=2&mentions_technician=okafor"
WRONG = "/reviews?query=a&rating=7&until=2026-02-30&page=0"
UNMATCHED = "/reviews?query=zzz"
CRITICISM = "/reviews?mentions=aspects/wait_time&sentiment=negative"
ABOUT_PAIN = "/reviews?mentions=aspects/pain"
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
    "half read": ["/", ABOUT_PAIN],
    "wholly read": ["/", ABOUT_PAIN],
    "exemplified": ["/", CRITICISM],
    "hostile": [
        "/",
        "/reviews",
        ATTACK,
        ATTACKING_REVIEW,
        "/embed?theme=auto&limit=10",
    ],
    "many": ["/", "/reviews"],
    "german": ["/", "/reviews", "/embed"],
    "polish": ["/", "/reviews", "/reviews?query=zzz&rating=4"],
    "hebrew": ["/", "/reviews", "/reviews/h14", WRONG, "/embed"],
    "japanese": ["/", "/reviews"],
    "one": ["/", "/reviews/only%2F1"],
    "bare": ["/"],
    "none": ["/", "/reviews", "/embed"],
}
PAGES = list[tuple[str, str]]()
for data_set, paths in PATHS.items():
    PAGES += [(data_set, path) for path in paths]


class Page(NamedTuple):
    """A loaded page: its data set, complaints about it, and the URLs it requested."""

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
    """The loaded page, shown as at first.

    It is loaded again if another test has opened something else.
    """
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
    # The second is the browser's icon of a date field.
    own = (service_of(page.name) + "/", "data:image/svg+xml;base64,")

    assert page.complaints == []
    assert page.url in page.requested
    assert all(url.startswith(own) for url in page.requested)


# Widths in pixels, and sizes of text in percent.
SCREENS = ((1440, 100), (820, 100), (390, 100), (360, 150), (320, 100), (320, 200))
# What reaches beyond the screen or its own box, and every number that is broken into
# two lines.
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

    for width, text_percent in SCREENS:
        browser.resize(width, text_percent)
        size = browser.value("style('html').fontSize")
        assert size == f"{16 * text_percent // 100}px"
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
    # axe takes a transparent page for white; the contrast of a dark frame is tested
    # below.
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
