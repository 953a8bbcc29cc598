"""The exam of a language model: find an excerpt, write an answer, use a tool, judge; 56 items whose right answer is known.

The excerpts share words, so that a model that only matches words does badly, and some questions have no answer. A model
that guesses finds one or two of twelve. All prompts of a part begin with the same excerpts, so that a server reads them
only once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from core.answering.claims import fault_of, source_of
from core.answering.reply import Form, claims, is_not_found
from core.model.document import DocumentKind, Passage
from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.model_calls.choice import NONE, VOUCHED, Skill, Trust, choose, structured
from core.model_calls.judge import SourceVerdict, judged
from core.model_calls.prompts import Named
from core.model_calls.prompts import answering as prompts
from core.ports import LanguageModel

# A model that is right in half of the items passes a part with a probability of 0.04 to 0.07, one that is right in four of
# five with 0.79 or 0.80.
FINDS = 9  # right choices of 12 from which it is used
WRITES = 12  # right answers of 16 from which it writes, and right verdicts from which it judges what it wrote
USES_TOOLS = 9  # right calls of 12 from which it investigates
QUANTILE = 1.96  # of the normal distribution, for an interval of 95 %
EXAM_VERSION = "exam-5"  # outcomes of other versions are ignored
WRITE_TOKENS = 200
TOOL_TOKENS = 60


EXCERPTS = (
    Named(
        "Rolling back",
        "`ferry rollback SERVICE` brings back the release before the current one on both clusters. It takes two minutes. The "
        "service is locked afterwards.",
    ),
    Named(
        "Locks",
        "A locked service takes no new release. The release captain unlocks it with `ferry unlock SERVICE` once the cause is "
        "known.",
    ),
    Named(
        "Canary",
        "A canary gets 5 % of the traffic for 20 minutes, then 25 % for an hour. When its error rate exceeds 1 %, it is taken "
        "back without anybody's doing.",
    ),
    Named(
        "Connections",
        "The pool of each service holds 40 connections. The database itself accepts 300; beyond that it answers `too many "
        "clients`.",
    ),
    Named(
        "Backups",
        "A full backup is taken every night at 02:30 and kept for 35 days. Restoring one takes about three hours and is "
        "approved by the data team.",
    ),
    Named(
        "Migrations",
        "Migrations run before the new release starts. One that locks a table for more than five seconds is refused by the "
        "pipeline.",
    ),
    Named(
        "Handover",
        "Shifts change on Mondays at 10:00. Whoever leaves writes down the open incidents in the handover page.",
    ),
    Named(
        "Escalation",
        "If a page is not acknowledged within 15 minutes, the second on call is paged, and after 30 minutes the head of "
        "engineering.",
    ),
)

SHOWN = tuple(prompts.Numbered(number, each.name, each.text) for number, each in enumerate(EXCERPTS, start=1))

QUESTIONS = (
    ("How do I return to the previous version of a service?", "Rolling back", r"ferry rollback"),
    (
        "My deployment is rejected because the service is locked. Who can lift that?",
        "Locks",
        r"release captain|ferry unlock",
    ),
    ("What share of requests goes to a new version at first?", "Canary", r"\b5 ?%"),
    ("How many clients can be connected to the database at most?", "Connections", r"\b300\b"),
    ("For how long can I get back data that was deleted?", "Backups", r"\b35 days"),
    ("Why does the pipeline turn down my schema change?", "Migrations", r"(?:five|5) ?s(?:econds)?\b"),
    ("When does the next person take over the pager?", "Handover", r"Monday.*10:00"),
    ("What happens if nobody reacts to an alert?", "Escalation", r"second on call"),
    ("At what error rate is a new version withdrawn?", "Canary", r"\b1 ?%"),
    ("How do I rotate the password of the database?", NONE, ""),
    ("Which cloud region do the clusters run in?", NONE, ""),
    ("How much is somebody paid for a shift on call?", NONE, ""),
    ("How long does it take to return to the previous version?", "Rolling back", r"(?:two|2) ?min"),
    ("Who agrees to a restore?", "Backups", r"data team"),
    ("How many connections does one service hold?", "Connections", r"\b40\b"),
    ("How do I create a new service?", NONE, ""),
)
"""Each question, the name of the excerpt that answers it, and an expression for its answer; the first TO_FIND for both parts."""
TO_FIND = 12


class ExamTool(StrEnum):
    """The tools of the exam. The value is the name that a model gives."""

    LOGS = "logs"  # of a service
    METRICS = "metrics"  # of a service
    CHANGES = "changes"  # commits and deployments of a service
    TRACES = "traces"  # calls between services
    CLUSTER = "cluster"  # pods, events and nodes
    INCIDENTS = "past_incidents"


SITUATIONS = (
    ("Was something deployed to booking-api before its error rate doubled?", ExamTool.CHANGES, "booking-api"),
    ("What does ledger write when a transfer fails?", ExamTool.LOGS, "ledger"),
    ("Has the latency of search-index grown over the last hours?", ExamTool.METRICS, "search-index"),
    ("Which service does checkout wait for when it is slow?", ExamTool.TRACES, "checkout"),
    ("Is a container of notifier restarting, and why was it killed?", ExamTool.CLUSTER, "notifier"),
    ("Did the same alert of timetable have a known cause some months ago?", ExamTool.INCIDENTS, "timetable"),
    ("Who merged a commit that touches the retry limit of mailer?", ExamTool.CHANGES, "mailer"),
    ("Which exception does pricing throw since noon?", ExamTool.LOGS, "pricing"),
    ("How full is the connection pool of accounts?", ExamTool.METRICS, "accounts"),
    ("Can the pods of importer be scheduled?", ExamTool.CLUSTER, "importer"),
    ("Which of the calls of a request to gateway takes longest?", ExamTool.TRACES, "gateway"),
    ("How did we solve it the last time that reports ran out of disk?", ExamTool.INCIDENTS, "reports"),
)
"""Each question of an investigation, the tool that answers it, and the service that it is about."""


STATEMENTS = (
    ("After a rollback, the service stays locked.", "A rollback changes one cluster at a time."),
    (
        "Only the release captain lifts a lock, and not before the cause has been found.",
        "A locked service can be unlocked at any time with `ferry unlock SERVICE`.",
    ),
    (
        "For the first 20 minutes, one request in twenty reaches the canary.",
        "Somebody has to withdraw a canary whose error rate is above 1 %.",
    ),
    ("The database turns connections away once 300 are open.", "A service may open 300 connections."),
    (
        "The data team has to agree before a backup is restored.",
        "The data team takes a full backup in about three hours.",
    ),
    ("The new release starts once the migrations have run.", "A migration is run once the new release has started."),
    (
        "The person whose shift ends notes which incidents are still open.",
        "The person whose shift begins writes the handover page.",
    ),
    (
        "The head of engineering is paged if nobody has reacted for half an hour.",
        "The head of engineering is paged first, and then the second on call.",
    ),
)
"""For each excerpt, a statement that it says, and one that it does not say."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool about one service."""

    tool: ExamTool
    service: Annotated[str, Field(max_length=60)]


