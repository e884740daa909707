"""How high the frame is on the owner's website, where the browser cannot size it.

The home page offers a line of HTML with a `min-height` that is enough for the longest
three of the newest reviews, at any width of the screen: a frame that is too low scrolls
inside, one that is too high ends in white. The heights are those of `embed.html` and
`embed.css`, in rem. This module must not know requests.

Sections: the style - the parts of the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reviewslib.dataset import provenance
from reviewslib.dataset.strict_json import Object
from reviewslib.web.embed import MAX_EXCERPT
from reviewslib.web.language import Language
from reviewslib.web.shown_text import one_line, paragraphs
from reviewslib.web.site import Site
from reviewslib.web.widths import Words, line_count, text_width, words_of

# ---- The style ----

# Pixels of a rem, in the frame and on most websites.
REM = 16
# Screens in pixels, from the narrowest phone to where nothing changes any more.
SCREENS = range(320, 1280, 32)
# Pixels of a screen that the frame does not get: margins of the page and a scroll bar.
BESIDE = 32
# Enough for any three reviews, since the frame cuts each: at most so high in rem, and
# that much less the width of the screen.
HIGHEST_FLOOR = 34
HIGHEST_SLOPE = 104
# The newest reviews from which the three are taken, so that tomorrow's fit as well.
NEWEST = 20
SHOWN = 3


def min_height(site: Site) -> str:
    """The `min-height` of the frame, such as "max(34rem,104rem - 100vw)"."""
    height_at = _height_of(site)
    heights = {screen: height_at((screen - BESIDE) / REM) for screen in SCREENS}
    floor, slope = _bounds(heights)
    return f"max({floor}rem,{slope}rem - 100vw)"


def _bounds(heights: dict[int, float]) -> tuple[int, int]:
    """The whole rem (floor, slope) of a line that is nowhere below `heights`.

    Of such lines it ends in least white.
    """
    best = (HIGHEST_FLOOR, HIGHEST_SLOPE)
    least = _area(*best)
    for floor in range(1, HIGHEST_FLOOR + 1):
        slope = _slope(heights, floor)
        area = _area(floor, slope)
        if slope <= HIGHEST_SLOPE and area < least:
            best = (floor, slope)
            least = area
    return best


def _slope(heights: dict[int, float], floor: int) -> int:
    """The least slope that is enough where the floor is not."""
    needed = 0.0
    for screen, height in heights.items():
        if height > floor:
            # Up to the next screen the content is as high, and the line goes down.
            needed = max(needed, height + (screen + SCREENS.step) / REM)
    return int(needed) + 1


def _area(floor: int, slope: int) -> float:
    """A measure of how much room a line gives, over all screens."""
    return sum(max(floor, slope - screen / REM) for screen in SCREENS)


# ---- The parts of the frame ----

# In rem: lines of text, of headings, and of small text, which has a font of .9rem.
LINE = 1.5
HEADING_LINE = 1.35
SMALL = 0.9
SMALL_LINE = SMALL * LINE
# Bold text is wider.
BOLD = 1.1
BORDER = 1 / REM
BODY_PADDING = 0.25
SCORE = 3.0
# Of reviews: the least width of a column, the gaps, what stands above the text.
COLUMN = 16
COLUMN_GAP = 2
ROW_GAP = 1.25
AROUND_REVIEWS = 2
ABOVE_STARS = BORDER + 1
STARS = 1.05
ABOVE_NAME = 0.35
ABOVE_WORDS = 0.5
ABOVE_TEXT = ABOVE_STARS + STARS + ABOVE_NAME + ABOVE_WORDS
LINK_PADDING = 0.6
LINK_MARGIN = 1.5
FOOTER = BORDER + 0.75
ABOVE_POLICY = 0.35


Height = Callable[[float], float]


def _height_of(site: Site) -> Height:
    """The height of the frame by its width, both in rem."""
    header = _header(site)
    reviews = _longest(site)
    footer = _footer(site)

    def height_at(width: float) -> float:
        room = width - 2 * BODY_PADDING
        height = header(room) + _reviews(reviews, room) + footer(room)
        return height + 2 * BODY_PADDING

    return height_at


def _header(site: Site) -> Height:
    language = site.language
    business = site.dataset.business
    title = language.say("Reviews of %(name)s", name=one_line(business["name"]))
    heading = words_of(title)
    websites = language.published_on(provenance.publishers(site.dataset.sources))
    counted = max(_said_of_number(site), key=len)
    said = language.say("published on %(websites)s", websites=websites)
    small = [
        words_of(f"{counted} · {said}"),
        words_of(language.say("Newest first, not chosen by rating.")),
    ]

    def height_at(room: float) -> float:
        lines = sum(line_count(text, room / SMALL) for text in small)
        heading_height = HEADING_LINE * line_count(heading, room / BOLD)
        return heading_height + SCORE + SMALL_LINE * lines

    return height_at


def _said_of_number(site: Site) -> list[str]:
    """What the frame may say of the number of reviews."""
    language = site.language
    count = site.dataset.aggregate_rating["review_count"]
    of_ours = language.number(len(site.dataset.reviews))
    return [
        language.counted(
            "%(n)s verified customer review", "%(n)s verified customer reviews", count
        ),
        language.counted(
            "%(n)s review, %(here)s of them here",
            "%(n)s reviews, %(here)s of them here",
            count,
            here=of_ours,
        ),
    ]


def _longest(site: Site) -> list[Height]:
    """The three longest of the newest reviews, the longest first."""
    newest = site.dataset.newest[:NEWEST]
    longest = sorted(newest, key=_length, reverse=True)[:SHOWN]
    return [_review(review, site.language) for review in longest]


def _length(review: Object) -> float:
    """A measure of the lines that a review takes."""
    shown = paragraphs(review["text"], MAX_EXCERPT)
    return text_width(shown) + text_width(review["author"]) + COLUMN * shown.count("\n")


def _review(review: Object, language: Language) -> Height:
    whole = paragraphs(review["text"], None)
    shown = paragraphs(review["text"], MAX_EXCERPT)
    if not whole:
        shown = language.say("A rating without words.")
    author = words_of(one_line(language.author(review)))
    day = language.day(review["date"])
    source = provenance.source_name(review["source"])
    where = language.say("on %(website)s", website=one_line(source))
    small = [words_of(f"{day} {where}")]
    if len(whole) > MAX_EXCERPT:
        small.append(words_of(language.say("Read the whole review")))
    text = words_of(shown)

    def height_at(room: float) -> float:
        small_lines = sum(line_count(words, room / SMALL) for words in small)
        height = ABOVE_TEXT + SMALL_LINE * small_lines
        height += HEADING_LINE * line_count(author, room / BOLD)
        return height + LINE * line_count(text, room)

    return height_at


def _reviews(reviews: Sequence[Height], room: float) -> float:
    """The height of the grid, in whatever order the reviews stand.

    That is the worst case: the highest are in different rows.
    """
    if not reviews:
        return 0
    columns = int((room + COLUMN_GAP) // (COLUMN + COLUMN_GAP))
    columns = max(1, min(columns, len(reviews)))
    column = (room - COLUMN_GAP * (columns - 1)) / columns
    heights = sorted((height_at(column) for height_at in reviews), reverse=True)
    rows = -(-len(reviews) // columns)
    return AROUND_REVIEWS + sum(heights[:rows]) + ROW_GAP * (rows - 1)


def _footer(site: Site) -> Height:
    language = site.language
    business = site.dataset.business
    count = len(site.dataset.reviews)
    links = [language.counted("All %(n)s review", "All %(n)s reviews", count)]
    if business.get("review_url"):
        links.append(language.say("Write a review"))
    widths = [text_width(link) + LINK_MARGIN / SMALL for link in links]
    policy: Words = []
    text = provenance.review_policy(business)
    if text:
        policy = words_of(paragraphs(text))

    def height_at(room: float) -> float:
        rows = line_count([widths], room / SMALL)
        height = FOOTER + rows * (SMALL_LINE + LINK_PADDING)
        if policy:
            height += ABOVE_POLICY + SMALL_LINE * line_count(policy, room / SMALL)
        return height

    return height_at
