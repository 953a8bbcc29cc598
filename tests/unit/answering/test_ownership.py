from __future__ import annotations

from core.answering.caveats import claims, pages_titled
from core.knowledge.passages import passages_of
from core.model.document import Document, Passage
from core.model.team import Team
from tests.cases import every_case

PLATFORM = Team(
    "platform",
    "Platform",
    document="""# Platform

## We own

- **edge**: routes, public certificates
- Kafka brokers

## We do not own

- Slow queries: the team of the service.
- Vault: identity (secrets).
- Red tests.

## Symptoms that belong to us

DNS failures, certificates that expired on Kafka brokers""",
)
IDENTITY = Team(
    "identity",
    "Identity",
    document="## What we do\n\nKeys.\n\n## Not ours\n\n- TLS certificates at the edge: platform.",
)
TEAMS = (PLATFORM, IDENTITY)


@every_case(
    ("thing", "is_own", "owner"),
    [
        ("Kafka brokers", True, "Platform"),
        ("certificates edge", True, "Platform"),
        ("TLS certificates", False, "Platform"),
        ("Vault", False, "Identity"),
        ("slow query", False, "the team of the service"),
    ],
)
def test_a_line_of_what_a_team_owns_comes_before_those_of_what_it_passes_on(
    thing: str, is_own: bool, owner: str
) -> None:
    first = claims(thing, TEAMS)[0]
    assert (first.is_own, first.owner) == (is_own, owner)
    assert owner in first.sentence


@every_case("thing", ["Jenkins", "DNS", "Kafka consumers", "red tests", "secrets", "the", ""])
def test_a_line_without_every_word_or_without_an_owner_claims_nothing(thing: str) -> None:
    assert claims(thing, TEAMS) == []


def page(number: int, title: str, text: str, owner: str = "platform") -> list[Passage]:
    return passages_of(Document(f"wiki/{number}", "wiki", "wiki", title, text, owner=owner))


def test_a_page_is_found_by_the_words_of_its_title_if_it_has_an_owner() -> None:
    found = [
        *page(1, "Node drains", "Drain it."),
        *page(2, "Node drains, an older page", "Drain nodes.", owner=""),
        *page(3, "Upgrades", "Node drains."),
    ]
    assert pages_titled("wiki page node drains", found) == found[:1]
    assert pages_titled("wiki page", found) == []
