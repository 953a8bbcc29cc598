"""What people do in a Slack workspace, over HTTP and Socket Mode: mention, follow-up, command, button and incident."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bot.commands.doctor import run_doctor
from bot.config.settings import Settings
from tests.external.bot_in_slack import QUESTION, incident, over_http, shown, workspace
from tests.external.slack_emulator import (
    BOT_TOKEN,
    BOT_USER,
    DANA,
    DIRECT,
    INES,
    SAMPLE_COMPANY,
    SIGNING_SECRET,
    SlackWorkspace,
    eventually,
)
from tests.fakes.block_kit import texts
from tests.fakes.door_secrets import LOCKED

__all__ = ["workspace"]  # the fixture

pytestmark = [pytest.mark.external, pytest.mark.asyncio(loop_scope="module")]


async def test_a_conversation_in_a_channel(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    (answer,) = await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    assert "[1]" in shown(answer)
    assert "canary" in shown(answer).lower()

    # A follow-up in the thread is understood in its context.
    await workspace.say(f"<@{BOT_USER}> and how long does that take?", thread=asked, person=DANA)
    _, follow_up = await workspace.until(lambda said: len(said) == 2, "C0ASK", asked)
    assert "Rolling back" in shown(follow_up)

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
    message = await incident(workspace, "payment-gateway")
    assert shown(message).startswith("🔴 p99 of POST")
    (details,) = await workspace.until(lambda said: len(said) == 1, "C0INC", message["ts"])
    assert "Timeline" in shown(details)
    await workspace.press(message, "Take", person=DANA)
    await workspace.until(lambda said: any("taken by dana" in shown(each) for each in said), "C0INC")
    # The same alert again folds into the same message.
    await workspace.alert("connection-pool")
    assert await incident(workspace, "payment-gateway")


async def test_an_edited_question_has_an_edited_answer_and_a_deleted_one_has_none(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    (before,) = await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    await workspace.edit("C0ASK", asked, f"<@{BOT_USER}> how do I drain a drydock runner?")
    (after,) = await workspace.until(lambda said: "drain" in shown(said[0]), "C0ASK", asked)
    assert after["ts"] == before["ts"]
    assert "Rolling back" in shown(before)
    assert "Rolling back" not in shown(after)
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
    assert "What is the right answer?" in shown(request)


async def test_an_incident_is_handed_over_in_a_form(workspace: SlackWorkspace) -> None:
    await workspace.alert("check-in-storm")
    message = await incident(workspace, "check-in")
    await workspace.press(message, "Reassign…", person=DANA)
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
    assert "What is the right answer?" in shown(request)
    await workspace.react(request, "+1", person=DANA)  # a message that claims nothing


async def test_a_person_s_own_page_tells_what_is_open_and_what_is_known(workspace: SlackWorkspace) -> None:
    await workspace.alert("check-in-storm")
    message = await incident(workspace, "check-in")
    await workspace.press(message, "Take", person=INES)
    await workspace.until(lambda said: any("taken by ines" in shown(each) for each in said), "C0INC")
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
async def test_the_messages_tab_of_an_agent_app_has_prompts_and_answers_in_threads(workspace: SlackWorkspace) -> None:
    await workspace.open_messages_tab()
    method, prompts = workspace.proxy.assistant[-1]
    assert method == "setSuggestedPrompts"
    assert prompts["prompts"][-1]["message"] == "status"
    asked = await workspace.say("How do I drain a drydock runner?", channel=DIRECT)
    await workspace.until(lambda said: len(said) == 1, DIRECT, asked)
    workspace.proxy.is_agent = False


async def test_the_doctor_finds_the_app_in_order(workspace: SlackWorkspace, tmp_path: Path) -> None:
    values = LOCKED | {
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_SIGNING_SECRET": SIGNING_SECRET,
        "SLACK_API_URL": workspace.api_url,
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
