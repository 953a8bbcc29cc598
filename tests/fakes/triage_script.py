"""A language model that plays the Analyser, the Triage Decider and the team managers by a script."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from core.model.errors import ModelUnavailable
from core.model.language_model import ModelRequest
from tests.fakes.language_model import ScriptedModel

_MANAGER = re.compile(r"You are the manager of team (.+?)\.\s")

Cast = Callable[[str, int], str | None]
"""The name of a manager's team and the round → the id that it votes for; None: it does not answer."""


@dataclass
class TriageScript:
    """`cast` says how the managers vote, `ranking` what the decider names of the teams that it may name."""

    cast: Cast
    ranking: Callable[[Sequence[str]], Sequence[str]] = lambda allowed: allowed[:5]
    distilled: bool = True
    voted: dict[str, int] = field(default_factory=dict[str, int])

    def __call__(self, request: ModelRequest) -> str:
        assert request.schema is not None
        return getattr(self, f"_{request.schema['title'].lower()}")(request)

    def model(self, context: int = 8_192) -> ScriptedModel:
        return ScriptedModel(self, context=context)

    def _distilled(self, request: ModelRequest) -> str:
        if not self.distilled:
            return "I would rather not."
        offered = request.schema["properties"]["services"]["items"].get("enum", []) if request.schema else []
        phrases = {"location": ["hall 3"], "symptoms": ["sparks"], "capability": ["wiring"], "services": []}
        if "till" in offered:
            phrases["services"] = ["till"]
        return json.dumps({"aligned": "Sparks in hall 3.", **phrases})

    def _ranking(self, request: ModelRequest) -> str:
        assert request.schema is not None
        return json.dumps({"teams": self.ranking(request.schema["properties"]["teams"]["items"]["enum"])})

    def _documentsummary(self, _: ModelRequest) -> str:
        return json.dumps({"owns": "In short.", "does_not_own": ""})

    def _monitoringsummary(self, request: ModelRequest) -> str:
        return json.dumps({"events": f"{_manager(request)} saw a spark.", "relation": "It is it.", "suggestions": ""})

    def _ballot(self, request: ModelRequest) -> str:
        team = _manager(request)
        self.voted[team] = self.voted.get(team, 0) + 1
        vote = self.cast(team, self.voted[team])
        if vote is None:
            raise ModelUnavailable("The model is overloaded.")
        return json.dumps({"reason": f"{team} says {vote}", "team": vote})


def _manager(request: ModelRequest) -> str:
    return _MANAGER.findall(request.messages[-1].text)[-1]  # what stands before is data, in which anything may be said