@dataclass(frozen=True, slots=True)
class Marks:
    """The number of right items of each part."""

    find: int
    write: int
    tool: int
    judge: int = 0

    def __str__(self) -> str:
        return (
            f"find {self.find}/{FULL.find}, write {self.write}/{FULL.write}, use a tool {self.tool}/{FULL.tool}, "
            f"judge {self.judge}/{FULL.judge}"
        )


FULL = Marks(TO_FIND, len(QUESTIONS), len(SITUATIONS), 2 * len(STATEMENTS))


async def examined(model: LanguageModel, request: ModelRequest) -> Marks:
    """Return the marks of a model; 0 for the other parts if it cannot find. Raises ModelUnavailable and PromptTooLong."""
    count = await _right(_finds(model, request, question, name) for question, name, _ in QUESTIONS[:TO_FIND])
    if count < FINDS:
        return Marks(count, 0, 0)
    wrote = await _right(_writes(model, request, question, answer) for question, _, answer in QUESTIONS)
    called = await _right(_calls(model, request, *situation) for situation in SITUATIONS)
    return Marks(count, wrote, called, await _right([_judges(model, request)]) if wrote >= WRITES else 0)


async def _right(items: Iterable[Awaitable[int]]) -> int:
    """Return how many items are right, asked one after the other; one with an invalid reply is wrong."""
    right = 0
    for item in items:
        with suppress(InvalidReply):
            right += await item
    return right


