from __future__ import annotations

from dataclasses import replace

import pytest

from core.knowledge.redactor import Redact, without_redaction
from core.model.badge import RecordedFailure
from core.model.conversation import Audience, Person, Place, Platform, Question
from core.model.document import Document
from core.model.errors import NoFailedBuild, ToolUnavailable
from core.model.incident import Incident
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, Notice, NoticeKind
from core.ports import FailedBuild, TimeWindow, Tool
from core.triage.owner_model import IncidentHistory
from handlers.common.ports import Readers
from handlers.common.post_message import Poster
from handlers.incidents.explain_incident import explain_incident
from handlers.incidents.investigate_incident import incident_from
from handlers.incidents.observe_incident import observe_incident
from handlers.knowledge.learn_failing_lines import LEARNED, correct_failing_lines, judge_failing_lines
from tests.fakes.clock import FakeClock
from tests.fakes.failed_build import BUILD, LOG
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.outage import START
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

THREAD = Place(Platform.SLACK, "C1", "17.5")
PERSON = Person(Platform.SLACK, "U1")
LINK = "https://ci.example/job/till/71/"


class FakeBuilds:
    """Toolbox and BuildReader; every link leads to its build."""

    name = "ci"

    def __init__(self, build: FailedBuild | None = BUILD) -> None:
        self.build = build
        self.links: list[str] = []
        self.services: list[str] = []

    async def tools(self, services: object, window: TimeWindow) -> list[Tool]:
        raise AssertionError("only a language model asks")

    async def linked_failure(self, url: str) -> FailedBuild | None:
        self.links.append(url)
        return self.build

    async def last_failure(self, service: str, before: object) -> FailedBuild | None:
        self.services.append(service)
        return self.build


def question(text: str, number: int = 1) -> Question:
    return Question(f"q{number}", text, PERSON, THREAD, Audience(), START)


async def explained(
    text: str, store: InMemoryStore, builds: FakeBuilds, number: int = 1, redact: Redact = without_redaction
) -> Incident:
    return await explain_incident(
        incident_from(question(text, number), ["till"]),
        some_ports(
            readers=Readers((), (), (), {}, toolboxes=[builds]), store=store, clock=FakeClock(START), redact=redact
        ),
        history=IncidentHistory(()),
    )


def pressed(verdict: ButtonAction, subject: str, person: Person = PERSON) -> Feedback:
    return Feedback("f", verdict, subject, person, THREAD, START)


def quotes(incident: Incident) -> list[str]:
    assert incident.findings.explanation is not None
    assert incident.findings.explanation.cause is not None
    return [evidence.quote for evidence in incident.findings.explanation.cause.evidence]


async def say(text: str, store: InMemoryStore, number: int = 9) -> RecordingMessenger:
    chat = RecordingMessenger()
    poster = Poster(store, {Platform.SLACK: chat})
    is_handled = await correct_failing_lines(question(text, number), some_ports(store=store, poster=poster))
    assert is_handled is bool(chat.posted)
    return chat


async def test_a_link_to_a_run_is_followed_and_its_failing_lines_are_the_cause(store: InMemoryStore) -> None:
    builds = FakeBuilds()
    found = await explained(f"why did {LINK} fail?", store, builds)
    assert builds.links == [LINK]
    assert builds.services == []
    assert "E       assert 3 == 4" in quotes(found)


async def test_a_question_about_the_builds_of_a_service_reads_the_last_one_that_failed(store: InMemoryStore) -> None:
    builds = FakeBuilds()
    found = await explained("why does the build of till fail?", store, builds)
    assert builds.services == ["till"]
    assert "E       assert 3 == 4" in quotes(found)


async def test_an_incident_that_has_nothing_to_do_with_builds_reads_none(store: InMemoryStore) -> None:
    builds = FakeBuilds()
    found = await explained("till is slow", store, builds)
    assert (builds.links, builds.services) == ([], [])
    assert found.findings.explanation is not None
    assert found.findings.explanation.cause is None


