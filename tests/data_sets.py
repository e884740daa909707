"""Five data sets of owners for the snapshots: the sample, eight bare reviews, one review, none, and 3,000.

A data set is the content of `reviews.json` and, for the sample, of `insights.json`, the same in every run.
"""

import json
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache
from typing import Any

from page_samples import SAMPLE, SMALLEST

Files = tuple[Any, ...]

BARE_TEXTS = """\

Fast, kind and fair.
Good bread, long queue.

We're regulars — the rye is superb, and nobody minds what it costs, or how long it takes.
Closed on a Saturday morning, although the door said open.

Ok""".splitlines()


def bare_file() -> Any:
    """Eight reviews with the required fields only, some with a text; a business with a name only."""
    stars = (5, 5, 4, 3, 5, 1, 2, 4)
    reviews = [
        {"id": f"b{n}", "author": f"Guest {n}", "rating": stars[n], "date": f"2026-0{n + 1}-10"}
        | ({"text": text} if text else {})
        for n, text in enumerate(BARE_TEXTS)
    ]
    return {"business": {"name": "Ann's Bakery"}, "reviews": reviews}


def one_review_file() -> Any:
    """One review with every field."""
    review = {"id": "only/1", "author": "Zoë Đorđević", "rating": 4.5, "date": "2026-03-01T23:30:00+01:00"}
    review |= {"text": "Lovely people.", "source": "google", "source_url": "https://s.example/1?a=1&b=2"}
    review |= {"owner_reply": {"text": "Thank you!", "date": "2026-03-03"}, "verified": True}
    review |= {"mentioned_technicians": ["Ann & Bo"], "mentioned_services": ["cakes"]}
    review |= {"author_avatar_url": "https://s.example/zoe.png"}
    business = {"name": "Ann's Bakery", "language": "en-GB", "review_policy": "We ask everybody <once>."}
    business |= {"url": "https://ann.example/", "review_url": "https://s.example/write"}
    return {"business": business, "reviews": [review]}


# ---- 3,000 reviews: authors, texts, ratings and sources repeat after different numbers of reviews ----

BAKERY = {
    "name": "Bäckerei Größl & Söhne",
    "description": "Brot und Kuchen aus eigener Backstube, seit 1921 in der Südstadt.",
    "category": "Bäckerei",
    "language": "de",
    "url": "https://groessl.example/",
    "telephone": "+49 89 5550142",
    "address": {"street": "Äußere Maxstraße 12", "locality": "München", "postal_code": "80469"},
    "hours": [{"days": ["Monday", "Tuesday", "Wednesday"], "opens": "06:30", "closes": "18:00"}],
}
PEOPLE = "Anna Jürgen Käthe Mehmet Łukasz Zoë Søren François İpek Đorđe Ömer Heiko Ulrike"
FAMILIES = "Weiß Öztürk Schröder Größl Yıldız Nowak Müller-Lüdenscheidt Kühn Groß Bäcker Çelik"
SENTENCES = (
    "Sehr freundliche Bedienung. | Das Brot schmeckt wie früher! | Leider war um zehn Uhr alles ausverkauft."
    " | Wir kommen seit Jahren her. | Die Brötchen sind außen knusprig und innen weich."
    " | Geht’s noch besser? Kaum. | Für den Preis erwarte ich mehr.",
    "Die Hochzeitstorte war ein Traum. | Am Samstag stand die Schlange bis auf die Straße."
    " | Frau Yıldız berät mit viel Geduld. | Der Kaffee könnte heißer sein."
    " | Parken ist schwierig, mit dem Rad geht es gut. | „Ofenfrisch“ stimmt hier wirklich."
    " | Herr Groß hat uns sogar etwas zurückgelegt. | Das Sauerteigbrot hält eine Woche.",
    "Gerne wieder. | Klare Empfehlung 👍 | Bitte öfter Dinkel! | Ein Stern Abzug für die Wartezeit."
    " | Danke für alles. | Nächstes Mal bestellen wir vor. | Weiter so! | Der Rest ist Geschmackssache."
    " | Der Döner-Laden nebenan kauft auch hier. | Na ja. | Bis bald!",
)
OPENINGS, MIDDLES, ENDINGS = (sentences.split(" | ") for sentences in SENTENCES)
RATINGS = (5, 5, 4, 5, 3, 5, 5, 1, 4, 5, 5, 2, 4, 5, 4.5, 5, 5, 4, 5, 1)
SOURCES = ("google", "google", "yelp", "google", "baecker.example")


@cache
def german_file() -> Any:
    """3,000 reviews in German over fifteen years, oldest first."""
    return {"business": BAKERY, "reviews": [_german_review(number) for number in range(3000)]}


def _german_review(number: int) -> Any:
    day = (date(2011, 11, 28) + timedelta(number * 5475 // 2999)).isoformat()
    sentences = (OPENINGS[number % 7], MIDDLES[number * 5 % 8], ENDINGS[number * 3 % 11])
    text = " ".join(sentences[: 1 + number % 3]) * (9 if number % 211 == 0 else 1)
    rating, reply = RATINGS[number * 7 % 20], {"text": "Vielen Dank für Ihre Mühe!", "date": day}
    return {
        "id": f"g{number:04}",
        "author": f"{PEOPLE.split()[number % 13]} {FAMILIES.split()[number * 4 % 11]}",
        "rating": rating,
        "date": f"{day}T{number % 24:02}:15:00+0{1 + number % 2}:00" if number % 3 else day,
        "text": None if number % 6 == 5 else text,
        "source": SOURCES[number % 5],
        "owner_reply": reply if rating < 3 or number % 17 == 0 else None,
        "mentioned_technicians": [name for name in ("Frau Yıldız", "Herr Groß") if name in text],
        "mentioned_services": ["hochzeitstorten"] if "Hochzeitstorte" in text else [],
    }


def sample_files() -> Files:
    """The sample as the repository ships it."""
    return tuple(json.loads((SAMPLE / f"{name}.json").read_bytes()) for name in ("reviews", "insights"))


DATA_SETS: dict[str, Callable[[], Files]] = {
    "sample": sample_files,
    "bare": lambda: (bare_file(),),
    "one": lambda: (one_review_file(),),
    "none": lambda: (SMALLEST,),
    "german": lambda: (german_file(),),
}