async def _finds(model: LanguageModel, request: ModelRequest, question: str, name: str) -> bool:
    names = [excerpt.name for excerpt in EXCERPTS]
    distribution = await choose(model, request, prompts.choose(EXCERPTS, question), names)
    return [*names, NONE][distribution.index(max(distribution))] == name


async def _writes(model: LanguageModel, request: ModelRequest, question: str, answer: str) -> bool:
    prompt = replace(request, messages=prompts.write(SHOWN, question), max_tokens=WRITE_TOKENS)
    return is_right((await model.generate(prompt)).text, question, answer)


async def _calls(model: LanguageModel, request: ModelRequest, question: str, tool: ExamTool, service: str) -> bool:
    prompt = replace(request, messages=prompts.call_tool(list(ExamTool), question), max_tokens=TOOL_TOKENS)
    call = await structured(model, prompt, Call)
    return call.tool is tool and call.service.strip() == service


async def _judges(model: LanguageModel, request: ModelRequest) -> int:
    """Return the number of right verdicts: each excerpt says the first of its statements, and not the second."""
    statements = [
        Named(f"{text} [{excerpt.number}]", "")
        for excerpt, texts in zip(SHOWN, STATEMENTS, strict=True)
        for text in texts
    ]
    messages = prompts.judge(SHOWN, "How are releases, backups and shifts run here?", statements)
    verdicts = await judged(messages, len(statements), model, request)
    return sum((verdict is SourceVerdict.SAID) is (place % 2 == 0) for place, verdict in enumerate(verdicts))


def is_right(reply: str, question: str, answer: str) -> bool:
    """Return whether a reply states the answer, and no rule excludes that the excerpts cited by its first sentence say it.

    If there is no answer, only a reply that says so is right.
    """
    if not answer or is_not_found(reply):
        return not answer and is_not_found(reply)
    first = next((claim for claim in claims(reply) if claim.form is not Form.LEAD), None)
    if first is None or not re.search(answer, reply, re.IGNORECASE | re.DOTALL):
        return False
    cited = [_passage(EXCERPTS[number - 1]) for number in first.numbers if 0 < number <= len(EXCERPTS)]
    return bool(cited) and fault_of(first.text, question, source_of(cited)) is None


def _passage(excerpt: Named) -> Passage:
    return Passage(
        excerpt.name,
        excerpt.name,
        1,
        excerpt.name,
        "",
        excerpt.text,
        "",
        DocumentKind.PAGE,
        "",
        "",
        None,
        frozenset(),
        "",
    )


def skill_of(marks: Marks) -> Skill | None:
    """Return the skill of a model with these marks; None if they are too low to use it."""
    if marks.find < FINDS:
        return None
    return Skill(
        _proven(marks.find, FULL.find),
        _proven(marks.write, FULL.write) if marks.write >= WRITES else 0.0,
        _proven(marks.tool, FULL.tool) if marks.tool >= USES_TOOLS else 0.0,
        _proven(marks.judge, FULL.judge) if marks.judge >= WRITES else 0.0,
    )


def skill_under(trust: Trust, marks: Marks | None) -> Skill | None:
    """Return the skill that the operator's trust gives a model with these marks; None if it is not used."""
    if trust is Trust.MEASURED:
        return skill_of(marks) if marks is not None else None
    return VOUCHED if trust is Trust.ALWAYS else None


def _proven(right: int, count: int) -> float:
    """Return the lower end of Wilson's 95 % interval of a share, because few items leave much to luck."""
    share, spread = right / count, QUANTILE**2 / count
    return (share + spread / 2 - math.sqrt(spread * (share * (1 - share) + spread / 4))) / (1 + spread)
