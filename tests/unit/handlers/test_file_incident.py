from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.secret_detector import SecretPatterns
from core.incidents.postmortem import MAX_TITLE
from core.knowledge.redactor import Redactor
from core.model.conversation import Channel, Person, Place, Platform, channel_audience
from core.model.errors import SourceUnavailable
from core.model.findings import Evidence, EvidenceKind
from core.model.incident import Filed, Filing, FilingKind, FilingTarget, marker_of
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, FilingRequest, Notice
from handlers.common.ports import Ports
from handlers.common.post_message import Poster
from handlers.incidents.file_incident import NOT_ALLOWED, NOT_YET, ask_to_file, draft_of, file_report
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.publisher_servers import FakePublisher
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident, explanation, hypothesis, resolved_incident

ADA = Person(Platform.SLACK, "U1", "Ada")
THREAD = Place(Platform.SLACK, "C0INC", "17.25")
OPEN, PRIVATE = (
    Channel("incidents", {Platform.SLACK: "C0INC"}),
    Channel("incidents", {Platform.SLACK: "C0INC"}, private=True),
)
BOARD = FilingTarget("Payments board", FilingKind.ISSUE, frozenset({"incidents"}))
WIKI = FilingTarget("Wiki", FilingKind.POSTMORTEM, frozenset({"incidents"}))
NARROW = replace(BOARD, readers=frozenset({"channel:incidents"}))


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.incidents.by_id["i1"] = explained_incident(id="i1", revision=1)
    return store


def desk(
    store: InMemoryStore,
    publisher: FakePublisher,
    *targets: FilingTarget,
    channel: Channel = OPEN,
    chat: RecordingMessenger | None = None,
) -> Ports:
    offered = targets or (BOARD, WIKI)
    redactor = Redactor(SecretPatterns())
    return some_ports(
        store=store,
        poster=Poster(store, {Platform.SLACK: chat} if chat is not None else {}),
        channels=(channel,),
        targets=offered,
        publishers={each.name: publisher for each in offered},
        redact=redactor,
    )


def press(
    verdict: ButtonAction,
    press_id: str = "p1",
    *,
    channel: Channel = OPEN,
    choice: str = "Payments board",
    text: str = "Text",
    title: str = "Till",
) -> Feedback:
    audience = channel_audience(THREAD, (channel,))
    return Feedback(press_id, verdict, "i1", ADA, THREAD, FakeClock().now(), text, audience, choice, title=title)


async def filed(feedback: Feedback, at: Ports) -> tuple[Filing, ...]:
    store = at.store
    assert isinstance(store, InMemoryStore)
    await file_report(feedback, at)
    return store.incidents.by_id["i1"].filings


def said(chat: RecordingMessenger) -> list[str]:
    return [message.text for _, message in chat.posted if isinstance(message, Notice)]


