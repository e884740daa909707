"""Templates and datasets for tests: the sample, an empty one, and one whose texts attack pages."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from lab.small_files import CONTRACT, loaded
from reviewslib.dataset.reviews import Dataset, load
from reviewslib.links import service_urls
from reviewslib.web.templating import load_templates

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = ROOT / "data"
TEMPLATES_DIRECTORY = ROOT / "reviewslib" / "web" / "templates"
TEMPLATES = load_templates(TEMPLATES_DIRECTORY)
URLS = service_urls("https://reviews.example")
dataset_of = partial(loaded, urls=URLS)


def sample_dataset() -> Dataset:
    """The sample as the repository ships it."""
    reviews, insights = (
        (SAMPLE / f"{name}.json").read_bytes() for name in ("reviews", "insights")
    )
    return load(CONTRACT, reviews, insights, URLS)


SMALLEST = {"business": {"name": "Ann's Bakery"}, "reviews": []}

LONG_WORD = (
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
    * 4
)
# Scripts for every state of an HTML parser. A script that runs sets window.attacked.
ATTACKS = (
    "<script>window.attacked=1</script>",
    "</script><script>window.attacked=1</script>",
    "<!--<script>window.attacked=1</script>-->",
    "</style><img src=x onerror=window.attacked=1>",
    '" onmouseover="window.attacked=1" autofocus onfocus="window.attacked=1" x="',
    "' onmouseover='window.attacked=1' x='",
    "</title></textarea></svg></pre></p><svg onload=window.attacked=1>",
    "<a href=javascript:window.attacked=1>press</a>",
    "<base href=https://evil.example/><meta http-equiv=refresh content=0;url=https://evil.example/>",
    "]]><iframe srcdoc='<script>parent.attacked=1</script>'></iframe>",
    "{0} {links} {name!r} %s ${url} $name &lt;b&gt; \\u003cscript\\u003e {{ 7 * 7 }} {% raw %} {# x",
    "\u202eneversed \u2066isolated \u200f right \u0000\u0007\u001b[31m \ufffe",
    LONG_WORD,
    "$(touch attacked) `touch attacked` ; touch attacked | \n touch attacked",
)
FIGURES = {"mention_count": 3, "score": 0.5, "example_review_ids": []}
ASPECT_COUNTS = {
    "positive_count": 2,
    "neutral_count": 0,
    "negative_count": 1,
    "positive_pct": 66.7,
}


def files_saying(*texts: str) -> tuple[Any, Any]:
    """A business, a review of each text, and insights that repeat it; other fields have all texts joined."""
    everything = " ".join(texts)
    told = (
        "name",
        "description",
        "category",
        "telephone",
        "email",
        "price_range",
        "review_policy",
    )
    address = dict.fromkeys(
        ("street", "locality", "region", "postal_code", "country"), everything
    )
    business = dict.fromkeys(told, everything) | {
        "address": address,
        "service_areas": list(texts),
    }
    business["review_url"] = "https://reviews.example/write"
    reviews = [
        {
            "id": f"{number}",
            "author": text,
            "rating": 1 + number % 5,
            "date": f"2026-01-{number + 1:02}",
        }
        | {"text": text, "source": text, "owner_reply": {"text": text, "date": None}}
        | {"mentioned_technicians": [text], "mentioned_services": ["e0", text]}
        for number, text in enumerate(texts)
    ]
    entities = [
        {
            "id": f"e{number}",
            "label": text,
            "average_rating": 4,
            "top_phrases": [text, text],
            **FIGURES,
        }
        for number, text in enumerate(texts)
    ]
    insights = {
        "version": 1,
        "generated_at": "2026-01-31T00:00:00Z",
        "review_count": 14,
    }
    insights |= dict.fromkeys(("model", "summary", "pull_quote"), everything) | {
        "overall_sentiment": {
            "score": 0,
            "positive_pct": 50,
            "neutral_pct": 0,
            "negative_pct": 50,
        },
        "aspects": [entity | ASPECT_COUNTS for entity in entities],
        "entities": dict.fromkeys(
            ("technicians", "services", "problems", "service_areas"), entities
        ),
        "topics": [entity | {"summary": entity["label"]} for entity in entities],
        "faq": [{"question": text, "answer": text, "review_ids": []} for text in texts],
    }
    return {"business": business, "reviews": reviews}, insights


def attacking_files() -> tuple[Any, Any]:
    """Every text is an attack; so are ids and addresses, as far as the loader accepts them."""
    document, insights = files_saying(*ATTACKS)
    script = 'https://evil.example/"><script>window.attacked=1</script>'
    document["business"] |= {"url": script, "review_url": script}
    document["business"] |= {
        "image_url": 'https://evil.example/"onerror="window.attacked=1'
    }
    document["business"] |= {"telephone": '+1 555" onmouseover="window.attacked=1'}
    document["business"] |= {"email": "javascript:window.attacked=1"}
    for review in document["reviews"]:
        handler = '"onmouseover="window.attacked=1\''
        review["source_url"] = f"https://evil.example/{handler}><script>{review['id']}"
        review["id"] = f"<script>window.attacked={review['id']}</script>"
    return document, insights


def write_files(directory: Path, reviews_file: Any, insights_file: Any = None) -> Path:
    """A data directory with these files."""
    for file, value in (
        ("reviews.json", reviews_file),
        ("insights.json", insights_file),
    ):
        if value is not None:
            (directory / file).write_text(json.dumps(value), encoding="utf-8")
    return directory