async def test_right_cause_makes_the_lines_the_history_of_the_project(store: InMemoryStore) -> None:
    found = await explained(LINK, store, FakeBuilds())
    assert found.findings.explanation is not None
    prediction = found.findings.explanation.prediction_id or ""
    assert await _confirmed(store) == []
    await judge_failing_lines(pressed(ButtonAction.CAUSE_RIGHT, prediction), some_ports(store=store))
    assert [failure.id for failure in await _confirmed(store)] == [prediction]
    await judge_failing_lines(
        pressed(ButtonAction.CAUSE_WRONG, prediction, Person(Platform.SLACK, "U2")), some_ports(store=store)
    )
    assert [failure.confirmed_by for failure in await _confirmed(store)] == ["slack:U1"]
    await judge_failing_lines(pressed(ButtonAction.CAUSE_WRONG, prediction), some_ports(store=store))
    assert await _confirmed(store) == []


async def test_no_lines_are_learned_of_a_build_whose_runner_was_lost(store: InMemoryStore) -> None:
    lost = replace(BUILD, log="$ make test\nok 1\nok 2\n", stated="failed\nrunner_system_failure")
    assert quotes(await explained(LINK, store, FakeBuilds(lost))) == ["runner system failure"]
    assert not store.build_failures.by_id


async def test_a_button_under_another_cause_confirms_no_lines(store: InMemoryStore) -> None:
    await judge_failing_lines(pressed(ButtonAction.CAUSE_RIGHT, "cause:evidence:i1"), some_ports(store=store))
    assert store.build_failures.by_id == {}


async def test_a_correction_that_names_lines_decides_how_the_next_failure_is_read(store: InMemoryStore) -> None:
    first = await explained(LINK, store, FakeBuilds())
    assert quotes(first) != ["1 failed, 1 passed in 0.12s"]
    chat = await say("lines 9 to 9", store)
    text = LEARNED.format(project=BUILD.history_key, first=9, last=9)
    assert chat.posted[0][1] == Notice(text, NoticeKind.THANKS)
    (outcome,) = store.predictions.outcomes.values()
    assert (outcome.correct, outcome.labelled_by) == (False, "slack:U1")
    again = replace(BUILD, run="72", log=LOG.replace("3 == 4", "5 == 4"))
    assert quotes(await explained(LINK, store, FakeBuilds(again), number=2)) == ["1 failed, 1 passed in 0.12s"]


async def test_a_cause_that_stands_in_the_named_lines_was_right_wherever_they_begin(store: InMemoryStore) -> None:
    found = await explained(LINK, store, FakeBuilds())
    assert found.findings.explanation is not None
    assert found.findings.explanation.cause is not None
    assert found.findings.explanation.cause.cause.endswith(": tests: E assert 3 == 4.")
    (failure,) = store.build_failures.by_id.values()
    leading = LOG.split("\n").index("E       assert 3 == 4") + 1
    assert failure.lines != range(leading - 1, leading)
    await say(f"lines {leading}", store)
    (outcome,) = store.predictions.outcomes.values()
    assert outcome.correct


async def test_a_correction_that_is_repeated_after_the_chat_failed_still_says_that_the_shown_lines_were_wrong(
    store: InMemoryStore,
) -> None:
    await explained(LINK, store, FakeBuilds())
    for _ in range(2):  # with a new chat, which does not know that it has answered
        await say("lines 1 to 1", store)
        store.posts.by_intent.clear()
    (outcome,) = store.predictions.outcomes.values()
    assert not outcome.correct


async def test_lines_are_learned_where_the_claim_is_not_kept_any_more(store: InMemoryStore) -> None:
    await explained(LINK, store, FakeBuilds())
    store.predictions.by_id.clear()
    await say("lines 9 to 9", store)
    assert store.predictions.outcomes == {}
    assert len(await _confirmed(store)) == 1


async def test_lines_that_the_log_does_not_have_are_not_learned(store: InMemoryStore) -> None:
    await explained(LINK, store, FakeBuilds())
    chat = await say("lines 90 to 95", store)
    assert "has 12 lines" in str(chat.posted[0][1])
    assert await _confirmed(store) == []


@pytest.mark.parametrize("text", ["It is the disk.", "lines 3 to 4"])
async def test_any_other_correction_is_one_of_an_answer(text: str, store: InMemoryStore) -> None:
    if "lines" not in text:
        await explained(LINK, store, FakeBuilds())
    assert (await say(text, store)).posted == []


