"""Tests of the prompts about incidents."""

from __future__ import annotations

from core.model_calls.prompts import Named
from core.model_calls.prompts import incidents as prompts
from tests.fakes.investigation import FakeTool

INCIDENT = "Checkout answers 503 since 14:05."


def test_all_prompts_about_one_incident_begin_with_the_same_bytes() -> None:
    distilled = prompts.Distilled("", ("checkout",), (), (), ())
    case = prompts.TriageCase(INCIDENT, distilled, ("Payments (p): its pool is empty.",))
    documents = ["# Team a (A)\nThe checkout.", "# Team b (B)\nThe cables."]
    asked = {
        "choose": prompts.choose_owner(["An outage."], INCIDENT, [Named("a", "The checkout.")]),
        "distil": prompts.distil(INCIDENT, ["cable"], {"checkout": 1.0}, ["till"]),
        "summarise": prompts.summarise_monitoring(case, "A", "The checkout.", "Errors."),
        "rank": prompts.rank(case, documents, 5),
        "vote": prompts.vote(case, documents, ["a voted for b"], "A", ""),
        "investigate": prompts.opening(INCIDENT, [FakeTool()], 15),
    }
    beginnings = {
        name: (messages[0], messages[1].text.partition(f"{INCIDENT}\n=====\n")[0]) for name, messages in asked.items()
    }
    assert len(set(beginnings.values())) == 1, beginnings
    assert asked["rank"][1].text.partition("=====\nWhat")[0] == asked["vote"][1].text.partition("=====\nWhat")[0]
    assert all(message.text.splitlines().count("=====") % 2 == 0 for each in asked.values() for message in each)
