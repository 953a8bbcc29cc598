"""The chat on the local page: what people send arrives, and what Plumbline says is shown at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest
from bs4 import BeautifulSoup

from adapters.console import feed
from core import samples as messages
from core.conversation import MessageReference, Place, Platform
from core.incident import Stage
from core.messages import AnswerMessage, IncidentMessage, Notice, Verdict
from tests.fakes.console_site import Site, console_site

HELP = Place(Platform.CONSOLE, "help")
INCIDENTS = Place(Platform.CONSOLE, "incidents")
LIVE = {"HX-Request": "true"}
PATIENCE = 10.0  # seconds until what is waited for must have come


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with console_site() as served:
        yield served


@pytest.fixture
async def http(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(site.address, timeout=aiohttp.ClientTimeout(total=PATIENCE)) as session:
        yield session


class Page:
    """The server-sent events of an open page."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self, name: str = "message") -> tuple[str, BeautifulSoup]:
        """The id and the content of the next event of that name. Raises EOFError when the server has hung up."""
        while True:
            block = (await self._response.content.readuntil(b"\n\n")).decode()
            if not block:
                raise EOFError(name)
            fields = [line.partition(": ") for line in block.splitlines()]
            event = {key: value for key, _, value in fields if key in ("event", "id")}
            if event.get("event") == name:
                data = "\n".join(value for key, _, value in fields if key == "data")
                return event.get("id", ""), BeautifulSoup(data, "html.parser")