async def test_a_process_that_dies_after_writing_finds_what_it_wrote(
    store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = FakePublisher()
    at = desk(store, publisher, chat=chat)

    async def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("handlers.incidents.file_incident._record", dies)
        with pytest.raises(KeyboardInterrupt):
            await filed(press(ButtonAction.FILE), at)
    assert len(publisher.written) == 1
    assert said(chat) == []
    await filed(press(ButtonAction.FILE), at)
    (filing,) = await filed(press(ButtonAction.FILE), at)  # a step may run once more after its end
    assert filing.filed is not None
    assert len(publisher.written) == len(said(chat)) == 1


async def test_a_tracker_that_answers_late_is_asked_before_anything_is_written_again(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    publisher = FakePublisher(failure="The board did not answer.", fails_late=True)
    at = desk(store, publisher, chat=chat)
    (filing,) = await filed(press(ButtonAction.FILE, text="Typed by hand"), at)
    assert (filing.filed, filing.text, filing.problem) == (None, "Typed by hand", "The board did not answer.")
    assert "Your draft is kept" in said(chat)[0]
    publisher.failure = ""
    (filing,) = await filed(press(ButtonAction.FILE, "p2", title="Till, again"), at)
    assert (filing.title, filing.filed) == (
        "Till",
        Filed("PAY-1", f"https://board.example/{marker_of('i1', BOARD.name)}"),
    )
    assert len(publisher.written) == 1
    assert "your later changes are not in it" in said(chat)[1], "the second text is not claimed to be there"


async def test_a_title_that_a_system_cannot_be_asked_about_is_kept_until_it_can(
    store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = FakePublisher(failure="No answer.", fails_late=True)
    at = desk(store, publisher, chat=chat)
    await filed(press(ButtonAction.FILE), at)

    async def fails(_: object) -> None:
        raise SourceUnavailable("Slow down.", 12.2)

    with monkeypatch.context() as patched:
        patched.setattr(publisher, "find", fails)
        (filing,) = await filed(press(ButtonAction.FILE, "p2", title="New", text="New"), at)
    assert (filing.title, filing.text) == ("Till", "New")
    assert "It asks to wait 13 s." in said(chat)[1]
    await filed(press(ButtonAction.FILE, "p3", title="New"), at)
    assert len(publisher.written) == 1


async def test_what_a_tracker_does_not_show_at_once_is_waited_for(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    publisher = FakePublisher(failure="No answer.", settles_after=60.0)
    at = desk(store, publisher, chat=chat)
    await filed(press(ButtonAction.FILE), at)
    with pytest.raises(SourceUnavailable) as waiting:
        await filed(press(ButtonAction.FILE, "p2"), at)
    assert waiting.value.retry_after == 60.0
    publisher.failure = ""
    assert isinstance(at.clock, FakeClock)
    at.clock.advance(60)
    (filing,) = await filed(press(ButtonAction.FILE, "p2"), at)
    assert filing.filed is not None


async def test_the_second_of_two_people_is_led_to_what_the_first_one_filed(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    publisher = FakePublisher()
    for press_id in ("p1", "p2"):
        await filed(press(ButtonAction.FILE, press_id), desk(store, publisher, chat=chat))
    assert len(publisher.written) == 1
    assert "has already filed this in Payments board: https://board.example/" in said(chat)[1]


@pytest.mark.parametrize(
    ("targets", "channel", "allowed"),
    [
        ((BOARD,), OPEN, True),
        ((NARROW,), OPEN, True),
        ((BOARD,), PRIVATE, False),  # everybody reads the board, and not everybody the incident
        ((NARROW,), PRIVATE, True),
        ((replace(BOARD, channels=frozenset({"elsewhere"})),), OPEN, False),
        ((replace(BOARD, people=frozenset({"slack:U2"})),), OPEN, False),
        ((replace(BOARD, people=frozenset({"slack:U1"})),), OPEN, True),
        ((WIKI,), OPEN, False),
    ],
)
async def test_a_target_is_for_its_channels_its_people_and_no_more_readers_than_the_incident(
    store: InMemoryStore, chat: RecordingMessenger, targets: tuple[FilingTarget, ...], channel: Channel, allowed: bool
) -> None:
    publisher = FakePublisher()
    at = desk(store, publisher, *targets, channel=channel, chat=chat)
    asked = press(ButtonAction.CREATE_ISSUE, "p0", channel=channel)
    await ask_to_file(asked, at)
    ((_, answer),) = chat.posted
    assert isinstance(answer, FilingRequest) is allowed
    await filed(press(ButtonAction.FILE, channel=channel), at)
    assert len(publisher.written) == allowed
    assert (NOT_ALLOWED in said(chat)) is not allowed
    told = [message for _, message in chat.posted if isinstance(message, Notice) and message.text == NOT_ALLOWED]
    assert all(notice.only_for == asked.person for notice in told)


async def test_no_secret_reaches_the_draft_and_no_name_in_it_notifies_anybody(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    address = "https://git.example/@acme/till/runbook.md#rollback"
    found = Evidence(EvidenceKind.LOG, "log", f"@oncall see #12: token={secret} refused", url=address)
    found_out = explanation(hypotheses=(replace(hypothesis(), evidence=(found,)),))
    title = f"token={secret} @oncall {'@a' * 100}"
    store.incidents.by_id["i1"] = replace(
        resolved_incident().with_findings(explanation=found_out), id="i1", title=title
    )
    publisher = FakePublisher()
    at = desk(store, publisher, WIKI, chat=chat)
    draft = await draft_of(ButtonAction.PUBLISH_POSTMORTEM, "i1", channel_audience(THREAD, (OPEN,)), ADA, at)
    assert isinstance(draft, FilingRequest)
    assert f"<{address}>" in draft.text, "a link still leads there"
    assert len(draft.title) <= MAX_TITLE
    await filed(press(ButtonAction.FILE, choice="Wiki"), at)
    assert secret.casefold()[4:] not in publisher.written[0].path("postmortems")
    assert secret not in draft.text
    assert "token=" in draft.text
    assert "@oncall" not in draft.text
    assert "#12" not in draft.text


async def test_there_is_no_postmortem_of_what_is_not_over(store: InMemoryStore) -> None:
    draft = await draft_of(
        ButtonAction.PUBLISH_POSTMORTEM, "i1", channel_audience(THREAD, (OPEN,)), ADA, desk(store, FakePublisher())
    )
    assert draft == NOT_YET
