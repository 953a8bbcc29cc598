from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.language_model import Action, Finding, Responsibility
from core.ports import ToolParameter
from core.rca.agent.actions import EARLIEST_FINALISE, Call, Choices, RefusedAction, Snapshots, parse, schema
from tests.cases import every_case
from tests.fakes.investigation import SERVICES, FakeTool, call, finalise

LOGS = FakeTool()
EXPERT = FakeTool("analyse_log", parameters=(ToolParameter("material", "an observation", snapshot=True),))
ENOUGH: set[Call] = {("read_logs", frozenset({("service", name)})) for name in SERVICES}


def choices(
    called: set[Call] | None = None, snapshots: Snapshots | None = None, *, must_finalise: bool = False
) -> Choices:
    return Choices((LOGS, EXPERT), SERVICES, snapshots or Snapshots(), called or set(), must_finalise)


def offered(chosen: Choices) -> list[tuple[str, tuple[str, ...]]]:
    """Tool and first argument's values of every option in the schema."""
    options = schema(chosen)["properties"]["action"]["anyOf"]
    return [
        (
            option["properties"]["tool"]["const"],
            tuple(next(iter(list(option["properties"].values())[1:]), {}).get("enum", ())),
        )
        for option in options
    ]


def refusal(reply: str, chosen: Choices) -> str:
    with pytest.raises(RefusedAction) as refused:
        parse(reply, chosen)
    return str(refused.value)


def test_a_call_with_allowed_arguments_is_an_action() -> None:
    assert parse(call(service="db"), choices()) == Action("Let me look.", "read_logs", {"service": "db"})


def test_at_first_only_tools_that_can_be_called_are_offered() -> None:
    assert offered(choices()) == [("read_logs", SERVICES)]


def test_an_expert_is_offered_with_observations_that_are_long_enough() -> None:
    snapshots = Snapshots()
    key = snapshots.keep("ERROR " * 20, "read_logs(db)")
    short = snapshots.keep("Nothing was found.", "read_logs(api)")
    assert ("analyse_log", (key,)) in offered(choices(snapshots=snapshots))
    assert "material does not satisfy enum" in refusal(
        call("analyse_log", material=short), choices(snapshots=snapshots)
    )


def test_a_repeated_call_is_neither_offered_nor_taken() -> None:
    called: set[Call] = {("read_logs", frozenset({("service", "api")}))}
    assert offered(choices(called)) == [("read_logs", ("db",))]
    assert "before" in refusal(call(service="api"), choices(called))


def test_finalising_early_is_neither_offered_nor_taken() -> None:
    assert len(ENOUGH) >= EARLIEST_FINALISE
    assert "cannot be called now. Call one of read_logs" in refusal(finalise(), choices())
    assert "finalize" in dict(offered(choices(ENOUGH)))


def test_at_the_last_step_nothing_but_finalising_is_offered_or_taken() -> None:
    chosen = choices(must_finalise=True)
    assert [tool for tool, _ in offered(chosen)] == ["finalize"]
    assert "Call one of finalize" in refusal(call(service="db"), chosen)


def test_a_finding_is_read_and_bounded() -> None:
    found = parse(finalise(root_cause="x" * 10_000, evidence=["y" * 10_000] * 50), choices(ENOUGH))
    assert isinstance(found, Finding)
    assert found.responsibility is Responsibility.DEPENDENCY
    assert (len(found.root_cause), len(found.evidence), len(found.evidence[0])) == (300, 3, 200)


@every_case(
    ("reply", "advice"),
    [
        ("I would look at the logs.", "not valid JSON"),
        ("[]", "no action"),
        ('{"thought": "?"}', "no action"),
        ('{"action": "read_logs"}', "no action"),
        (
            call("kubectl_delete", pod="db-0"),
            "That tool cannot be called now. Call one of read_logs",
        ),
        (call(), "required: ['tool', 'service']"),
        (call(service="payments; rm -rf /"), "service does not satisfy enum: ['api', 'db']"),
        (call("analyse_log", material="obs_000000"), "cannot be called now"),
        (finalise(service="mainframe"), "service does not satisfy enum"),
        (finalise(responsibility="nobody"), "responsibility does not satisfy enum"),
        (finalise(root_cause=""), "root_cause does not satisfy minLength"),
    ],
)
def test_whatever_else_is_said_is_refused_with_advice(reply: str, advice: str) -> None:
    called = ENOUGH if "finalize" in reply else set[Call]()
    assert advice in refusal(reply, choices(called))


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["thought", "action", "tool"]), inner),
    max_leaves=8,
)


@given(json_values)
def test_no_reply_breaks_the_reader(said: object) -> None:
    with contextlib.suppress(RefusedAction):
        assert isinstance(parse(json.dumps(said), choices(ENOUGH)), Action | Finding)


def test_brackets_without_end_are_refused() -> None:
    assert "not valid JSON" in refusal("[" * 100_000, choices())


def test_of_more_choices_than_can_be_listed_all_stay_open() -> None:
    many = tuple(str(number) for number in range(1_000))
    tool = FakeTool("search", parameters=tuple(ToolParameter(name, "one of many", many) for name in "abcd"))
    used: set[Call] = {("search", frozenset((name, "0") for name in "abcd"))}
    chosen = Choices((tool,), SERVICES, Snapshots(), used, must_finalise=False)
    assert offered(chosen) == [("search", many)]
    assert parse(call("search", a="0", b="0", c="0", d="999"), chosen)
    assert "before" in refusal(call("search", a="0", b="0", c="0", d="0"), chosen)
