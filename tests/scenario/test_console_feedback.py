"""What people judge on the local page is handed in."""

from __future__ import annotations

from dataclasses import replace

import aiohttp
import pytest

from core.model.messages import AnswerMessage, ButtonAction, IncidentMessage, Notice
from tests import samples as messages
from tests.fakes.console_site import Site
from tests.scenario.console import HELP, INCIDENTS, LIVE, http, send, site, thread_of

__all__ = ["http", "site"]  # the fixtures


async def test_a_verdict_on_an_answer_is_handed_in_and_thanked_for(site: Site, http: aiohttp.ClientSession) -> None:
    await send(http, "/console/messages", channel="help", text="hello")
    answer = await site.post(replace(HELP, thread="1"), AnswerMessage(messages.answer()))
    html = await send(http, "/console/feedback", message=answer.message_id, verdict="helpful")
    (feedback,) = site.inbox.feedback
    assert (feedback.verdict, feedback.subject) == (ButtonAction.HELPFUL, "answer-1")
    assert feedback.place == replace(HELP, thread="1")
    assert "Thanks, noted: helpful." in html
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
        ({"message": "2", "verdict": "helpful"}, 400),
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
