"""Files whose values overlap on purpose, and questions about them.

Filters admit and refuse often, and letters, days, names and ids are those that differ
in one form and agree in another. Each file is the same in every run.

Sections: values - files - questions.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any
from unicodedata import normalize

from hypothesis import strategies as st

from lab import plain_definition as plain
from lab.four_reviews import PEOPLE
from lab.small_files import ABSENT, OKAFOR, Object, a_file, review

# ---- Values ----

WORDS = ["Straße", "STRASSE", "ẞ", "İzmir", "izmir", "Ὀδυσσεύς", "ὈΔΥΣΣΕΎΣ", "σασ"]
WORDS += ["café", "cafe\u0301", "ﬁne", "fine", "\u212b", "å", "a\u0323\u0307"]
WORDS += ["ạ\u0307", "👍🏽", "ᾳ", '"\\', "</x>", "\r\n\x00", "0"]
DATES = ["2024-12-31", "2024-12-31T23:59:59+14:00", "2025-01-01T00:00:00-12:00"]
DATES += ["2025-01-01", "2025-03-01", "2025-03-01T23:30:00.25-08:00"]
DATES += ["2025-03-01t00:00:00z", "2025-03-02", "0001-01-01", "9999-12-31"]
TECHNICIANS = [OKAFOR, *PEOPLE, "Okafor, Ngozi", "DR. JOSÉ ĆALIĆ"]
TECHNICIANS += ["dr. jose\u0301 c\u0301alic\u0301"]
# The id of a person in the insights.
TECHNICIANS += ["t"]
SERVICE_IDS = ["massage", "Massage", "rehab", "straße", "STRASSE"]
LABELS = ["Massage therapy", "REHAB", "massage", "Größe", "gro\u0308sse"]
ASPECTS = ["wait", "prices", "rehab"]
SUBJECTS = ["wait", "waits", "Waiting", "long wait", "aspects/wait", "topics/waits"]
SUBJECTS += ["technicians/t", "problems/WAIT", "price", "massages", "none", "Größen"]
SOURCES = ["google", "Google", "e\u0301", "É"]
IDS = ["a", "b", "B", "é", "e\u0301", "10", "9", "x y", "x/y", "𝄞", "\ue000", "~"]
TEXTS = [" ".join(WORDS[start : start + 5]) for start in range(len(WORDS))]
# A review may have any of these.
MEMBERS: dict[str, list[Any]] = {
    "rating": [1, 2, 3.5, 4, 4.0, 4.5, 5, 5.0],
    "date": DATES,
    "text": [None, "", *TEXTS],
    "mentioned_technicians": [
        None,
        [],
        *([name] for name in TECHNICIANS),
        TECHNICIANS[2:4],
    ],
    "mentioned_services": [None, [], *([id] for id in SERVICE_IDS), SERVICE_IDS[1:3]],
    "verified": [ABSENT, True, True, None, False],
    "owner_reply": [ABSENT, None, {"text": "Thanks"}],
    "source": [ABSENT, None, *SOURCES],
    "x": [ABSENT, None, {"y": [1.5, None]}],
    # Of another service.
    "page_url": [ABSENT, None, "https://another.example/"],
}

# ---- Files ----


def varied_files(seed: int) -> tuple[Object, Object]:
    """Files of two to eleven reviews, and of insights about half of them."""
    chosen = Random(seed)
    ids = chosen.sample(IDS, 2 + seed % 10)
    reviews = [_varied_review(id, chosen) for id in ids]
    annotations = {id: _varied_annotation(chosen) for id in ids[::2]}
    insights = {
        "aspects": [
            {"id": "wait", "label": LABELS[0]},
            {"id": "prices", "label": LABELS[1]},
            {"id": "rehab", "label": LABELS[2]},
        ],
        "topics": [
            {
                "id": "waits",
                "label": "Waiting, in the Größe",
                "mention_count": 7,
                "example_review_ids": ids[:2],
            }
        ],
        "entities": {
            "technicians": [{"id": "t", "label": chosen.choice(TECHNICIANS)}],
            "services": [_varied_service(chosen) for _ in range(3)],
            "problems": [{"id": "wait", "label": "Long waiting"}],
        },
        # And about a review that is not there.
        "per_review": annotations | {"unknown": {}},
    }
    return a_file(*reviews), insights


def _varied_review(id: str, chosen: Random) -> Object:
    members = {name: chosen.choice(values) for name, values in MEMBERS.items()}
    written = {name: value for name, value in members.items() if value is not ABSENT}
    return review(id) | written


def _varied_annotation(chosen: Random) -> Object:
    return {
        "technicians": [chosen.choice(TECHNICIANS)],
        "services": SERVICE_IDS[:2],
        "aspects": [_varied_aspect(chosen) for _ in range(3)],
        "problems": [chosen.choice(["wait", "Prices"])],
    }


def _varied_aspect(chosen: Random) -> Object:
    sentiment = chosen.choice(plain.SENTIMENTS)
    return {"id": chosen.choice(ASPECTS), "sentiment": sentiment}


def _varied_service(chosen: Random) -> Object:
    return {"id": chosen.choice(SERVICE_IDS), "label": chosen.choice(LABELS)}


# ---- Questions ----

FORMS: list[Callable[[str], str]] = [str, str.upper, str.lower, str.swapcase]
FORMS += [partial(normalize, "NFC"), partial(normalize, "NFD")]


def in_other_words(values: list[str]) -> st.SearchStrategy[str]:
    """One of `values`, in any case, with composed or decomposed accents."""
    return st.sampled_from([form(value) for value in values for form in FORMS])


PARTS = [*"aefimnorstzσ0 ", "ss", "cafe", "izmir", "\u0301e", "e s"]
LEAST_AND_MOST = st.sampled_from(["1", "3.49", "3.5", "4.5", "5"])
DAYS = st.sampled_from([date[:10] for date in DATES])
PARTS_OF_NAMES = ["dr", "Okafor", "Okaf", "LMT.", "wes p", "t"]
# By parameter.
VALUES: dict[str, st.SearchStrategy[str]] = {
    "query": in_other_words([*WORDS, *PARTS]),
    "rating": st.sampled_from(["1", "1.0", "2", "5", "5.00"]),
    "min_rating": LEAST_AND_MOST,
    "max_rating": LEAST_AND_MOST,
    "since": DAYS,
    "until": DAYS,
    "mentions": in_other_words([*SUBJECTS, *LABELS, *TECHNICIANS, "dr"]),
    "sentiment": st.sampled_from(plain.SENTIMENTS),
    "replied": st.sampled_from(["true", "false"]),
    "mentions_technician": in_other_words([*TECHNICIANS, *PARTS_OF_NAMES]),
    "mentions_service": in_other_words([*SERVICE_IDS, *LABELS, "GRÖSSE", "none"]),
    "source": in_other_words([*SOURCES, "unknown", "goog"]),
    "limit": st.sampled_from(["1", "2", "3", "20", "100", "5.0"]),
    "offset": st.sampled_from(["0", "-0", "1", "2", "7", "1000000000"]),
}


@st.composite
def questions(draw: st.DrawFn) -> dict[str, str]:
    """At most three parameters: with more, hardly any search would find a review."""
    names = draw(st.sets(st.sampled_from(list(VALUES)), max_size=3))
    return {name: draw(VALUES[name]) for name in sorted(names)}
