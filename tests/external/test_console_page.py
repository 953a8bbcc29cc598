"""The local page in a real browser: what a person sees and does on it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Route, expect

from core.model.document import Document
from core.model.incident import Stage
from core.model.messages import AnswerMessage, IncidentDetails, IncidentMessage, Notice
from tests import samples as messages
from tests.external.browser import open_browser
from tests.fakes.console_site import Site, console_site
from tests.fakes.text_everywhere import everywhere
from tests.scenario.console import HELP, INCIDENTS, site

__all__ = ["site"]  # the fixture

pytestmark = pytest.mark.external

LONG_WORD = "kube_pod_container_status_last_terminated_reason_" * 8


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with open_browser() as started:
        yield started


@pytest.fixture
async def context(browser: Browser, site: Site) -> AsyncIterator[BrowserContext]:
    opened = await browser.new_context(base_url=site.address, viewport={"width": 1280, "height": 800})
    yield opened
    await opened.close()


@pytest.fixture
async def page(context: BrowserContext) -> AsyncIterator[Page]:
    """A page on which any error in the console, of the content security policy among them, fails the test."""
    opened = await context.new_page()
    errors: list[str] = []
    opened.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    assert errors == []


async def open_channel(page: Page, channel: str = "help") -> None:
    await page.goto(f"/?channel={channel}")
    await expect(page.get_by_role("status").first).to_have_text("Live")


async def test_a_question_and_its_answer_appear_without_loading_the_page(site: Site, page: Page) -> None:
    await open_channel(page)
    box = page.get_by_label("Ask in #help")
    await box.fill("How do I roll back a canary?")
    await box.press("Shift+Enter")
    await box.type("Quickly.")
    await box.press("Enter")
    await expect(page.locator("#m-1 .said")).to_have_text("How do I roll back a canary?\nQuickly.")
    await expect(box).to_have_value("")
    await expect(page.locator(".awaited")).to_be_visible()
    await expect(page.locator(".empty")).to_be_hidden()

    await site.post(replace(HELP, thread="1"), AnswerMessage(messages.answer()))
    answer = page.locator("#t-1 .answer")
    await expect(answer).to_contain_text("returns the canary to 0 % within 90 seconds")
    await expect(answer).to_contain_text("86 %")
    await expect(page.locator(".awaited")).to_be_hidden()
    assert [question.text for question in site.inbox.questions] == ["How do I roll back a canary?\nQuickly."]


async def test_an_example_question_is_asked_with_a_click(site: Site, page: Page) -> None:
    await open_channel(page)
    await page.get_by_role("button", name="When is the freeze?").click()
    await expect(page.locator("#m-1 .said")).to_have_text("When is the freeze?")


async def test_a_follow_up_is_asked_in_the_thread_with_the_keyboard_alone(site: Site, page: Page) -> None:
    await open_channel(page)
    await page.keyboard.press("/")
    await page.keyboard.type("first question")
    await page.keyboard.press("Enter")
    await expect(page.locator("#m-1")).to_be_visible()
    await page.locator("#root-1 summary").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#root-1 textarea")).to_be_focused()
    await page.keyboard.type("and then?")
    await page.keyboard.press("Enter")
    await expect(page.locator("#t-1 .said")).to_have_text("and then?")
    assert site.inbox.questions[1].place.thread == "1"


async def test_an_incident_is_one_message_that_changes_in_place(site: Site, page: Page) -> None:
    await open_channel(page, "incidents")
    reference = await site.post(INCIDENTS, IncidentMessage(messages.incident()))
    card = page.locator("#m-1 .incident")
    await expect(card).to_contain_text("booking-api reports timeouts")
    await expect(card).to_contain_text("Finding the owner")
    await site.messenger.edit(
        reference, IncidentMessage(messages.incident(stage=Stage.EXPLAINING, owner=messages.owner()))
    )
    await expect(card).to_contain_text("checking: Payments?")
    await expect(card).to_contain_text("Looking for the cause")
    await site.messenger.edit(reference, IncidentMessage(messages.explained_incident()))
    await expect(card).to_contain_text("lowered the maximum pool size")
    await site.post(replace(INCIDENTS, thread="1"), IncidentDetails(messages.explained_incident()))
    await expect(card).to_contain_text("on call: Asha Brandt")
    await page.locator("#t-1").get_by_text("Details").click()
    await page.locator("#t-1").get_by_text("1. A configuration change").click()
    await expect(page.locator("#t-1 .entries").filter(has_text="config-4711").first).to_be_visible()
    await expect(page.locator(".incident")).to_have_count(1)


async def test_what_is_typed_while_a_message_is_on_its_way_or_a_thread_is_redrawn_is_not_lost(
    site: Site, page: Page
) -> None:
    async def slowly(route: Route) -> None:
        await asyncio.sleep(0.5)
        await route.continue_()

    await open_channel(page)
    await page.route("**/console/messages", slowly)
    box = page.get_by_label("Ask in #help")
    await box.fill("how do I roll back?")
    await box.press("Enter")
    await box.type("and for")
    await expect(page.locator("#m-1")).to_be_visible()
    await box.type(" staging?")
    await expect(box).to_have_value("and for staging?")
    await page.locator("#root-1 summary").click()
    await page.locator("#root-1 textarea").type("half a rep")
    await site.post(replace(HELP, thread="1"), AnswerMessage(messages.answer()))
    await page.evaluate("htmx.trigger('#messages', 'sse:reload')")
    await expect(page.locator("#root-1 .answer")).to_have_count(1)  # the reload and the live event both bring it
    await expect(page.locator("#root-1 textarea")).to_have_value("half a rep")


async def test_on_a_phone_a_channel_opens_at_the_title_and_what_is_open_can_be_reached(
    site: Site, browser: Browser
) -> None:
    site.happen(messages.explained_incident())
    await site.post(INCIDENTS, IncidentMessage(messages.explained_incident()))
    await site.post(replace(INCIDENTS, thread="1"), IncidentDetails(messages.explained_incident()))
    context = await browser.new_context(base_url=site.address, viewport={"width": 420, "height": 900})
    page = await context.new_page()
    await page.goto("/?channel=incidents")
    await expect(page.locator("#m-1 h2")).to_be_in_viewport()
    await expect(page.get_by_label("Open incidents").get_by_role("link").first).to_be_in_viewport()
    await page.get_by_text("Right or wrong?").click()
    await expect(page.get_by_role("button", name="Wrong cause")).to_be_in_viewport()
    await context.close()


async def test_the_list_of_open_incidents_follows_along(site: Site, page: Page) -> None:
    await open_channel(page, "help")
    site.happen(messages.incident())
    await expect(page.get_by_label("Open incidents")).to_contain_text("payment-gateway p99 latency")


async def test_a_verdict_is_thanked_for_and_can_be_changed(site: Site, page: Page) -> None:
    await site.post(HELP, AnswerMessage(messages.answer()))
    await open_channel(page)
    await page.get_by_role("button", name="Helpful").click()
    await expect(page.locator(".thanks")).to_contain_text("Thanks, noted: helpful.")
    await page.get_by_role("button", name="change to “wrong”").click()
    await expect(page.locator(".thanks")).to_contain_text("Thanks, noted: wrong.")
    assert [feedback.verdict for feedback in site.inbox.feedback] == ["helpful", "wrong"]


async def test_a_citation_opens_the_document_at_its_heading_with_the_sentence_marked(site: Site, page: Page) -> None:
    quote = messages.citation().quote
    filler = "\n\n".join(f"## Section {n}\n\n" + "Words that fill the page. " * 30 for n in range(12))
    text = f"# Rolling back\n\n{filler}\n\n## During a canary\n\nFirst. {quote} Last.\n\n{filler}"
    await site.file(Document(messages.citation().document_id, "handbook", "deployment", "Rolling back", text))
    await site.post(HELP, AnswerMessage(messages.answer()))
    await open_channel(page)
    await page.locator("a.cite").first.click()
    await expect(page.get_by_role("heading", name="During a canary")).to_be_in_viewport()
    await expect(page.locator(".prose mark").first).to_be_in_viewport()
    assert "".join(await page.locator(".prose mark").all_inner_texts()) == quote.replace("`", "")


async def test_a_page_that_lost_its_connection_catches_up_without_repeating_anything(
    site: Site, context: BrowserContext
) -> None:
    page = await context.new_page()
    reference = await site.post(HELP, Notice("before"))
    await open_channel(page)
    await site.post(HELP, Notice("while connected"))
    await expect(page.locator(".notice")).to_have_text(["before", "while connected"])
    # As when the process ends: every connection is closed, and meanwhile things are said that this page must not miss.
    site.live.close()
    await expect(page.get_by_role("status").first).to_have_text("Reconnecting")
    await site.post(HELP, Notice("meanwhile"))
    await site.messenger.edit(reference, Notice("edited meanwhile"))
    await expect(page.locator(".notice")).to_have_text(["edited meanwhile", "while connected", "meanwhile"])
    await site.post(HELP, Notice("afterwards"))
    await expect(page.locator(".notice")).to_have_text(
        ["edited meanwhile", "while connected", "meanwhile", "afterwards"]
    )


async def test_a_reader_who_stands_at_the_end_stays_there_and_one_who_reads_above_is_left_alone(
    site: Site, page: Page
) -> None:
    for number in range(40):
        await site.post(HELP, Notice(f"notice {number}"))
    await open_channel(page)
    await expect(page.get_by_text("notice 39", exact=True)).to_be_in_viewport()
    await site.post(HELP, Notice("the newest"))
    await expect(page.get_by_text("the newest", exact=True)).to_be_in_viewport()
    await page.get_by_text("notice 5", exact=True).scroll_into_view_if_needed()
    await site.post(HELP, Notice("newer still"))
    await expect(page.get_by_text("newer still", exact=True)).to_be_attached()
    await expect(page.get_by_text("notice 5", exact=True)).to_be_in_viewport()


async def test_a_refused_message_is_explained_and_kept_in_the_box(site: Site, context: BrowserContext) -> None:
    page = await context.new_page()
    await open_channel(page)
    await page.route("**/console/messages", lambda route: route.abort())
    await page.get_by_label("Ask in #help").fill("hello")
    await page.get_by_label("Ask in #help").press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("Plumbline does not answer: is it still running?")
    await expect(page.get_by_label("Ask in #help")).to_have_value("hello")
    await page.unroute("**/console/messages")
    await page.locator("textarea").evaluate("box => { box.value = 'x'.repeat(1100000); }")
    await page.get_by_label("Ask in #help").press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("The form is over 1024 KiB")


async def test_operator_pages_follow_along(site: Site, page: Page) -> None:
    await page.goto("/incidents")
    await expect(page.get_by_role("status").first).to_have_text("Live")
    site.happen(messages.incident())
    await page.get_by_role("link", name="payment-gateway p99 latency").click()
    await expect(page.get_by_text("Finding the owner")).to_be_visible()
    site.happen(messages.explained_incident(revision=2))
    await expect(page.get_by_role("heading", name="1. A configuration change")).to_be_visible()
    await page.get_by_text("Right or wrong?").click()
    await page.get_by_role("button", name="Right owner").click()
    await expect(page.locator(".thanks")).to_contain_text("Thanks, noted: right owner.")
    assert [feedback.verdict for feedback in site.inbox.feedback] == ["owner-right"]


async def test_the_pages_can_be_read_and_used_without_script(site: Site, browser: Browser) -> None:
    context = await browser.new_context(base_url=site.address, java_script_enabled=False)
    page = await context.new_page()
    await page.goto("/")
    await page.get_by_label("Ask in #help").fill("hello")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator("#m-1 .said")).to_have_text("hello")
    await site.post(replace(HELP, thread="1"), AnswerMessage(messages.answer()))
    await page.reload()
    await expect(page.locator(".answer")).to_be_in_viewport()
    await page.get_by_role("button", name="Helpful").click()
    await expect(page).to_have_url(re.compile(r"channel=help"))
    assert [feedback.verdict for feedback in site.inbox.feedback] == ["helpful"]
    await context.close()


async def test_the_token_is_asked_for_once(browser: Browser) -> None:
    async with console_site(token="a-long-console-token") as site:
        context = await browser.new_context(base_url=site.address)
        page = await context.new_page()
        await page.goto("/sources")
        await page.get_by_label("Console token").fill("wrong")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_text("That is not the token.")).to_be_visible()
        await page.goto("/sources")
        await page.get_by_label("Console token").fill("a-long-console-token")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Sources")).to_be_visible()
        await page.get_by_role("link", name="Conversation").click()
        await open_channel(page)
        await page.get_by_label("Ask in #help").fill("hello")
        await page.keyboard.press("Enter")
        await expect(page.locator("#m-1 .said")).to_have_text("hello")
        await context.close()


@pytest.mark.parametrize("width", [390, 1280, 1600])
async def test_no_page_is_wider_than_the_window_and_every_control_has_a_name(
    site: Site, browser: Browser, width: int
) -> None:
    for message in everywhere(LONG_WORD, count=3).values():
        await site.post(INCIDENTS, message)
    struck = everywhere(LONG_WORD, count=3)["incident"]
    assert isinstance(struck, IncidentMessage)
    site.happen(struck.incident)
    table = f"| {LONG_WORD} | b |\n|---|---|\n| c | {LONG_WORD} |"
    await site.file(
        Document("handbook/long.md", "handbook", "x", LONG_WORD, f"## {LONG_WORD}\n\n{table}\n\n    {LONG_WORD}")
    )
    context = await browser.new_context(base_url=site.address, viewport={"width": width, "height": 800})
    page = await context.new_page()
    paths = ("/?channel=incidents", "/?channel=vault", "/incidents", f"/incidents/{struck.incident.id}", "/sources")
    for path in (*paths, "/documents/handbook/long.md", "/predictions", "/incidents/none"):
        await page.goto(path)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, path
        nameless = await page.locator("a, button, input:not([type=hidden]), textarea, meter").evaluate_all(
            "all => all.filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length))"
            ".map(e => e.outerHTML)"
        )
        assert nameless == [], path
    await context.close()
