"""What every explanation says, whichever engine found it and wherever it is read."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from bs4 import BeautifulSoup
from rich.console import Console

from adapters.console.messages import ConsoleMessage
from adapters.console.payload import encode
from adapters.console.render import Renderer
from adapters.slack.render import render as in_slack
from adapters.teams.render import render as in_teams
from adapters.terminal import render as in_terminal
from core.incident import Explanation, Gap, GapReason
from core.messages import IncidentDetails
from core.rca.explain import explain
from core.rca.scene import survey
from core.rca.trajectory import Responsibility
from core.samples import explained_incident
from handlers.investigate_with_model import investigate_with_model
from tests.fakes import block_kit
from tests.fakes.adaptive_card import texts
from tests.fakes.investigation import call, finalise
from tests.fakes.language_model import ScriptedModel
from tests.fakes.outage import change, errors, observations, traffic

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PAGE = Renderer(lambda: NOW, "Marigold Ferries")
DISK_FULL = "FATAL no space left on device"
TIMEOUT = "pool request timed out"
SEEN = observations(
    [
        *(traffic(service) for service in ("shop", "stock")),
        errors("shop", TIMEOUT, since=-8.9),
        errors("stock", DISK_FULL, since=-9.5),
    ],
    changes=[change("C-1", "shop", -9, "Smaller pool", "config"), change("C-2", "press", -9)],
)
FOUND, _ = explain(SEEN)


def slack(details: IncidentDetails) -> str:
    return "\n".join(block_kit.texts(in_slack(details).blocks))


def teams(details: IncidentDetails) -> str:
    return "\n".join(texts(in_teams(details).content["body"]))


def page(details: IncidentDetails) -> str:
    kind, payload = encode(details)
    message = ConsoleMessage(12, "incidents", None, kind, payload, NOW, 12)
    return BeautifulSoup(PAGE.fragment("_message.html", "article", message, details, {}), "html.parser").get_text(" ")


def terminal(details: IncidentDetails) -> str:
    file = io.StringIO()
    Console(file=file, width=400).print(in_terminal(details))
    return file.getvalue()


@pytest.fixture(params=[slack, teams, page, terminal])
def shown(request: pytest.FixtureRequest) -> Callable[[Explanation], str]:
    def text_of(explanation: Explanation) -> str:
        details = IncidentDetails(explained_incident(explanation=explanation))
        return " ".join(request.param(details).replace("\\", "").split()).lower()

    return text_of


async def by_model() -> Explanation:
    replies = [
        call(service="shop"),
        call(service="cart"),
        finalise("The pool is too small.", "shop", evidence=[TIMEOUT]),
    ]
    model = ScriptedModel(lambda _: replies.pop(0), context=100_000, name="local-8b")
    return await investigate_with_model(FOUND, SEEN, survey(SEEN), model=model, samples=0)


@pytest.mark.parametrize("engine", ["evidence", "local-8b"])
async def test_a_cause_is_told_with_what_speaks_for_and_against_it(
    engine: str, shown: Callable[[Explanation], str]
) -> None:
    explanation = FOUND if engine == "evidence" else await by_model()
    assert explanation.engine == engine
    cause = explanation.cause
    assert cause is not None
    assert cause.responsibility is Responsibility.OWN_CODE
    assert [DISK_FULL in each.quote for each in cause.contradicting] == [True]
    text = shown(explanation)
    for said in ("C-1 of shop", "speaks against it", cause.disproof, cause.next_check, "own code", "C-2 of press"):
        assert " ".join(said.split()).lower().rstrip(".") in text


async def test_without_a_culprit_it_is_told_what_was_ruled_out(shown: Callable[[Explanation], str]) -> None:
    calm = observations([traffic("shop"), traffic("cart")], changes=[change("C-2", "press", -9)])
    explanation, _ = explain(calm)
    assert explanation.cause is None
    text = shown(explanation)
    for said in (
        "no culprit found",
        "c-2 of press",
        "shop does not call press",
        "no unusual log message or metric in cart",
    ):
        assert said in text


async def test_what_could_not_be_read_is_told(shown: Callable[[Explanation], str]) -> None:
    assert "loki: failed (is down)" in shown(replace(FOUND, gaps=(Gap("loki", GapReason.FAILED, "is down"),)))
