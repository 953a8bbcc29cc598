from __future__ import annotations

import pytest

from core.answering.caveats import Standing, claims, pages_titled
from core.knowledge.passages import passages_of
from core.model.document import Document, Passage
from core.model.team import Team

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


@pytest.mark.parametrize(
    ("thing", "standing", "owner"),
    [
        ("Kafka brokers", Standing.OWNED, "Platform"),
        ("certificates edge", Standing.OWNED, "Platform"),
        ("TLS certificates", Standing.PASSED_ON, "Platform"),
        ("Vault", Standing.PASSED_ON, "Identity"),
        ("slow query", Standing.PASSED_ON, "the team of the service"),
        ("DNS", Standing.MENTIONED, "Platform"),
    ],
)
def test_the_firmest_line_comes_first(thing: str, standing: Standing, owner: str) -> None:
    first = claims(thing, TEAMS)[0]
    assert (first.standing, first.owner) == (standing, owner)
    assert owner in first.sentence


@pytest.mark.parametrize("thing", ["Jenkins", "Kafka consumers", "red tests", "secrets", "the", ""])
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
