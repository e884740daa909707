"""Four reviews, and one that is not served: what searches and hints are shown with.

They have days that time zones would change, letters that are more than one, a person
and a service that are named in one file alone, and sources of one name in two
spellings.
"""

from lab.small_files import OKAFOR, a_file, loaded, review

PEOPLE = ["Dr. Anneke Brandt", "Wes P., LMT"]
ANA = review(
    "ana",
    date="2025-03-01",
    text="Straße zum Café",
    mentioned_technicians=[OKAFOR],
    source="yelp",
)
BOB = review(
    "bob",
    date="2025-03-01T23:30:00-08:00",
    rating=4.5,
    mentioned_services=["massage"],
    source="é",
)
CY = review("cy", date="2024-12-31T23:59:59+14:00", rating=1, text="ὈΔΥΣΣΕΎΣ, İzmir!")
EVE = review(
    "eve",
    date="2025-03-02T00:10:00Z",
    rating=4,
    mentioned_technicians=PEOPLE,
    source="Yelp",
)
NOT_SERVED = review(
    "dan",
    date="2025-03-02",
    text="Straße",
    mentioned_technicians=[OKAFOR],
    verified=False,
)
FOUR_REVIEWS = a_file(ANA, BOB, CY, EVE, NOT_SERVED)
FOUR_INSIGHTS = {
    "entities": {
        "technicians": [
            {"id": "T1", "label": OKAFOR},
            {"id": "t2", "label": "Dr. Nobody Mentioned"},
        ],
        "services": [
            {"id": "massage", "label": "Massage & Größe"},
            {"id": "gone", "label": "Gone"},
        ],
    },
    "per_review": {
        "cy": {"technicians": ["José Ćalić"], "services": ["x"]},
        "ana": {"services": ["gone"]},
    },
}
FOUR = loaded(FOUR_REVIEWS, FOUR_INSIGHTS)
