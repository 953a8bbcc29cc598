"""What every incident and its explanation say, whichever engine found it and wherever it is read."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from html import unescape

import pytest
from bs4 import BeautifulSoup
from rich.console import Console

from adapters.console.console import Renderer
from adapters.console.messages import ConsoleMessage, encode
from adapters.slack.render import render as in_slack
from adapters.teams.render import RATINGS
from adapters.teams.render import render as in_teams
from adapters.terminal import render as in_terminal
from core.knowledge.markdown import BlockKind, blocks, table_rows
from core.model.findings import Explanation, Gap, GapReason
from core.model.language_model import Responsibility
from core.model.message_view import (
    MORE,
    RIGHT_OR_WRONG,
    Line,
    Listing,
    Part,
    Sources,
    Statements,
    link_text,
)
from core.model.messages import ButtonAction, IncidentDetails, Message, Notice
from core.model_calls.choice import Skill
from core.model_calls.metered_model import Limits
from core.rca.explain import explain
from core.rca.incident_signals import survey
from core.views import message_view
from handlers.incidents.investigate_with_model import ClaimedExplanation, investigate_with_model
from tests.cases import every_case
from tests.fakes import adaptive_card, block_kit
from tests.fakes.investigation import call, finalise
from tests.fakes.language_model import ScriptedModel
from tests.fakes.outage import change, errors, observations, traffic
from tests.samples import SAMPLES, explained_incident

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PAGE = Renderer(lambda: NOW, "Marigold Ferries")
SLOW_STOCK = "slow query took 3000 ms"
TIMEOUT = "pool request timed out"
SEEN = observations(
    [
        *(traffic(service) for service in ("shop", "stock")),
        errors("shop", TIMEOUT, since=-8.9),
        errors("stock", SLOW_STOCK, since=-9.5),
    ],
    changes=[change("C-1", "shop", -9, "Smaller pool", "config"), change("C-2", "press", -9)],
)


@cache
def explained() -> Explanation:
    return explain(SEEN)[0]


def slack(details: Message) -> str:
    return unescape(block_kit.in_utc("\n".join(block_kit.texts(in_slack(details).blocks))))


def teams(details: Message) -> str:
    return adaptive_card.in_utc("\n".join(adaptive_card.texts(in_teams(details).content["body"])))


def page(details: Message) -> str:
    kind, payload = encode(details)
    message = ConsoleMessage(12, "incidents", None, kind, payload, NOW, 12)
    return BeautifulSoup(PAGE.fragment("_message.html", "article", message, details, {}), "html.parser").get_text(" ")


def terminal(details: Message) -> str:
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
    blamed = {"change": "C-1", "responsibility": "own code", "evidence": [TIMEOUT]}
    replies = [
        call(service="shop"),
        call("list_changes", service="every service"),
        finalise("C-1 of shop made the pool too small.", "shop", **blamed),
    ]
    model = ScriptedModel(lambda _: replies.pop(0), context=100_000, name="local-8b")
    found = await investigate_with_model(
        ClaimedExplanation(replace(explained(), hypotheses=()), None),
        SEEN,
        survey(SEEN),
        model=model,
        skill=Skill(0.9, tools=0.9),
        progress=silent,
        limits=Limits(samples=0),
    )
    return found.explanation


async def silent(_: str) -> None:
    """Nobody looks on."""


@pytest.mark.parametrize("engine", ["evidence", "local-8b"])
async def test_a_cause_is_told_with_what_speaks_for_and_against_it(
    engine: str, shown: Callable[[Explanation], str]
) -> None:
    explanation = explained() if engine == "evidence" else await by_model()
    assert explanation.engine == engine
    cause = explanation.cause
    assert cause is not None
    assert cause.responsibility is Responsibility.OWN_CODE
    assert [SLOW_STOCK in each.quote for each in cause.contradicting] == [True]
    text = shown(explanation)
    for said in ("C-1 of shop", "evidence against it", cause.disproof, cause.next_check, "own code", "C-2 of press"):
        assert " ".join(said.split()).lower().rstrip(".") in text


async def test_without_a_culprit_it_is_told_what_was_ruled_out(shown: Callable[[Explanation], str]) -> None:
    calm = observations([traffic("shop"), traffic("cart")], changes=[change("C-2", "press", -9)])
    explanation, _ = explain(calm)
    assert explanation.cause is None
    text = shown(explanation)
    for said in (
        "no cause found",
        "c-2 of press",
        "not checked: logs of press, metrics of press",
        "no unusual log message",
    ):
        assert said in text


async def test_what_could_not_be_read_is_told(shown: Callable[[Explanation], str]) -> None:
    assert "loki: failed (is down)" in shown(replace(explained(), gaps=(Gap("loki", GapReason.FAILED, "is down"),)))


VIEWS = {name: message_view(message) for name, message in SAMPLES.items()}


@pytest.mark.parametrize("draw", [slack, teams, page, terminal])
def test_every_chat_draws_all_that_the_view_holds(draw: Callable[[Message], str]) -> None:
    missing: list[str] = []
    for name, view in VIEWS.items():
        said = [view.headline, view.state, view.progress, *(text for part in view.parts for text in said_by(part))]
        text = _bare(draw(SAMPLES[name]))
        missing += [f"{name}: {each}" for each in map(_bare, said) if each not in text]
    assert missing == []


def said_by(part: Part) -> Iterator[str]:
    """Yield the texts of a part that every chat shows."""
    match part:
        case Line():
            yield from (part.label, part.text, part.code, part.quote, part.badge.text if part.badge else "")
            yield from (piece for piece in part.verbatim if isinstance(piece, str))
            yield from map(link_text, part.links)
        case Listing(title, entries, badge=badge):
            yield from (title, badge.text if badge else "", *(text for each in entries for text in said_by(each)))
        case Statements(sentences, title=title):
            yield title
            for block in (block for each in sentences for block in blocks(each.text)):
                is_table = block.kind is BlockKind.TABLE
                yield from (cell for row in table_rows(block.text) for cell in row) if is_table else (block.text,)
        case Sources(citations, title):
            yield from (title, *(each.name for each in citations), *(each.staleness for each in citations))
        case _:
            pass


@every_case("name", VIEWS)
def test_every_chat_offers_what_the_view_offers_and_no_more(name: str) -> None:
    view = VIEWS[name]
    in_sight = [each.label for each in view.buttons] + ([RIGHT_OR_WRONG] if view.judging else [])
    blocks = in_slack(SAMPLES[name]).blocks
    assert block_kit.in_sight(blocks) == in_sight
    labels = [each.label for judged in view.judging for each in judged.controls]
    labels += [each.label for each in (*view.buttons, *view.more)]
    assert sorted(block_kit.buttons(blocks)) == sorted(labels)

    actions = in_teams(SAMPLES[name]).content.get("actions", [])
    # Teams shows thumbs of its own, so that ours are behind the dots.
    rated = [each.label for each in view.buttons if each.verdict in RATINGS]
    behind = [each["title"] for each in actions if each.get("mode") == "secondary"]
    assert behind == [*rated, *(each.label for each in view.more)]
    visible = [each for each in in_sight if each not in rated]
    assert [each["title"] for each in actions if each.get("mode") != "secondary"] == visible

    kind, payload = encode(SAMPLES[name])
    message = ConsoleMessage(12, "incidents", None, kind, payload, NOW, 12)
    html = BeautifulSoup(PAGE.fragment("_message.html", "article", message, SAMPLES[name], {}), "html.parser")
    pressed = {str(button["value"]) for button in html.select("button")}
    assert pressed == {str(verdict) for verdict in view.subjects if verdict is not ButtonAction.DETAILS}
    menus = [str(menu.get("aria-label") or menu.get_text()) for menu in html.select("details.menu > summary")]
    assert menus == ([RIGHT_OR_WRONG] if view.judging else []) + ([MORE] if view.more else [])


@pytest.mark.parametrize("name", ["answer while a model still chooses", "work that can be stopped"])
def test_every_chat_offers_to_stop_a_model(name: str) -> None:
    stop = block_kit.buttons(in_slack(SAMPLES[name]).blocks)["Stop"]
    (action,) = [each for each in in_teams(SAMPLES[name]).content["actions"] if each["title"] == "Stop"]
    kind, payload = encode(SAMPLES[name])
    message = ConsoleMessage(12, "help", None, kind, payload, NOW, 12)
    html = BeautifulSoup(PAGE.fragment("_message.html", "article", message, SAMPLES[name], {}), "html.parser")
    assert block_kit.subject(stop) == action["data"]["subject"] == "slack:C0ASK:1773480600.000100"
    assert "stop" in {str(button["value"]) for button in html.select("button")}


def test_every_chat_links_the_incidents_of_a_handover() -> None:
    handover = SAMPLES["handover"]
    assert isinstance(handover, Notice)
    linked = [url for url in handover.links if url]
    assert len(linked) == 4, "three incidents, one of them also under Watch"
    blocks = in_slack(handover).blocks
    assert block_kit.problems("text", blocks) == []
    assert re.findall(r"<(\S+)\|Open>", "\n".join(block_kit.texts(blocks))) == linked
    runs = [run for block in in_teams(handover).content["body"] for run in block["inlines"]]
    assert [run["selectAction"]["url"] for run in runs if run["text"] == "Open"] == linked
    kind, payload = encode(handover)
    message = ConsoleMessage(12, "help", None, kind, payload, NOW, 12)
    html = BeautifulSoup(PAGE.fragment("_message.html", "article", message, handover, {}), "html.parser")
    assert [link["href"] for link in html.select(".notice a")] == linked
    [shown] = html.select(".notice .lines")
    assert [line.removesuffix(" · Open") for line in shown.get_text().splitlines()] == [
        line for line, _ in handover.lines
    ]


def _bare(text: str) -> str:
    """Return the text without markup and white space."""
    return re.sub(r"[\s`*_│]", "", text)
