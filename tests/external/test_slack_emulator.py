"""The whole bot in a Slack workspace: mention, follow-up, command, button and incident, over HTTP and Socket Mode."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, async_playwright
from rich.console import Console

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from bot.doctor import run_doctor
from bot.settings import Settings
from core import samples as messages
from core.conversation import Person, Place, Platform
from core.messages import AnswerMessage
from tests.external.slack_emulator import (
    ARTIFACTS,
    BOT_TOKEN,
    BOT_USER,
    DANA,
    DIRECT,
    INES,
    SAMPLE_COMPANY,
    SIGNING_SECRET,
    SlackWorkspace,
    eventually,
    slack_workspace,
)
from tests.fakes.block_kit import texts

pytestmark = [pytest.mark.external, pytest.mark.asyncio(loop_scope="module")]

QUESTION = f"<@{BOT_USER}> how do I roll back a canary?"

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]

over_http = pytest.mark.parametrize("workspace", ["http"], indirect=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["http", "socket mode"])
async def workspace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SlackWorkspace]:
    """One for all tests: each speaks in a thread or a channel of its own."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    folder = tmp_path_factory.mktemp("slack")
    async with slack_workspace(folder, socket_mode=request.param == "socket mode") as started:
        yield started
        assert started.proxy.refused == [], "Slack would have refused a message"
    log = (folder / "bot.log").read_text()
    assert "Traceback" not in log, log


def shown(message: dict[str, Any]) -> str:
    return "\n".join(texts(message.get("blocks") or [])) or message["text"]


async def incident(workspace: SlackWorkspace, name: str) -> dict[str, Any]:
    """The one message of the incident whose text holds this name, once the work on it is done."""

    def done(said: list[dict[str, Any]]) -> bool:
        return any(name in shown(each) and "Right cause" in shown(each) for each in said)

    (message,) = [each for each in await workspace.until(done, "C0INC") if name in shown(each)]
    return message


