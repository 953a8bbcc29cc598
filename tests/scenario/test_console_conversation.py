"""The chat on the local page: what people send arrives, and what was said stands in order."""

from __future__ import annotations

from dataclasses import replace

import aiohttp

from core.model.conversation import Place, Platform
from core.model.messages import AnswerMessage, Notice
from tests import samples as messages
from tests.fakes.console_site import Site, console_site
from tests.scenario.console import HELP, INCIDENTS, http, page, send, site, thread_of

__all__ = ["http", "site"]  # the fixtures


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


async def test_messages_stand_in_order_with_their_threads_below_them(site: Site, http: aiohttp.ClientSession) -> None:
    first = await site.post(INCIDENTS, Notice("first"))
    await site.post(INCIDENTS, Notice("second"))
    await site.post(thread_of(first), Notice("reply to first"))
    await site.post(HELP, Notice("elsewhere"))
    html = await page(http, "/?channel=incidents")
    threads = [
        [notice.get_text(strip=True) for notice in thread.select(".notice")] for thread in html.select(".thread")
    ]
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
    assert [n.get_text(strip=True) for n in latest.select(".notice")] == [
        f"notice {number}" for number in range(10, 60)
    ]
    older_link = latest.select_one(".older a")
    assert older_link is not None
    older = await page(http, str(older_link["href"]))
    assert [n.get_text(strip=True) for n in older.select(".notice")] == [f"notice {number}" for number in range(10)]
    assert not older.select("[sse-connect]")


async def test_messages_can_be_read_as_json(site: Site, http: aiohttp.ClientSession) -> None:
    root = await site.post(HELP, Notice("hello"))
    await site.post(thread_of(root), AnswerMessage(messages.answer()))
    async with http.get("/console/messages.json?channel=help") as response:
        first, second = (await response.json())["messages"]
    assert (first["id"], first["thread"], first["kind"], first["payload"]["text"]) == (1, None, "notice", "hello")
    assert (second["thread"], second["kind"]) == (1, "answer")
    assert second["payload"]["answer"]["citations"][0]["document_id"] == "handbook/deployment/rolling-back.md"


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