async def test_names_and_secrets_of_a_log_are_neither_shown_nor_kept(store: InMemoryStore) -> None:
    def redact(document: Document) -> Document:
        return replace(document, text=document.text.replace("s3cret", "[secret]"))

    leaking = replace(BUILD, log=LOG.replace("3 == 4", "'s3cret' == 4"))
    found = await explained(LINK, store, FakeBuilds(leaking), redact=redact)
    assert "E       assert '[secret]' == 4" in quotes(found)
    (kept,) = store.build_failures.by_id.values()
    assert "s3cret" not in kept.log
    assert "s3cret" not in repr(found)


async def _confirmed(store: InMemoryStore) -> list[RecordedFailure]:
    return await store.build_failures.confirmed(BUILD.history_key, 10)


class OtherBuilds(FakeBuilds):
    """A build server that knows no linked build, or says why there is no failure to show."""

    def __init__(self, problem: ToolUnavailable | None = None) -> None:
        super().__init__()
        self.problem = problem

    async def linked_failure(self, url: str) -> FailedBuild | None:
        self.links.append(url)
        if self.problem:
            raise self.problem
        return None


@pytest.mark.parametrize(
    "problem", [NoFailedBuild("run 71 of acme/till passed"), ToolUnavailable("ci answered with HTTP status 500.")]
)
async def test_a_linked_build_that_shows_no_failure_is_named_and_no_other_build_is_blamed(
    problem: ToolUnavailable,
) -> None:
    builds = OtherBuilds(problem)
    incident = await explained(f"Why did the build of till fail? {LINK}", InMemoryStore(), builds)
    assert incident.findings.explanation is not None
    assert incident.findings.explanation.cause is None
    assert any(str(problem).rstrip(".") in gap.text for gap in incident.findings.explanation.gaps)
    assert builds.services == []


@pytest.mark.parametrize(
    "link",
    [
        "https://github.com/acme/other/actions/runs/71",
        "https://circle.example/pipelines/github/acme/till/71/workflows/5b",
        "https://builds.example/till/builds/71#step-4",
        "https://teamcity.example/viewLog.html?buildId=71",
        "https://ci.example/view/all/job/till/",
    ],
)
@pytest.mark.parametrize("servers", [0, 1, 2])
async def test_a_link_to_a_build_that_no_server_knows_is_named_and_no_other_build_is_blamed(
    link: str, servers: int
) -> None:
    builds = OtherBuilds()
    asked = incident_from(question(f"Why did the build of till fail? {link}"), ["till"])
    readers = Readers((), (), (), {}, toolboxes=[builds] * servers)
    found = await observe_incident(asked, readers, history=IncidentHistory(()), clock=FakeClock(START))
    assert (link, "no run of a project that is configured under tools") in {
        (gap.tool, gap.detail) for gap in found.gaps
    }
    assert (found.builds, builds.services) == ((), [])


@pytest.mark.parametrize(
    "link", ["https://wiki.example/till/runbook", "https://grafana.example/d/x?from=1710000000000"]
)
async def test_a_link_to_another_page_does_not_hide_the_last_build(link: str) -> None:
    builds = OtherBuilds()
    incident = await explained(f"Why did the build of till fail? {link}", InMemoryStore(), builds)
    assert incident.findings.explanation is not None
    assert incident.findings.explanation.cause is not None
    assert link not in {gap.tool for gap in incident.findings.explanation.gaps}


async def test_two_jobs_of_one_run_are_two_builds() -> None:
    class Jobs(FakeBuilds):
        async def linked_failure(self, url: str) -> FailedBuild | None:
            return replace(BUILD, step=url[-1])

    asked = incident_from(question("https://ci.example/runs/7/job/1 and https://ci.example/runs/7/job/2"), ["till"])
    readers = Readers((), (), (), {}, toolboxes=[Jobs()])
    found = await observe_incident(asked, readers, history=IncidentHistory(()), clock=FakeClock(START))
    assert [build.step for build in found.builds] == ["1", "2"]
