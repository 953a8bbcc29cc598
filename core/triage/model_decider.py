"""The Triage Decider with a language model: which teams take part in the discussion (Triangle, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.model.language_model import ModelRequest
from core.model.team import Team
from core.model_calls.prompts import triage as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel
from core.triage.candidates import FROM_DOCUMENTS, GROUP
from core.triage.model_case import TriageCase
from core.triage.model_documents import TeamDocuments

RANK_TOKENS = 600  # room for the longest ranking, also where a token is a byte


async def choose_group(
    model: LanguageModel,
    request: ModelRequest,
    case: TriageCase,
    from_history: Sequence[Team],
    teams: Sequence[Team],
    documents: TeamDocuments,
) -> tuple[Team, ...]:
    """At most GROUP teams, the likeliest first.

    `teams` are all that have not turned the incident away, the likeliest first as far as the evidence tells;
    `from_history` are the candidates from history, none once the incident is reassigned. Raises what the model raises.
    """
    request = replace(request, max_tokens=RANK_TOKENS)

    async def ranked(pool: Sequence[Team], count: int) -> tuple[Team, ...]:
        if len(pool) <= count:
            return tuple(pool)
        shown = await documents.fitting(pool, lambda held: prompts.rank(case.text, held, count), request)
        asked = replace(request, messages=prompts.rank(case.text, shown.documents, count))
        known = {team.id: team for team in shown.teams}
        reply = await structured(model, asked, prompts.Ranking, {"teams": tuple(known)})
        return tuple(known[team] for team in dict.fromkeys(reply.teams))

    from_documents = await ranked(teams, FROM_DOCUMENTS)
    candidates = {team.id: team for team in (*from_history, *from_documents)}
    return (await ranked(tuple(candidates.values()), GROUP))[:GROUP]
