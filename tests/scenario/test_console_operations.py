"""The pages for operators."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from bs4 import BeautifulSoup

from adapters.console.console import SourceStatus
from core.model.badge import Estimator, Evaluation, Outcome, Prediction, PredictionKind
from core.model.conversation import MessageReference, Place, Platform
from core.model.document import Document
from core.model.findings import Gap, GapReason
from tests import samples as messages
from tests.fakes.calibrators import calibrator
from tests.fakes.console_site import Site
from tests.scenario.console import http, page, site

__all__ = ["http", "site"]  # the fixtures

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


def text(html: BeautifulSoup) -> str:
    main = html.select_one("main")
    assert main is not None
    return " ".join(main.get_text(" ").split())


def claim(
    number: int,
    kind: PredictionKind = PredictionKind.ANSWER,
    *,
    correct: bool | None = None,
    subject: str = "console:1",
) -> tuple[Prediction, Outcome | None]:
    prediction = Prediction(
        f"p{number}", kind, subject, f"Claim {number}.", Evaluation(0.8, 0.8), "evidence", "1", NOW, None, None
    )
    return prediction, None if correct is None else Outcome(prediction.id, correct, "slack:U1", NOW)


# --- incidents -------------------------------------------------------------------------------------------------------


async def test_without_incidents_the_page_says_how_the_first_one_comes(http: aiohttp.ClientSession) -> None:
    assert "/webhooks/alertmanager" in text(await page(http, "/incidents"))


async def test_what_investigations_could_not_read_is_counted_by_tool(site: Site, http: aiohttp.ClientSession) -> None:
    for id_, reason in (("i1", GapReason.TIMED_OUT), ("i2", GapReason.TIMED_OUT), ("i3", GapReason.REFUSED)):
        found = messages.explanation(gaps=(Gap("loki", reason, id_),))
        site.happen(messages.incident(id=id_, group_key=id_, explanation=found))
    assert "loki in 3 incidents: timed out 2, access refused 1" in text(await page(http, "/incidents"))


async def test_open_incidents_come_before_resolved_ones(site: Site, http: aiohttp.ClientSession) -> None:
    later = messages.START + timedelta(hours=1)
    site.happen(replace(messages.resolved_incident(), id="resolved", title="Resolved one", opened_at=later))
    site.happen(messages.incident(id="open", title="Open one"))
    html = await page(http, "/incidents")
    assert [link.get_text() for link in html.select("tbody th a")] == ["Open one", "Resolved one"]


async def test_an_incident_shows_all_that_is_known_of_it(site: Site, http: aiohttp.ClientSession) -> None:
    place = Place(Platform.CONSOLE, "incidents")
    site.happen(messages.explained_incident(message=MessageReference(place, "7")))
    html = await page(http, "/incidents/incident-1")
    shown = text(html)
    for expected in (
        "payment-gateway p99 latency above 2 s",
        "Payments",
        "on call: Asha Brandt, Mateo Silvestri",
        "lowered the maximum pool size",
        "HikariPool-1 - Connection is not available",
        "Latency stays high although the pool has free connections.",
        "Deployment of web-store 11.2",
        "payment-gateway runs out of connections",
        "config-4711 applied",
        "It fixed 11 of 12 similar incidents.",
        "alertname=PaymentGatewayLatencyHigh",
    ):
        assert expected in shown, expected
    assert html.select('a[href="/?channel=incidents#m-7"]')


async def test_every_state_of_an_incident_has_a_page(
    site: Site, http: aiohttp.ClientSession, subtests: pytest.Subtests
) -> None:
    for name, message in messages.SAMPLES.items():
        with subtests.test(name=name):
            incident = getattr(message, "incident", messages.incident())
            site.happen(incident)
            assert incident.title in text(await page(http, f"/incidents/{incident.id}"))
            assert incident.title in text(await page(http, "/incidents"))


# --- sources ---------------------------------------------------------------------------------------------------------


async def test_sources_show_their_size_age_and_failures(site: Site, http: aiohttp.ClientSession) -> None:
    site.sources.append(
        SourceStatus("wiki", "folder wiki", 12, NOW - timedelta(days=3), "The folder /wiki <gone> is not there.")
    )
    site.sources.append(SourceStatus("chat", "chat threads", 0, None, left_out=("a.pdf: It is <odd>.",)))
    rows = [" ".join(row.get_text(" ").split()) for row in (await page(http, "/sources")).select("tbody tr")]
    assert rows == [
        "handbook folder documents fresh 60 5 min ago",
        "wiki folder wiki failing The folder /wiki <gone> is not there. 12 3 d 0 h ago",
        "chat chat threads never read 1 left out a.pdf: It is <odd>. 0 never",
    ]


# --- documents -------------------------------------------------------------------------------------------------------


async def test_a_document_is_shown_at_its_heading_with_the_quote_marked(
    site: Site, http: aiohttp.ClientSession
) -> None:
    await site.file(
        Document("handbook/cache.md", "handbook", "ci-cd", "The cache", "## When full\n\nBust it. Then rest.")
    )
    html = await page(http, "/documents/handbook/cache.md?channel=help&quote=Bust+it.")
    assert html.select("h2#when-full")
    assert [mark.get_text() for mark in html.select(".prose mark")] == ["Bust it."]


async def test_a_document_is_shown_only_to_the_channel_that_may_read_it(
    site: Site, http: aiohttp.ClientSession
) -> None:
    readers = frozenset({"channel:vault"})
    await site.file(
        Document("handbook/keys.md", "handbook", "vault", "Keys", "In the heliotrope safe.", readers=readers)
    )
    assert "heliotrope" in text(await page(http, "/documents/handbook/keys.md?channel=vault"))
    for path in (
        "/documents/handbook/keys.md",
        "/documents/handbook/keys.md?channel=help",
        "/documents/handbook/keys.md?channel=",
        "/documents/handbook/keys.md?channel=public",
    ):
        async with http.get(path) as response:
            assert response.status == 404
            assert "heliotrope" not in await response.text()


# --- predictions -----------------------------------------------------------------------------------------------------


async def test_predictions_show_what_became_of_them(site: Site, http: aiohttp.ClientSession) -> None:
    async with http.post("/console/messages", data={"channel": "help", "text": "How do I roll back?"}):
        pass
    site.happen(messages.explained_incident())
    site.store.claims = {
        "p1": claim(1, correct=False),
        "p2": claim(2, PredictionKind.OWNER, subject="incident-1"),
    }
    rows = [" ".join(row.get_text(" ").split()) for row in (await page(http, "/predictions")).select("tbody tr")]
    assert rows == [
        "answer Claim 1. How do I roll back? no percentage wrong 09:30 09:30",
        "owner Claim 2. payment-gateway p99 latency above 2 s no percentage not judged 09:30",
    ]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", {"Claim 1.", "Claim 2.", "Claim 3."}),
        ("?outcome=wrong", {"Claim 1."}),
        ("?outcome=right", {"Claim 2."}),
        ("?outcome=open", {"Claim 3."}),
        ("?kind=cause", {"Claim 3."}),
        ("?kind=cause&outcome=wrong", set()),
        ("?kind=nonsense", set()),
    ],
)
async def test_predictions_can_be_filtered(
    site: Site, http: aiohttp.ClientSession, query: str, shown: set[str]
) -> None:
    site.store.claims = {
        "p1": claim(1, correct=False),
        "p2": claim(2, correct=True),
        "p3": claim(3, PredictionKind.CAUSE),
    }
    html = await page(http, f"/predictions{query}")
    assert {row.get_text().strip().split(" ", 1)[1] for row in html.select("tbody th")} == shown


async def test_the_state_of_each_calibrator_is_shown(site: Site, http: aiohttp.ClientSession) -> None:
    site.store.claims = {f"p{n}": claim(n, PredictionKind.OWNER, correct=n > 2) for n in range(8)}
    site.store.claims["c"] = claim(9, PredictionKind.CAUSE)
    site.store.calibrators[Estimator(PredictionKind.CAUSE, "evidence", "1")] = calibrator(
        0.8, 0.8, outcomes=41, version="7"
    )
    panels = [" ".join(p.get_text(" ").split()) for p in (await page(http, "/predictions")).select(".records .panel")]
    assert panels == [
        "Causes evidence engine Calibrated on 41 outcomes Version 7, fitted 1 Mar . Measured by 1.",
        "Owners evidence engine Not calibrated yet 8 of the 30 labelled outcomes that a percentage needs. 5 right 3 wrong Measured by 1.",
    ]


async def test_an_estimator_whose_badges_no_longer_hold_is_shown_with_its_figures(
    site: Site, http: aiohttp.ClientSession
) -> None:
    for number in range(60):
        made, outcome = claim(number, PredictionKind.OWNER, correct=number % 2 == 0)
        site.store.claims[made.id] = replace(made, probability=0.9), outcome
    html = await page(http, "/predictions")
    (panel,) = html.select(".records .panel")
    said = " ".join(panel.get_text(" ").split())
    assert "Drifted: the last 60 promised 90.0 % and 50.0 % turned out right; off by 40.0 %" in said
    assert "ECE 0.400" in said
    assert "by chance alone" in said
    assert "Brier 0.410" in said
    assert "AUROC 0.500" in said
    rows = [[cell.text for cell in row.select("td")] for row in panel.select(".reliability tbody tr")]
    assert rows == [["90.0 %", "50.0 %", "37.7 % to 62.3 %", "60"]]


async def test_without_a_percentage_there_is_no_figure(site: Site, http: aiohttp.ClientSession) -> None:
    site.store.claims = {f"p{number}": claim(number, correct=True) for number in range(5)}
    html = await page(http, "/predictions")
    assert not html.select(".reliability")
    assert "%" not in " ".join(panel.get_text() for panel in html.select(".records .panel"))