async def test_a_conversation_in_a_channel(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    (answer,) = await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    assert "[1]" in shown(answer)
    assert "canary" in shown(answer).lower()

    # A follow-up in the thread is understood in its context.
    await workspace.say(f"<@{BOT_USER}> and how long does that take?", thread=asked, person=DANA)
    _, follow_up = await workspace.until(lambda said: len(said) == 2, "C0ASK", asked)
    assert shown(follow_up) != shown(answer)

    # What people say to each other is none of its business.
    await workspace.say("thanks, that worked", thread=asked)

    await workspace.press(answer, "Ask a person", person=DANA)
    *_, called = await workspace.until(lambda said: len(said) == 3, "C0ASK", asked)
    assert "dana" in shown(called)

    await workspace.press(answer, "Helpful", person=DANA)
    assert len(await workspace.from_bot("C0ASK", asked)) == 3


async def test_a_command_is_answered_in_its_channel(workspace: SlackWorkspace) -> None:
    await workspace.command("help", channel="C0CICD")
    (help_,) = await workspace.until(lambda said: len(said) == 1, "C0CICD")
    assert "status" in shown(help_)


async def test_a_direct_message_needs_no_mention(workspace: SlackWorkspace) -> None:
    asked = await workspace.say("How do I drain a drydock runner?", channel="D0INES")
    (answer,) = await workspace.until(lambda said: len(said) == 1, "D0INES", asked)
    assert "drain" in shown(answer)


async def test_an_incident_is_posted_edited_and_detailed(workspace: SlackWorkspace) -> None:
    await workspace.alert("connection-pool")
    message = await incident(workspace, "PaymentGateway")
    assert shown(message).startswith("🔴 Critical")
    (details,) = await workspace.until(lambda said: len(said) == 1, "C0INC", message["ts"])
    assert "Timeline" in shown(details)
    await workspace.press(message, "Take it", person=DANA)
    await workspace.until(lambda said: any("Taken by*  dana" in shown(each) for each in said), "C0INC")
    # The same alert again folds into the same message.
    await workspace.alert("connection-pool")
    assert await incident(workspace, "PaymentGateway")


async def test_an_edited_question_has_an_edited_answer_and_a_deleted_one_has_none(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    (before,) = await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    await workspace.edit("C0ASK", asked, f"<@{BOT_USER}> how do I drain a drydock runner?")
    (after,) = await workspace.until(lambda said: "drain" in shown(said[0]), "C0ASK", asked)
    assert after["ts"] == before["ts"]
    assert "canary" not in shown(after).lower()
    await workspace.delete("C0ASK", asked)

    async def silent() -> bool:
        return await workspace.from_bot("C0ASK", asked) == []

    await eventually(silent, "the answer is gone", 30.0)


async def test_a_mention_that_was_forgotten_can_be_added(workspace: SlackWorkspace) -> None:
    asked = await workspace.say("how do I roll back a canary?")
    await workspace.edit("C0ASK", asked, QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)


async def test_thanks_are_no_question_and_a_channel_that_talks_to_itself_is_left_alone(
    workspace: SlackWorkspace,
) -> None:
    thanked = await workspace.say(f"<@{BOT_USER}> thank you!")
    (welcome,) = await workspace.until(lambda said: len(said) == 1, "C0ASK", thanked)
    assert "welcome" in shown(welcome)
    talked = await workspace.say("does anybody know how to roll back a canary?", person=DANA)
    again = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", again)
    assert await workspace.from_bot("C0ASK", talked) == []


async def test_a_wrong_answer_is_corrected_in_a_form_and_confirmed_by_somebody_else(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    (answer,) = await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    await workspace.press(answer, "Wrong")
    form = await workspace.form()
    assert form["title"]["text"] == "What is right?"
    await workspace.fill_in({"correction": "Run `slipway rollback SERVICE --now`."})
    _, proposal = await workspace.until(lambda said: len(said) == 2, "C0ASK", asked)
    assert "--now" in shown(proposal)
    await workspace.press(proposal, "Confirm", person=DANA)
    await workspace.until(lambda said: "dana" in shown(said[1]).lower(), "C0ASK", asked)


async def test_a_form_that_opens_too_late_leaves_its_question_in_the_thread(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    (answer,) = await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    workspace.proxy.triggers_expire = True
    await workspace.press(answer, "Wrong")
    workspace.proxy.triggers_expire = False
    _, request = await workspace.until(lambda said: len(said) == 2, "C0ASK", asked)
    assert "What is right?" in shown(request)


async def test_an_incident_is_handed_over_in_a_form(workspace: SlackWorkspace) -> None:
    await workspace.alert("check-in-storm")
    message = await incident(workspace, "CheckIn")
    await workspace.press(message, "Reassign …", person=DANA)
    form = await workspace.form()
    assert form["title"]["text"] == "Reassign"
    (picker,) = [each["element"] for each in form["blocks"] if each.get("block_id") == "team"]
    team = picker["options"][0]
    await workspace.fill_in({"team": team["value"], "correction": "They moved it last week."}, person=DANA)

    def handed_over(said: list[dict[str, Any]]) -> bool:
        return any(each["ts"] == message["ts"] and team["text"]["text"] in shown(each) for each in said)

    await workspace.until(handed_over, "C0INC")


async def test_reactions_are_feedback_and_can_be_taken_back(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    (answer,) = await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    await workspace.react(answer, "+1", person=DANA)
    await workspace.react(answer, "+1", person=DANA, present=False)
    await workspace.react(answer, "x", person=DANA)  # who says that it is wrong is asked what is right
    _, request = await workspace.until(lambda said: len(said) == 2, "C0ASK", asked)
    assert "What is right?" in shown(request)
    await workspace.react(request, "+1", person=DANA)  # a message that claims nothing


async def test_a_person_s_own_page_tells_what_is_open_and_what_is_known(workspace: SlackWorkspace) -> None:
    await workspace.alert("check-in-storm")
    message = await incident(workspace, "CheckIn")
    await workspace.press(message, "Take it", person=INES)
    await workspace.until(lambda said: any("Taken by*  ines" in shown(each) for each in said), "C0INC")
    home = "\n".join(texts((await workspace.open_home())["blocks"]))
    assert "Your open incidents" in home
    assert "taken by ines" in home
    assert "passages indexed" in home
    assert (
        "taken by ines"
        not in "\n".join(texts((await workspace.open_home(person=DANA))["blocks"])).partition("Other")[0]
    )


@over_http  # the emulator knows no such menu, so that the proxy sends what it would
async def test_a_message_is_asked_about_from_its_menu(workspace: SlackWorkspace) -> None:
    said = await workspace.say("The canary of web-store looks bad.", person=DANA)
    await workspace.command("help", channel="C0CICD")  # whose trigger the proxy lends to the menu
    await workspace.choose_shortcut("C0ASK", said)
    assert (await workspace.form())["title"]["text"] == "Ask about this"
    await workspace.fill_in({"correction": "how do I roll back a canary?"})
    (answer,) = await workspace.until(lambda found: len(found) == 1, "C0ASK", said)
    assert "[1]" in shown(answer)


@over_http
async def test_an_assistant_thread_has_prompts_and_is_named_after_its_first_question(
    workspace: SlackWorkspace,
) -> None:
    thread = await workspace.start_assistant_thread()
    ((method, prompts),) = [each for each in workspace.proxy.assistant if each[1]["thread_ts"] == thread]
    assert method == "setSuggestedPrompts"
    assert prompts["prompts"][-1]["message"] == "status"
    await workspace.say("How do I drain a drydock runner?", channel=DIRECT, thread=thread)
    await workspace.until(lambda said: len(said) == 1, DIRECT, thread)

    async def named() -> bool:
        titles = [arguments for name, arguments in workspace.proxy.assistant if name == "setTitle"]
        return any(each["thread_ts"] == thread and "drain" in each["title"] for each in titles)

    await eventually(named, "the thread has a name", 5.0)


@pytest.mark.parametrize("streams", [True, False])
async def test_an_answer_that_is_still_being_checked_is_streamed_or_edited(
    workspace: SlackWorkspace, streams: bool
) -> None:
    workspace.proxy.streams = streams
    workspace.proxy.streamed.clear()
    root = await workspace.say("look here", channel="C0GALLERY")
    messenger = SlackMessenger(slack_client(BOT_TOKEN, workspace.api_url, workspace.session))
    place = Place(Platform.SLACK, "C0GALLERY", root)
    whole = messages.answer(prediction_id="answer-7")
    reference = None
    for number in (1, 2):
        draft = replace(whole, sentences=whole.sentences[:number], badge=None, prediction_id=None)
        message = AnswerMessage(draft, draft_for=Person(Platform.SLACK, INES))
        if reference is None:
            reference = await messenger.post(place, message, "stream")
        else:
            await messenger.edit(reference, message)
        (so_far,) = await workspace.from_bot("C0GALLERY", root)
        assert ("release captain" in shown(so_far)) is (number == 2)
        assert "Helpful" not in shown(so_far), "nobody judges half an answer"
    assert reference is not None
    await messenger.edit(reference, AnswerMessage(whole))
    (answer,) = await workspace.from_bot("C0GALLERY", root)
    assert "Helpful" in shown(answer)
    assert await messenger.find(place, "stream") == reference
    assert workspace.proxy.streamed == (["start", "append", "stop"] if streams else [])
    workspace.proxy.streams = True


async def test_the_doctor_finds_the_app_in_order(workspace: SlackWorkspace, tmp_path: Path) -> None:
    values = {
        "slack_bot_token": BOT_TOKEN,
        "slack_signing_secret": SIGNING_SECRET,
        "slack_api_url": workspace.api_url,
        "public_url": workspace.bot,
        "config": SAMPLE_COMPANY,
        "data_dir": tmp_path,
    }
    out = StringIO()
    code = await run_doctor(Settings.model_validate(values), Console(file=out, width=200), "slack")
    if workspace.proxy.delivered:  # this bot takes HTTP
        assert f"✓ Slack events: reach {workspace.bot}/slack/events" in out.getvalue()
        assert code == 0
    assert "✓ Slack scopes: are those of the manifest" in out.getvalue()


@over_http
async def test_an_event_that_slack_sends_three_times_is_answered_once(workspace: SlackWorkspace) -> None:
    workspace.proxy.retries = 2
    asked = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    # The answer to a second question comes after all that the first one set off.
    again = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", again)
    assert len(await workspace.from_bot("C0ASK", asked)) == 1
    assert set(workspace.proxy.delivered) == {200}
    assert len(workspace.proxy.delivered) >= 4
    workspace.proxy.retries = 0


@over_http
async def test_a_rate_limit_delays_the_answer_and_nothing_is_lost_or_said_twice(workspace: SlackWorkspace) -> None:
    workspace.proxy.rate_limits = 3
    started = time.monotonic()
    asked = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    assert time.monotonic() - started >= 2 * workspace.proxy.retry_after
    assert workspace.proxy.rate_limits == 0
    again = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", again)
    assert len(await workspace.from_bot("C0ASK", asked)) == 1


@over_http
async def test_slack_is_acknowledged_in_time_and_the_answer_follows_at_once(workspace: SlackWorkspace) -> None:
    taken: list[float] = []
    for _ in range(10):
        started = time.monotonic()
        asked = await workspace.say(QUESTION)
        await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
        taken.append(time.monotonic() - started)
    assert max(workspace.proxy.acknowledged_in) < 3.0, "Slack waits no longer than 3 s"
    (ARTIFACTS / "slack-latency.json").write_text(
        json.dumps({"answer_median_s": median(taken), "acknowledgement_max_s": max(workspace.proxy.acknowledged_in)})
    )


@over_http
async def test_people_see_it_on_the_page(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    nothing = await workspace.say(f"<@{BOT_USER}> what is the wifi password of the cafeteria?")
    await workspace.until(lambda said: len(said) == 1, "C0ASK", nothing)
    await workspace.alert("check-in-storm")
    message = await incident(workspace, "CheckIn")
    await workspace.until(lambda said: len(said) == 1, "C0INC", message["ts"])

    await workspace.open_home()
    (answer,) = await workspace.from_bot("C0ASK", asked)
    async with open_page(workspace) as page:
        await picture_of_threads(page, "ask-plumbline", "slack-answers")
        await picture_of_threads(page, "incidents", "slack-incident")
        await page.get_by_role("button", name="🏠 plumbline").click()
        await page.get_by_text("How I am set", exact=True).wait_for()
        await page.screenshot(path=ARTIFACTS / "slack-home.png")
        for pressed, label, name in ((answer, "Wrong", "correction"), (message, "Reassign …", "handover")):
            await workspace.press(pressed, label)
            await workspace.form()
            await page.get_by_role("button", name="Cancel").wait_for()
            await page.screenshot(path=ARTIFACTS / f"slack-form-{name}.png")
            await page.get_by_role("button", name="Cancel").click()
        await workspace.press(message, "Wrong cause")
        await page.get_by_text("What was the cause?").wait_for()
        await page.screenshot(path=ARTIFACTS / "slack-form-cause.png")
        await page.get_by_role("button", name="Cancel").click()
        await workspace.choose_shortcut("C0ASK", nothing)
        await page.get_by_text("Your question").wait_for()
        await page.screenshot(path=ARTIFACTS / "slack-form-question.png")
        await page.get_by_role("button", name="Cancel").click()


@over_http
async def test_every_kind_of_message_is_taken_and_can_be_looked_at(workspace: SlackWorkspace) -> None:
    messenger = SlackMessenger(slack_client(BOT_TOKEN, workspace.api_url, workspace.session))
    place = Place(Platform.SLACK, "C0GALLERY")
    references = {name: await messenger.post(place, message, name) for name, message in messages.SAMPLES.items()}
    assert {name: await messenger.find(place, name) for name in references} == references
    folder = ARTIFACTS / "slack-messages"
    folder.mkdir(exist_ok=True)
    async with open_page(workspace) as page:
        await page.get_by_role("button", name="gallery").click()
        for name, reference in references.items():
            shown_message = page.locator(f'.msg[data-ts="{reference.message_id}"]')
            await shown_message.screenshot(path=folder / f"{name.replace(' ', '-')}.png")
        assert await page.get_by_text("Take it", exact=True).count() > 0


@asynccontextmanager
async def open_page(workspace: SlackWorkspace, height: int = 2_000) -> AsyncIterator[Page]:
    """The workspace in a browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = await browser.new_page(viewport={"width": 1_400, "height": height})
        await page.goto(workspace.page)
        yield page
        await browser.close()


async def picture_of_threads(page: Page, channel: str, name: str) -> None:
    """The channel, with each of its latest two threads beside it in turn."""
    await page.get_by_role("button", name=channel).click()
    threads = await page.get_by_text(re.compile(r"^\d+ repl")).all()
    assert threads
    for number, thread in enumerate(threads[-2:], 1):
        await thread.click()
        await page.screenshot(path=ARTIFACTS / f"{name}-{number}.png")