@asynccontextmanager
async def opened(http: aiohttp.ClientSession, channel: str = "help", last_event_id: str = "") -> AsyncIterator[Page]:
    """Load a page and connect as its script does."""
    columns = (await page(http, f"/?channel={channel}")).select_one("[sse-connect]")
    assert columns is not None
    headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
    async with http.get(str(columns["sse-connect"]), headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        yield Page(response)


async def page(http: aiohttp.ClientSession, path: str) -> BeautifulSoup:
    async with http.get(path) as response:
        assert response.status == 200, await response.text()
        return BeautifulSoup(await response.text(), "html.parser")


async def send(http: aiohttp.ClientSession, path: str, **form: str) -> str:
    async with http.post(path, data=form, headers=LIVE) as response:
        assert response.status in (200, 204), await response.text()
        return await response.text()


def swaps(html: BeautifulSoup) -> list[str]:
    """Where each part of an event goes."""
    return [str(part["hx-swap-oob"]) for part in html.select("[hx-swap-oob]")]


def thread_of(reference: MessageReference) -> Place:
    return replace(reference.place, thread=reference.message_id)


# --- asking ----------------------------------------------------------------------------------------------------------


async def test_a_message_is_kept_and_handed_in_as_a_question(site: Site, http: aiohttp.ClientSession) -> None:
    await send(http, "/console/messages", channel="help", text="  How do I\r\nroll back?\x00  ")
    (message,) = site.messages.all()
    (question,) = site.inbox.questions
    assert message.payload == {"name": "You", "text": "How do I\nroll back?"}
    assert question.id == f"console:{message.id}"
    assert question.text == "How do I\nroll back?"
    assert question.place == replace(HELP, thread=str(message.id))
    assert question.asked_at == site.clock.now()


async def test_a_public_channel_may_read_what_is_public_and_a_private_one_its_own_as_well(
    site: Site, http: aiohttp.ClientSession
) -> None:
    await send(http, "/console/messages", channel="help", text="public?")
    await send(http, "/console/messages", channel="vault", text="private?")
    public, private = [question.audience for question in site.inbox.questions]
    assert public.may_read(frozenset({"public"}))
    assert not public.may_read(frozenset({"channel:vault"}))
    assert private.may_read(frozenset({"channel:vault"}))
    assert not private.may_read(frozenset({"channel:incidents"}))


async def test_a_follow_up_stays_in_its_thread(site: Site, http: aiohttp.ClientSession) -> None:
    await send(http, "/console/messages", channel="help", text="first")
    root = site.messages.all()[0]
    reply = await site.post(replace(HELP, thread=str(root.id)), Notice("an answer"))
    await send(http, "/console/messages", channel="help", thread=reply.message_id, text="and then?")
    assert site.messages.all()[-1].thread == root.id
    assert site.inbox.questions[-1].place.thread == str(root.id)


async def test_a_thread_of_another_channel_cannot_be_replied_to(site: Site, http: aiohttp.ClientSession) -> None:
    root = await site.post(Place(Platform.CONSOLE, "vault"), Notice("secret"))
    form = {"channel": "help", "thread": root.message_id, "text": "what was that?"}
    async with http.post("/console/messages", data=form) as response:
        assert response.status == 404
    assert site.inbox.questions == []


async def test_a_browser_without_script_is_led_back_to_its_message(site: Site, http: aiohttp.ClientSession) -> None:
    form = {"channel": "help", "text": "hello"}
    async with http.post("/console/messages", data=form, allow_redirects=False) as response:
        assert (response.status, response.headers["Location"]) == (303, "/?channel=help#m-1")
    html = await page(http, "/?channel=help")
    said = html.select_one("#m-1 .said")
    assert said is not None
    assert said.get_text() == "hello"


async def test_an_empty_channel_offers_examples(http: aiohttp.ClientSession) -> None:
    html = await page(http, "/?channel=help")
    assert [chip["value"] for chip in html.select(".chip")] == ["How do I roll back a canary?", "When is the freeze?"]


async def test_a_question_is_shown_as_being_worked_on_until_it_has_waited_too_long(
    site: Site, http: aiohttp.ClientSession
) -> None:
    await send(http, "/console/messages", channel="help", text="hello")
    assert (await page(http, "/?channel=help")).select(".awaited")
    site.clock.advance(300)
    assert not (await page(http, "/?channel=help")).select(".awaited")


# --- reading ---------------------------------------------------------------------------------------------------------


async def test_messages_stand_in_order_with_their_threads_below_them(site: Site, http: aiohttp.ClientSession) -> None:
    first = await site.post(INCIDENTS, Notice("first"))
    await site.post(INCIDENTS, Notice("second"))
    await site.post(thread_of(first), Notice("reply to first"))
    await site.post(HELP, Notice("elsewhere"))
    html = await page(http, "/?channel=incidents")
    threads = [[notice.get_text() for notice in thread.select(".notice")] for thread in html.select(".thread")]
    assert threads == [["first", "reply to first"], ["second"]]


async def test_only_the_channels_of_this_page_are_listed_and_private_ones_are_marked(
    http: aiohttp.ClientSession,
) -> None:
    html = await page(http, "/")
    links = html.select('nav[aria-label="Channels"] a')
    assert [link.get_text(strip=True) for link in links] == ["help", "incidents", "vault"]
    assert [bool(link.select('[aria-label="private"]')) for link in links] == [False, False, True]


async def test_older_messages_are_a_link_away(site: Site, http: aiohttp.ClientSession) -> None:
    for number in range(60):
        await site.post(HELP, Notice(f"notice {number}"))
    latest = await page(http, "/?channel=help")
    assert [n.get_text() for n in latest.select(".notice")] == [f"notice {number}" for number in range(10, 60)]
    older_link = latest.select_one(".older a")
    assert older_link is not None
    older = await page(http, str(older_link["href"]))
    assert [n.get_text() for n in older.select(".notice")] == [f"notice {number}" for number in range(10)]
    assert not older.select("[sse-connect]")


async def test_messages_can_be_read_as_json(site: Site, http: aiohttp.ClientSession) -> None:
    root = await site.post(HELP, Notice("hello"))
    await site.post(thread_of(root), AnswerMessage(messages.answer()))
    async with http.get("/console/messages.json?channel=help") as response:
        first, second = (await response.json())["messages"]
    assert (first["id"], first["thread"], first["kind"], first["payload"]["text"]) == (1, None, "notice", "hello")
    assert (second["thread"], second["kind"]) == (1, "answer")
    assert second["payload"]["answer"]["citations"][0]["document_id"] == "handbook/deployment/rolling-back.md"


# --- live ------------------------------------------------------------------------------------------------------------


async def test_what_is_said_arrives_on_an_open_page(site: Site, http: aiohttp.ClientSession) -> None:
    async with opened(http) as opened_page:
        await send(http, "/console/messages", channel="help", text="hello")
        _, html = await opened_page.next()
        assert swaps(html) == ["beforeend:#messages"]
        assert html.select(".thread#root-1 #m-1 .said")
        await site.post(replace(HELP, thread="1"), Notice("good morning"))
        _, html = await opened_page.next()
        assert swaps(html) == ["beforeend:#t-1"]
        assert html.select("#m-2 .notice")[0].get_text() == "good morning"


async def test_an_edit_replaces_the_message_where_it_stands(site: Site, http: aiohttp.ClientSession) -> None:
    reference = await site.post(INCIDENTS, IncidentMessage(messages.incident()))
    async with opened(http, "incidents") as opened_page:
        await site.messenger.edit(
            reference, IncidentMessage(messages.incident(stage=Stage.EXPLAINING, owner=messages.owner()))
        )
        _, html = await opened_page.next()
        assert swaps(html) == ["true"]
        assert html.select("article#m-1")
        assert "Payments" in html.get_text()


async def test_a_page_that_was_away_is_told_what_it_missed_and_nothing_twice(
    site: Site, http: aiohttp.ClientSession
) -> None:
    async with opened(http) as opened_page:
        await site.post(HELP, Notice("seen"))
        event_id, _ = await opened_page.next()
        await site.post(HELP, Notice("missed"))
        await site.messenger.edit(MessageReference(HELP, "1"), Notice("changed"))
    async with opened(http, last_event_id=event_id) as again:
        _, html = await again.next()
        assert swaps(html) == ["true", "beforeend:#messages"]
        assert [notice.get_text() for notice in html.select(".notice")] == ["changed", "missed"]


async def test_a_page_is_not_told_what_it_was_loaded_with(site: Site, http: aiohttp.ClientSession) -> None:
    await site.post(HELP, Notice("on the page already"))
    async with opened(http) as opened_page:
        await site.post(HELP, Notice("new"))
        _, html = await opened_page.next()
        assert [notice.get_text() for notice in html.select(".notice")] == ["new"]


async def test_a_page_that_missed_too_much_is_loaded_afresh(
    site: Site, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "MAX_CHANGES", 3)
    for number in range(5):
        await site.post(HELP, Notice(f"notice {number}"))
    async with http.get("/console/live?channel=help&after=0.0") as response:
        opened_page = Page(response)
        event_id, _ = await opened_page.next("reload")
        assert event_id == "5.5"
        await site.post(HELP, Notice("after it"))
        _, html = await opened_page.next()
        assert [notice.get_text() for notice in html.select(".notice")] == ["after it"]


async def test_another_channel_with_news_is_marked(site: Site, http: aiohttp.ClientSession) -> None:
    async with opened(http) as opened_page:
        await site.post(HELP, Notice("the page is listening"))
        await opened_page.next()
        await site.post(INCIDENTS, Notice("over here"))
        _, html = await opened_page.next()
        assert [mark["id"] for mark in html.select(".unread")] == ["unread-1"]
        assert "over here" not in html.get_text()


async def test_open_incidents_are_listed_as_they_come_and_go(site: Site, http: aiohttp.ClientSession) -> None:
    async with opened(http) as opened_page:
        site.happen(messages.incident())
        _, html = await opened_page.next("incidents")
        assert "payment-gateway p99 latency" in html.get_text()
        site.happen(replace(messages.resolved_incident(), revision=2))
        _, html = await opened_page.next("incidents")
        assert html.get_text(strip=True) == "None is open."


async def test_an_open_page_does_not_hold_up_the_end_of_the_process() -> None:
    async with console_site() as site, aiohttp.ClientSession(site.address) as http, opened(http) as opened_page:
        site.live.close()
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(EOFError):
                await opened_page.next("never")


# --- judging ---------------------------------------------------------------------------------------------------------


async def test_a_verdict_on_an_answer_is_handed_in_and_thanked_for(site: Site, http: aiohttp.ClientSession) -> None:
    await send(http, "/console/messages", channel="help", text="hello")
    answer = await site.post(replace(HELP, thread="1"), AnswerMessage(messages.answer()))
    html = await send(http, "/console/feedback", message=answer.message_id, verdict="helpful")
    (feedback,) = site.inbox.feedback
    assert (feedback.verdict, feedback.subject) == (Verdict.HELPFUL, "answer-1")
    assert feedback.place == replace(HELP, thread="1")
    assert "Thanks, noted as helpful." in html
    assert "change to “wrong”" in html


async def test_a_changed_mind_is_handed_in_as_well(site: Site, http: aiohttp.ClientSession) -> None:
    answer = await site.post(HELP, AnswerMessage(messages.answer()))
    for verdict in ("helpful", "wrong", "helpful"):
        await send(http, "/console/feedback", message=answer.message_id, verdict=verdict)
    assert [feedback.verdict for feedback in site.inbox.feedback] == ["helpful", "wrong", "helpful"]


@pytest.mark.parametrize(
    ("verdict", "subject"),
    [("owner-right", "owner-1"), ("cause-wrong", "cause-1"), ("take-it", "incident-1")],
)
async def test_a_verdict_on_an_incident_belongs_to_its_thread(
    site: Site, http: aiohttp.ClientSession, verdict: str, subject: str
) -> None:
    reference = await site.post(INCIDENTS, IncidentMessage(messages.explained_incident()))
    site.happen(messages.explained_incident(message=reference))
    await send(http, "/console/feedback", incident="incident-1", verdict=verdict)
    (feedback,) = site.inbox.feedback
    assert feedback.subject == subject
    assert feedback.place == thread_of(reference)


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"message": "1", "verdict": "owner-right"}, 400),
        ({"message": "1", "verdict": "nonsense"}, 400),
        ({"message": "1"}, 400),
        ({"message": "2", "verdict": "helpful"}, 404),
        ({"message": "7", "verdict": "helpful"}, 404),
        ({"message": "x", "verdict": "helpful"}, 404),
        ({"incident": "nope", "verdict": "take-it"}, 404),
        ({"verdict": "helpful"}, 404),
    ],
)
async def test_what_cannot_be_judged_is_refused(
    site: Site, http: aiohttp.ClientSession, form: dict[str, str], status: int
) -> None:
    await site.post(HELP, AnswerMessage(messages.answer()))
    await site.post(HELP, Notice("no answer"))
    async with http.post("/console/feedback", data=form, headers=LIVE) as response:
        assert response.status == status
    assert site.inbox.feedback == []


async def test_a_sample_incident_can_be_replayed() -> None:
    played: list[str] = []

    async def play() -> None:
        played.append("check-in-storm")

    async with console_site(replays={"check-in-storm": play}) as site, aiohttp.ClientSession(site.address) as http:
        html = await page(http, "/")
        assert [button.get_text(strip=True) for button in html.select(".replay")] == ["Check in storm"]
        await send(http, "/console/replays", name="check-in-storm")
        assert played == ["check-in-storm"]
        async with http.post("/console/replays", data={"name": "nope"}) as response:
            assert response.status == 404
