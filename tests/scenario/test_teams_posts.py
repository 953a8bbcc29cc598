"""A post arrives in the thread where it belongs, on both transports."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import ChatClosed, ChatUnavailable
from core.model.messages import AnswerMessage, IncidentDetails, IncidentMessage
from tests.fakes.teams_adapter import TeamsAdapter
from tests.fakes.teams_connector import CHANNEL, GROUP_CHAT, PERSONAL_CHAT, TENANT, Failure
from tests.samples import answer, excerpt_answer, explained_incident, explanation, incident
from tests.scenario.teams import ANSWER, THREAD, chat, teams

__all__ = ["chat", "teams"]  # the fixtures

SCHEMA = {"type": "https://schema.org/Message", "@type": "Message", "@context": "https://schema.org", "@id": ""}


async def test_an_answer_is_posted_into_the_thread(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    reference = await teams.messenger.post(teams.inbox.questions[0].place, ANSWER, "answer")
    [sent] = teams.connector.sent
    assert sent.conversation == f"{CHANNEL};messageid=1700000000001"
    assert sent.activity["type"] == "message"
    assert sent.activity["attachments"][0]["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert sent.activity["summary"].startswith("Run `slipway rollback SERVICE`")
    assert sent.authorization == "Bearer token-1"
    assert reference == MessageReference(THREAD, sent.id)


async def test_an_answer_brings_its_citations_and_thumbs_and_an_edit_does_as_well(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    reference = await teams.messenger.post(teams.inbox.questions[0].place, ANSWER, "answer")
    await teams.messenger.edit(reference, ANSWER)
    for shown in (*teams.connector.sent, *teams.connector.updated):
        assert "text" not in shown.activity  # Teams would make two messages of it, and tell the id of neither
        assert shown.activity["channelData"] == {"feedbackLoop": {"type": "default"}}
        [about] = shown.activity["entities"]
        first, _ = about.pop("citation")
        assert about == SCHEMA  # neither a model wrote it, nor is a source restricted
        assert (first["@type"], first["position"]) == ("Claim", 1)
        cited = answer().citations[0]
        assert first["appearance"] == {
            "@type": "DigitalDocument",
            "name": "Rolling back › During a canary",
            "abstract": cited.quote,
            "url": cited.deep_link,
        }


async def test_what_a_model_wrote_is_labelled_and_what_it_chose_is_not(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    place = teams.inbox.questions[0].place
    chosen = excerpt_answer(engine="qwen3-8b")
    written = explained_incident(explanation=explanation(engine="qwen3-8b"))
    for number, message in enumerate(
        (AnswerMessage(answer(engine="qwen3-8b")), AnswerMessage(chosen), ANSWER, IncidentMessage(written))
    ):
        await teams.messenger.post(place, message, f"answer-{number}")
    labels = [
        [each.get("additionalType") for each in sent.activity.get("entities", ())] for sent in teams.connector.sent
    ]
    assert labels == [[["AIGeneratedContent"]], [None], [None], [["AIGeneratedContent"]]]


async def test_a_source_that_not_everybody_may_read_is_labelled_as_restricted(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    open_, closed = answer().citations
    message = AnswerMessage(answer(citations=(open_, replace(closed, restricted=True))))
    await teams.messenger.post(teams.inbox.questions[0].place, message, "answer")
    [about] = teams.connector.sent[-1].activity["entities"]
    assert about["usageInfo"]["name"] == "Restricted"
    assert ["usageInfo" in claim["appearance"] for claim in about["citation"]] == [False, True]


async def test_an_incident_begins_a_thread_and_its_details_follow_in_it(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity(type="installationUpdate", action="add", text=None))
    root = await teams.messenger.post(Place(Platform.TEAMS, CHANNEL), IncidentMessage(incident()), "incident")
    await teams.messenger.edit(root, IncidentMessage(explained_incident()))
    thread = Place(Platform.TEAMS, CHANNEL, root.message_id)
    await teams.messenger.post(thread, IncidentDetails(explained_incident()), "details")
    posted, details = teams.connector.sent
    [edited] = teams.connector.updated
    assert posted.conversation == CHANNEL
    assert details.conversation == f"{CHANNEL};messageid={root.message_id}"
    assert (edited.conversation, edited.id) == (f"{CHANNEL};messageid={root.message_id}", root.message_id)
    assert "Payments" in str(edited.card)
    assert "Payments" not in str(posted.card)


@pytest.mark.parametrize(("conversation", "kind"), [(PERSONAL_CHAT, "personal"), (GROUP_CHAT, "groupChat")])
async def test_a_chat_has_no_threads(teams: TeamsAdapter, conversation: str, kind: str) -> None:
    here = {"id": conversation, "conversationType": kind, "tenantId": TENANT}
    await teams.deliver(teams.connector.activity(conversation=here))
    place = teams.inbox.questions[0].place
    reference = await teams.messenger.post(place, ANSWER, "answer")
    await teams.messenger.post(Place(Platform.TEAMS, conversation, reference.message_id), ANSWER, "more")
    await teams.messenger.edit(reference, ANSWER)
    shown = [*teams.connector.sent, *teams.connector.updated]
    assert [message.conversation for message in shown] == [conversation] * 3


async def test_where_a_personal_chat_has_threads_each_answer_stands_where_it_was_asked(teams: TeamsAdapter) -> None:
    asked_in = [PERSONAL_CHAT, f"{PERSONAL_CHAT};messageid=1700000000001"]
    for conversation in asked_in:
        here = {"id": conversation, "conversationType": "personal", "tenantId": TENANT}
        await teams.deliver(teams.connector.personal(conversation=here))
    for question in teams.inbox.questions:
        await teams.messenger.edit(await teams.messenger.post(question.place, ANSWER, question.id), ANSWER)
    assert [sent.conversation for sent in teams.connector.sent] == asked_in
    assert [updated.conversation for updated in teams.connector.updated] == asked_in


async def test_a_channel_that_never_spoke_is_reached_the_way_its_tenant_was(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.personal())
    place = Place(Platform.TEAMS, "19:never-heard-of@thread.tacv2")
    root = await teams.messenger.post(place, IncidentMessage(incident()), "incident")
    await teams.messenger.post(Place(Platform.TEAMS, place.channel, root.message_id), ANSWER, "details")
    assert [sent.conversation for sent in teams.connector.sent] == [
        place.channel,
        f"{place.channel};messageid={root.message_id}",
    ]


async def test_before_anybody_spoke_a_post_says_what_to_do(teams: TeamsAdapter) -> None:
    with pytest.raises(ChatClosed, match="Add the app to that team"):
        await teams.messenger.post(THREAD, ANSWER, "answer")


async def test_a_stored_address_that_is_not_teams_is_never_called(teams: TeamsAdapter) -> None:
    elsewhere = {"service_url": "https://attacker.example/", "tenant_id": TENANT, "threaded": True}
    await teams.references.put(CHANNEL, elsewhere)
    with pytest.raises(ChatClosed):
        await teams.messenger.post(THREAD, ANSWER, "answer")


async def test_what_is_known_already_is_not_written_again(chat: TeamsAdapter) -> None:
    for number in range(5):
        await chat.deliver(chat.connector.activity(id=str(number)))
    assert chat.references.writes == len(chat.references.stored)


async def test_a_very_long_conversation_id_is_sent_whole(teams: TeamsAdapter) -> None:
    conversation = {"id": "a:" + "x" * 300, "conversationType": "personal", "tenantId": TENANT}
    await teams.deliver(teams.connector.personal(conversation=conversation))
    await teams.messenger.post(teams.inbox.questions[0].place, ANSWER, "answer")
    assert teams.connector.sent[0].conversation == conversation["id"]


async def test_a_post_whose_caller_was_cancelled_is_found(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    posting = asyncio.create_task(teams.messenger.post(THREAD, ANSWER, "answer"))
    await asyncio.sleep(0)
    posting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await posting
    assert await teams.messenger.find(THREAD, "answer") == MessageReference(THREAD, teams.connector.sent[0].id)
    assert len(teams.connector.sent) == 1


async def test_a_post_that_failed_or_was_never_made_is_not_found(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    teams.connector.failures = [Failure(503)]
    with pytest.raises(ChatUnavailable):
        await teams.messenger.post(THREAD, ANSWER, "answer")
    assert await teams.messenger.find(THREAD, "answer") is None
    assert await teams.messenger.find(THREAD, "another") is None
