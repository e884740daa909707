"""Templates, and files whose texts attack the pages that show them.

Sections: templates - attacks - files.
"""

from typing import Any

from lab.services import ROOT
from reviewslib.web.templating import load_templates

# ---- Templates ----

TEMPLATES_DIRECTORY = ROOT / "reviewslib" / "web" / "templates"
TEMPLATES = load_templates(TEMPLATES_DIRECTORY)

# ---- Attacks ----

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

# ---- Files ----

FIGURES = {"mention_count": 3, "score": 0.5, "example_review_ids": []}
ASPECT_COUNTS = {
    "positive_count": 2,
    "neutral_count": 0,
    "negative_count": 1,
    "positive_pct": 66.7,
}


# Texts of a business; each is shown somewhere.
TOLD = ("name", "description", "category", "telephone", "email")
TOLD += ("price_range", "review_policy")
ADDRESS = ("street", "locality", "region", "postal_code", "country")
ENTITIES = ("technicians", "services", "problems", "service_areas")


def files_saying(*texts: str) -> tuple[Any, Any]:
    """A business, a review of each text, and insights that repeat it.

    Other fields have all texts joined.
    """
    everything = " ".join(texts)
    business: dict[str, Any] = dict.fromkeys(TOLD, everything)
    business["address"] = dict.fromkeys(ADDRESS, everything)
    business["service_areas"] = list(texts)
    business["review_url"] = "https://reviews.example/write"
    reviews = [_review_saying(text, number) for number, text in enumerate(texts)]
    return {"business": business, "reviews": reviews}, _insights_saying(*texts)


def _review_saying(text: str, number: int) -> Any:
    return {
        "id": f"{number}",
        "author": text,
        "rating": 1 + number % 5,
        "date": f"2026-01-{number + 1:02}",
        "text": text,
        "source": text,
        "owner_reply": {"text": text, "date": None},
        "mentioned_technicians": [text],
        "mentioned_services": ["e0", text],
    }


def _insights_saying(*texts: str) -> Any:
    everything = " ".join(texts)
    entities = [_entity_saying(text, number) for number, text in enumerate(texts)]
    return {
        "version": 1,
        "generated_at": "2026-01-31T00:00:00Z",
        "review_count": 14,
        "model": everything,
        "summary": everything,
        "pull_quote": everything,
        "overall_sentiment": {
            "score": 0,
            "positive_pct": 50,
            "neutral_pct": 0,
            "negative_pct": 50,
        },
        "aspects": [entity | ASPECT_COUNTS for entity in entities],
        "entities": dict.fromkeys(ENTITIES, entities),
        "topics": [entity | {"summary": entity["label"]} for entity in entities],
        "faq": [{"question": text, "answer": text, "review_ids": []} for text in texts],
    }


def _entity_saying(text: str, number: int) -> Any:
    return {
        "id": f"e{number}",
        "label": text,
        "average_rating": 4,
        "top_phrases": [text, text],
        **FIGURES,
    }


def attacking_files() -> tuple[Any, Any]:
    """Every text attacks; so do ids and addresses that the loader accepts."""
    document, insights = files_saying(*ATTACKS)
    script = 'https://evil.example/"><script>window.attacked=1</script>'
    document["business"] |= {
        "url": script,
        "review_url": script,
        "image_url": 'https://evil.example/"onerror="window.attacked=1',
        "telephone": '+1 555" onmouseover="window.attacked=1',
        "email": "javascript:window.attacked=1",
    }
    handler = '"onmouseover="window.attacked=1\''
    for review in document["reviews"]:
        review["source_url"] = f"https://evil.example/{handler}><script>{review['id']}"
        review["id"] = f"<script>window.attacked={review['id']}</script>"
    return document, insights
