"""“Create issue…” and “Publish postmortem…”: a draft, a person who sends it, and then one write, with its link in the thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from adapters.slack.interactions import FormOrigin, feedback_form
from adapters.slack.render import DRAFT_FIELDS
from core.model.audit import Act
from core.model.incident import FilingKind
from core.model.messages import FilingRequest
from handlers.incidents.file_incident import NOT_ALLOWED
from tests.fakes import block_kit, slack_payloads
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import Message, is_done, of_kind
from tests.scenario.filled_forms import filled, incident_in_slack, slack_sends
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(autouse=True)
def empty(bot: RunningBot) -> Iterator[None]:
    yield
    bot.tracker.items.clear()
    bot.tracker.relent()


async def test_a_signed_press_drafts_an_issue_and_its_submission_files_it_once(bot: RunningBot) -> None:
    incident_id, posted = await incident_in_slack(bot, "drawer stuck")
    await slack_sends(bot, slack_payloads.button_press(block_kit.buttons(posted["blocks"])["Create issue…"], posted))
    view = bot.slack.views[-1]
    assert block_kit.view_problems(view) == []
    assert bot.tracker.items == [], "nothing is written before somebody sends it"
    draft = filled(view, title="Fixes #7: the drawer of the till is stuck")
    for _ in range(2):  # Slack sends it twice
        await slack_sends(bot, draft)
    await bot.slack.until(lambda: any("acme/ops#1" in str(each["blocks"]) for each in bot.slack.replies(posted["ts"])))
    (item,) = bot.tracker.items
    assert item["title"] == "Fix\u2060es #\u20607: the drawer of the till is stuck", (
        "as a commit message it would close an issue"
    )
    assert "## Summary" in item["body"]
    filed = await bot.incident(incident_id, lambda incident: bool(incident["filings"]))
    (filing,) = filed["filings"]
    assert (filing["filed"]["url"], filing["text"]) == (item["html_url"], "")
    await bot.slack.until(lambda: any(f"<{item['html_url']}|" in str(each) for each in bot.slack.replies(posted["ts"])))

    await slack_sends(bot, filled(view))  # somebody else had the same form open
    await bot.slack.until(lambda: any("already filed" in str(each) for each in bot.slack.replies(posted["ts"])))
    assert len(bot.tracker.items) == 1
    async with bot.store.transaction() as transaction:
        entries = [each.entry for each in await transaction.audit.latest(20, act=Act.FILED)]
    (entry,) = [each for each in entries if each.subject == incident_id]
    assert (entry.actor, entry.detail, entry.documents) == (
        f"slack:{slack_payloads.PERSON}",
        "Till board",
        (item["html_url"],),
    )


async def test_a_long_draft_is_split_into_fields_of_slack_between_its_words() -> None:
    text = " ".join(f"word{number}" for number in range(1_200))
    draft = FilingRequest("i1", FilingKind.ISSUE, "Till", text, ("Till board",))
    view = feedback_form(draft, FormOrigin(channel="C1", ts="1.1"))
    assert block_kit.view_problems(view) == []
    fields = filled(view)["view"]["state"]["values"]
    parts = [fields[name][name]["value"] for name in DRAFT_FIELDS if name in fields]
    assert len(parts) > 1
    assert " ".join(parts) == text


async def test_a_tracker_that_fails_is_told_and_the_draft_is_kept_for_the_next_attempt(bot: RunningBot) -> None:
    _, posted = await incident_in_slack(bot, "scanner dead")
    press = slack_payloads.button_press(block_kit.buttons(posted["blocks"])["Create issue…"], posted)
    await slack_sends(bot, press)
    bot.tracker.refuse(503)
    await slack_sends(bot, filled(bot.slack.views[-1], title="Scanner dead", **{"draft-1": "Typed by hand."}))
    await bot.slack.until(lambda: any("503" in str(each["blocks"]) for each in bot.slack.replies(posted["ts"])))
    assert bot.tracker.items == []

    await slack_sends(bot, press | {"actions": [press["actions"][0] | {"action_ts": "1773480800.123456"}]})
    again = bot.slack.views[-1]
    assert "Typed by hand." in str(again["blocks"]), "the form opens with what the person had written"
    await slack_sends(bot, filled(again))
    await bot.slack.until(lambda: any("acme/ops#1" in str(each["blocks"]) for each in bot.slack.replies(posted["ts"])))
    (item,) = bot.tracker.items
    assert item["body"].startswith("Typed by hand.\n\nFiled with Plumbline")


async def test_whoever_may_not_file_somewhere_is_told_so_and_nothing_is_written(bot: RunningBot) -> None:
    _, posted = await incident_in_slack(bot, "belt torn")
    await slack_sends(bot, slack_payloads.button_press(block_kit.buttons(posted["blocks"])["Create issue…"], posted))
    forged = filled(bot.slack.views[-1])
    values = forged["view"]["state"]["values"]["team"]["team"]
    for target in ("Board of Bo", "Wiki", "elsewhere"):  # of somebody else, of another channel, of nobody
        values["selected_option"] = {"text": {"type": "plain_text", "text": target}, "value": target}
        await slack_sends(bot, forged | {"view": forged["view"] | {"id": f"V{time.monotonic_ns()}"}})
    await bot.slack.until(
        lambda: sum(NOT_ALLOWED in str(each["blocks"]) for each in bot.slack.replies(posted["ts"])) == 3
    )
    assert bot.tracker.items == []


async def test_on_the_local_page_a_postmortem_is_drafted_in_the_thread_and_proposed_as_a_file(bot: RunningBot) -> None:
    incident_id = await bot.deliver("published", alert("published", service="shelf"))
    assert incident_id is not None
    await bot.incident(incident_id, is_done)
    await bot.deliver("published", alert("published", service="shelf", resolved=True))
    await bot.incident(incident_id, lambda incident: incident["state"] == "resolved")
    await bot.submit("console/feedback", incident=incident_id, verdict="publish-postmortem")
    request = await bot.until("incidents", found("filing request", incident_id))
    draft = request["payload"]
    assert "## Timeline" in draft["text"]
    form = {"title": draft["title"], "text": draft["text"], "choice": draft["targets"][0]}
    await bot.submit("console/feedback", message=str(request["id"]), verdict="file", **form)
    filed = await bot.incident(
        incident_id, lambda incident: bool(incident["filings"] and incident["filings"][0]["filed"])
    )
    (item,) = bot.tracker.items
    assert filed["filings"][0]["filed"]["url"] == item["html_url"]
    assert any(f"-{incident_id}.md" in path for path in bot.tracker.files)


def found(kind: str, incident_id: str) -> Callable[[list[Message]], Message | None]:
    def look(messages: list[Message]) -> Message | None:
        return next((m for m in of_kind(messages, kind) if m["payload"]["incident_id"] == incident_id), None)

    return look
