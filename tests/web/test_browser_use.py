"""The pages in a real browser, as they are seen and used: layout, keyboard, commands.

Sections: layout - use.
"""

import json
import os
import subprocess
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from lab.browser import Browser, Start
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = pytest.mark.slow

# ---- Layout ----

# By rule: a data set, a path, a width, what the reader prefers, and an expression that
# holds.

FORCED = {"forced_colors": "active", "prefers_color_scheme": "dark"}
PAPER = {"media": "print"}
SIGNS = """(signs => new Set(signs).size == 3 &&
    ['fault', 'praise', 'neutral'].every((kind, at) => style('.bar .' + kind).fill == signs[at]))(
    all('.legend i').map(sign => getComputedStyle(sign).backgroundColor))"""
NO_GAP = """(tops => tops.every((top, at) => at == 0 || top > tops[at - 1] && top - tops[at - 1] < %d))(
    ['h1', '.lead', '.search', 'main section'].map(selector => box(selector).top))"""
STARS = "style('.rating-panel .stars').color == style('.score').color"
# What is drawn from left to right, seen in a mirror.
MIRRORED = "'matrix(-1, 0, 0, 1, 0, 0)'"
BARS_HAVE_OUTLINES = "style('.bar').borderTopStyle == 'solid'"
# Of all texts that a customer or the business wrote in several lines.
LINES_ARE_KEPT = """(texts => texts.length > 1 &&
    texts.every(text => getComputedStyle(text).whiteSpace == 'pre-line'))(
    all('p.customer-words, .reply-text, .policy, .details, .summary'))"""
MARKS_ARE_SEEN = (
    "style('mark').backgroundColor != style('mark').color && "
    "style('mark').backgroundColor != 'rgba(0, 0, 0, 0)'"
)
QUOTED = """['open', 'close'].every((kind, at) => getComputedStyle(
    all('.pull-quote p')[0], ['::before', '::after'][at]).content == kind + '-quote')"""
SOFT_TEXT_IS_LIGHT = (
    "style('.when').color.match(/[0-9]+/g).reduce((sum, part) => sum + +part, 0) > 500"
)
LAYOUT: dict[str, tuple[str, str, int, dict[str, str], str]] = {
    "forced colours leave signs": ("sample", "/", 1440, FORCED, SIGNS),
    "forced colours leave stars": ("sample", "/", 1440, FORCED, STARS),
    "forced colours leave bars": ("sample", "/", 1440, FORCED, BARS_HAVE_OUTLINES),
    "a text keeps its lines": ("sample", "/", 1440, {}, LINES_ARE_KEPT),
    "a text in the frame keeps its lines": (
        "sample",
        "/embed?limit=10",
        1440,
        {},
        LINES_ARE_KEPT,
    ),
    "words that were found are marked": (
        "sample",
        "/reviews?query=back",
        1440,
        {},
        MARKS_ARE_SEEN,
    ),
    "a quotation has its marks": ("sample", "/", 1440, {}, QUOTED),
    "a click selects a whole command": (
        "sample",
        "/",
        1440,
        {},
        "style('pre').userSelect == 'all'",
    ),
    "stars fill from the right in Hebrew": (
        "hebrew",
        "/",
        1440,
        {},
        f"['.stars', '.bar'].every(drawing => style(drawing).transform == {MIRRORED})",
    ),
    "stars of a frame fill from the right in Hebrew": (
        "hebrew",
        "/embed",
        1440,
        {},
        f"style('.stars').transform == {MIRRORED}",
    ),
    "time runs to the right in Hebrew, too": (
        "hebrew",
        "/",
        1440,
        {},
        "style('.chart').direction == 'ltr'",
    ),
    "all text of a dark frame is light": (
        "sample",
        "/embed?theme=dark",
        1440,
        {},
        SOFT_TEXT_IS_LIGHT,
    ),
    "all text of a frame that adapts is light in the dark": (
        "sample",
        "/embed?theme=auto",
        1440,
        {"prefers_color_scheme": "dark"},
        SOFT_TEXT_IS_LIGHT,
    ),
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
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout, line
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


def test_the_focus_in_a_frame_is_visible(browser: Browser, service_of: Start) -> None:
    browser.open(service_of("sample") + "/embed")

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
