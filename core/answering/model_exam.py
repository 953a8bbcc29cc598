"""An exam for language models: eight excerpts, and twelve questions for which the answering excerpt is known.

The excerpts share words, so that a model that only matches words does badly, and three questions have no answer. A
model that chooses at random gets one or two right. All prompts begin with the same excerpts, so that a server reads
them only once.
"""

from __future__ import annotations

import math

from core.answering.model_answer import VERSION
from core.model.language_model import ModelRequest
from core.model_calls.choice import NONE, Skill, choose
from core.model_calls.prompts import answering as prompts
from core.model_calls.prompts.quoted import Named
from core.ports import LanguageModel

# Right choices of twelve from which a model is used. A guessing one has 1 or 2. One of 1.5 B has 7 and made answers worse;
# one as good as that reaches 8 with a probability of 0.39, and 10 with 0.07.
CHOOSES = 10
COMPOSES = 11  # right choices from which its sentences are shown above the excerpts
QUANTILE = 1.96  # of the normal distribution, for an interval of 95 %
EXAM_VERSION = f"{VERSION}-exam-1"  # outcomes of other versions are ignored

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

QUESTIONS = (
    ("How do I return to the previous version of a service?", "Rolling back"),
    ("My deployment is rejected because the service is locked. Who can lift that?", "Locks"),
    ("What share of requests goes to a new version at first?", "Canary"),
    ("How many clients can be connected to the database at most?", "Connections"),
    ("For how long can I get back data that was deleted?", "Backups"),
    ("Why does the pipeline turn down my schema change?", "Migrations"),
    ("When does the next person take over the pager?", "Handover"),
    ("What happens if nobody reacts to an alert?", "Escalation"),
    ("At what error rate is a new version withdrawn?", "Canary"),
    ("How do I rotate the password of the database?", NONE),
    ("Which cloud region do the clusters run in?", NONE),
    ("How much is somebody paid for a shift on call?", NONE),
)


async def examined(model: LanguageModel, request: ModelRequest) -> int:
    """Return how many of QUESTIONS the model answers with the right name. Raises the errors of the port."""
    names = [excerpt.name for excerpt in EXCERPTS]
    right = 0
    for question, name in QUESTIONS:
        told = await choose(model, request, prompts.choose(EXCERPTS, question), names)
        right += [*names, NONE][told.index(max(told))] == name
    return right


def skill_of(right: int) -> Skill | None:
    """Return the skill of a model with this number of right choices; None if it is too low to use the model."""
    proven = _proven(right, len(QUESTIONS))
    return Skill(proven, proven if right >= COMPOSES else 0.0) if right >= CHOOSES else None


def _proven(right: int, count: int) -> float:
    """Return the lower end of Wilson's 95 % interval of a share, because twelve questions leave much to luck."""
    share, spread = right / count, QUANTILE**2 / count
    return (share + spread / 2 - math.sqrt(spread * (share * (1 - share) + spread / 4))) / (1 + spread)
