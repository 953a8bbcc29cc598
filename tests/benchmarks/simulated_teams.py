"""A simulated language model that plays the agents of triage with a known probability of being right.

It understands an incident with probability `right`, drawn by its text, so that all agents are wrong together, as those of one
model are. Even then each manager slips in half of the other cases. What it does not understand, it gets wrong in one of
the ways in which models do (`Error`).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

from core.model.language_model import ModelRequest
from core.model_calls.choice import NONE
from core.model_calls.prompts.incidents import NOBODY
from tests.benchmarks.simulated import SimulatedModel

KEY = 200  # characters by which an incident is recognised

_INCIDENT = re.compile(r"^Today's incident:\n=====\n(.*?)\n=====$", re.DOTALL | re.MULTILINE)
_MANAGER = re.compile(r"You are the manager of team (.+?)\.\s")


class Error(StrEnum):
    OWN_TEAM = "every manager votes for its own team"
    OTHER_TEAM = "all vote for the same wrong team"
    SCATTERED = "each votes for any team"
    NOBODY = "none owns it"
    OUTSIDE = "a team that is not in the discussion"
    MALFORMED = "malformed"


class SimulatedTeams(SimulatedModel):
    """A SimulatedModel that also knows the owner of each incident, by its text."""

    def __init__(self, owners: Mapping[str, str], right: float) -> None:
        super().__init__((), right)
        self._right_share = right
        self._owners = {_key(text): owner for text, owner in owners.items()}

    def _restated(self, request: ModelRequest) -> str:
        prompt = _text(request)
        owner = self._owner(prompt)
        if owner is None or request.schema is None:
            return super()._restated(request)
        match request.schema["title"]:
            case "Distilled":
                return json.dumps({"aligned": "", "location": [], "symptoms": [], "capability": [], "services": []})
            case "Ranking":
                return json.dumps({"teams": self._ranked(owner, prompt, request.schema["properties"]["teams"])})
            case "Ballot":
                return self._ballot(owner, prompt, request.schema["properties"]["team"]["enum"])
            case _:
                return "{}"

    def _right_choice(self, request: ModelRequest, choices: Sequence[str]) -> str:
        owner = self._owner(_text(request))
        if owner is None or NONE not in choices:
            return super()._right_choice(request, choices)
        return owner if owner in choices else NONE

    def _ranked(self, owner: str, prompt: str, allowed: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
        teams = list(allowed["items"]["enum"])
        if not self._is_understood(prompt):
            random.Random(prompt).shuffle(teams)
        return sorted(teams, key=lambda team: team != owner or not self._is_understood(prompt))[:5]

    def _ballot(self, owner: str, prompt: str, allowed: Sequence[str]) -> str:
        draw, teams = random.Random(prompt), [each for each in allowed if each != NOBODY]
        wrong = [each for each in teams if each != owner] or [NOBODY]
        vote = draw.choice(wrong)
        if self._is_understood(prompt):
            slips = draw.random() > (1 + self._right_share) / 2
            return _vote(vote if slips else owner if owner in teams else NOBODY)
        incident = random.Random(self._incident(prompt))
        own = _MANAGER.findall(prompt)[-1]
        match incident.choice(list(Error)):
            case Error.OWN_TEAM:
                return _vote(own)
            case Error.OTHER_TEAM:
                return _vote(incident.choice(wrong))
            case Error.SCATTERED:
                return _vote(vote)
            case Error.NOBODY:
                return _vote(NOBODY)
            case Error.OUTSIDE:
                return _vote("the-night-shift")
            case Error.MALFORMED:
                return '{"reason": "'

    def _is_understood(self, prompt: str) -> bool:
        return random.Random(f"understood {self._incident(prompt)}").random() < self._right_share

    def _owner(self, prompt: str) -> str | None:
        return self._owners.get(self._incident(prompt))

    def _incident(self, prompt: str) -> str:
        match = _INCIDENT.search(prompt)
        return _key(match[1]) if match else ""


def _key(text: str) -> str:
    return "".join(character for character in text if character.isalnum())[:KEY]


def _vote(team: str) -> str:
    return json.dumps({"reason": "It runs what fails.", "team": team})


def _text(request: ModelRequest) -> str:
    return "\n".join(message.text for message in request.messages)
