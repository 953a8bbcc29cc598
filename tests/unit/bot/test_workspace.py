from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapters.sources.folder import FolderSection
from adapters.tools.files import LogFilesTool
from bot.commands.demo import SAMPLE_COMPANY
from bot.config.workspace import load_workspace
from core.model.badge import Policy
from core.model.conversation import Channel, Platform
from core.model.errors import ConfigurationError
from core.model.team import Route, Team
from core.model_calls.metered_model import QuestionLimits

CHANNELS = "channels:\n  - {name: help, console: help}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "plumbline.yaml"


def complaint(file: Path, text: str) -> str:
    """The sentence with which this file is refused, without the file's name."""
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as raised:
        load_workspace(file)
    sentence = str(raised.value)
    assert re.fullmatch(r"[^\n]+\.", sentence)
    return sentence.removeprefix(str(file))


def test_without_a_file_there_is_one_channel_on_the_local_page() -> None:
    workspace = load_workspace(None)
    assert workspace.channels == (Channel("general", {Platform.CONSOLE: "general"}),)
    assert workspace.routes == (Route(("general",)),)


def test_an_empty_file_is_as_good_as_none(file: Path) -> None:
    file.write_text("# nothing yet\n")
    assert load_workspace(file) == load_workspace(None)


def test_the_sample_company_is_a_workspace() -> None:
    workspace = load_workspace(SAMPLE_COMPANY / "plumbline.yaml")
    assert len(workspace.teams) == 8
    assert all(team.document for team in workspace.teams)


def test_paths_are_relative_to_the_file(file: Path) -> None:
    (file.parent / "till.md").write_text("We run the till.")
    file.write_text(
        CHANNELS
        + "sources:\n  - {kind: folder, name: handbook, path: documents}\n"
        + "tools:\n  - {kind: log_files, path: /var/log/till}\n"
        + "teams:\n  - {id: payments, name: Payments, document: till.md, services: [till]}\n"
    )
    workspace = load_workspace(file)
    (source,), (tool,) = workspace.sources, workspace.tools
    assert isinstance(source, FolderSection)
    assert isinstance(tool, LogFilesTool)
    assert (source.path, tool.path) == (file.parent / "documents", Path("/var/log/till"))
    assert workspace.teams == (Team("payments", "Payments", "We run the till.", frozenset({"till"})),)


def test_without_routes_all_incidents_go_to_the_first_channel(file: Path) -> None:
    file.write_text(CHANNELS)
    assert load_workspace(file).routes == (Route(("help",)),)


def test_routes_keep_their_order_and_what_they_match(file: Path) -> None:
    match = "{team: payments, severity: [critical, warning]}"
    file.write_text(CHANNELS + f"routes:\n  - {{channels: [help], match: {match}}}\n  - {{channels: [help]}}\n")
    asked = (("team", frozenset({"payments"})), ("severity", frozenset({"critical", "warning"})))
    assert load_workspace(file).routes == (Route(("help",), asked), Route(("help",)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour: blue\n", ", line 1: colour: unknown key."),
        ("name: Lanternfish\nteams: 7\n", ", line 2: teams: Input should be a valid tuple."),
        ("- a list\n", ", line 1: the file: Input should be a valid dictionary"),
        ("channels:\n  - {console: help}\n", ", line 2: channels.0.name: Field required."),
        (
            "sources:\n  - {kind: folder, name: a, path: a}\n  - {kind: wiki, name: b}\n",
            ", line 3: sources.1: there is no kind wiki: use one of azure_devops_wiki, chat_threads, confluence, folder, ",
        ),
        (
            "sources:\n  - kind: folder\n    name: a\n    path: a\n    url: [1]\n",
            ", line 5: sources.0.url: Input should be a valid string.",
        ),
        ("sources:\n  - {kind: folder, name: a/b, path: a}\n", ", line 2: sources.0.name: String should match"),
        (
            "sources:\n  - {kind: folder, name: a, path: a}\n  - {kind: folder, name: a, path: b}\n",
            ", line 3: sources.1: a already exists.",
        ),
        ("channels:\n  - {name: a}\n  - {name: b}\n  - {name: a}\n", ", line 4: channels.2: a already exists."),
        ("teams:\n  - {id: a, name: A}\n  - {id: a, name: B}\n", ", line 3: teams.1: a already exists."),
        (
            CHANNELS + "teams:\n  - id: a\n    name: A\n    channel: nowhere\n",
            ", line 6: teams.0.channel: there is no channel nowhere.",
        ),
        (
            CHANNELS + "routes:\n  - {channels: [nowhere]}\n",
            ", line 4: routes.0.channels: there is no channel nowhere.",
        ),
        (CHANNELS + "routes:\n  - {channels: []}\n", ", line 4: routes.0.channels: Tuple should have at least 1 item"),
        (
            CHANNELS + "routes:\n  - {channels: [help], match: {team: a}}\n",
            ", line 4: routes.0: the last route is for all other incidents, so it must have no `match`.",
        ),
        ("dependencies:\n  till: shelf\n", ", line 2: dependencies.till: Input should be a valid tuple."),
    ],
)
def test_a_line_that_is_wrong_is_named_in_one_sentence(file: Path, text: str, said: str) -> None:
    assert complaint(file, text).startswith(said)


def test_yaml_that_is_broken_says_where(file: Path) -> None:
    assert re.search(r" is not valid YAML: .*line 2, column", complaint(file, "channels:\n  - {name: [}\n"))


def test_a_file_that_is_not_utf_8_is_refused(file: Path) -> None:
    file.write_bytes(b"name: \xff\xfe\n")
    with pytest.raises(ConfigurationError, match=r"is not valid YAML: .*utf-8"):
        load_workspace(file)


def test_a_file_that_is_not_there_is_named_with_its_variable(file: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"plumbline.yaml cannot be read: No such file .*\. PLUMBLINE_CONFIG names this file\."
    ):
        load_workspace(file)


def test_a_team_document_that_cannot_be_read_is_named_with_its_team(file: Path) -> None:
    text = "teams:\n  - {id: payments, name: Payments, document: payments.md}\n"
    expected = f"Team payments: {file.parent / 'payments.md'} cannot be read: "
    assert complaint(file, text) == f"{expected}No such file or directory."
    (file.parent / "payments.md").write_bytes(b"\xff\xfe")
    assert complaint(file, text) == f"{expected}it is not UTF-8 text."


def test_a_yaml_tag_is_not_obeyed(file: Path) -> None:
    assert "could not determine a constructor" in complaint(file, "name: !!python/object/apply:os.getcwd []\n")


def test_a_source_is_fresh_for_a_year_unless_the_file_says_otherwise(file: Path) -> None:
    file.write_text(
        "sources:\n"
        "  - {kind: folder, name: docs, path: docs}\n"
        "  - {kind: folder, name: notes, path: notes, fresh_for_days: 30}\n"
        "  - {kind: folder, name: laws, path: laws, fresh_for_days: null}\n"
        "  - {kind: past_incidents, name: incidents, path: incidents.jsonl}\n"
    )
    limits = load_workspace(file).help_desk.fresh_for
    assert {name: limit.days for name, limit in limits.items()} == {"docs": 365, "notes": 30}


def test_whoever_asks_may_be_sent_to_public_channels_only(file: Path) -> None:
    file.write_text(
        "channels:\n  - {name: help, console: help}\n  - {name: till, console: till, private: true}\n"
        "teams:\n  - {id: shelf, name: Shelf, channel: help}\n"
    )
    desk = load_workspace(file).help_desk
    assert desk.channels == {"help"}
    assert [team.id for team in desk.teams] == ["shelf"]


def test_confidence_changes_nothing_unless_the_file_says_so(file: Path) -> None:
    workspace = load_workspace(None)
    assert (workspace.policy, workspace.confidence.estimator, workspace.operators) == (Policy(), "evidence", "")
    file.write_text(
        CHANNELS
        + "operators: help\nconfidence: {ask_below: 0.4, ping_owner_above: 0.8, "
        + "ping_two_when_unsure: true, estimator: two-step}\n"
        + "teams:\n  - {id: payments, name: Payments, mention: {slack: S0PAY, teams: pay@lantern.example}}\n"
    )
    workspace = load_workspace(file)
    assert (workspace.policy, workspace.operators) == (Policy(0.4, 0.8, True), "help")
    assert workspace.confidence.estimator == "two-step"
    assert workspace.teams[0].mentions == {Platform.SLACK: "S0PAY", Platform.TEAMS: "pay@lantern.example"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("operators: nowhere\n", ", line 3: operators: there is no channel nowhere."),
        ("confidence: {ask_below: 40}\n", ", line 3: confidence.ask_below: Input should be less than or equal to 1."),
        (
            "models: {question: {analyses: 8}}\n",
            ", line 3: models.question.calls: an answer takes 34 calls with these `analyses` and `draws`.",
        ),
        ("models: {question: {steps: 5}}\n", ", line 3: models.question.steps: Unexpected keyword argument."),
        (
            "teams:\n  - {id: a, name: A, mention: {slack: '!channel'}}\n",
            ", line 4: teams.0.mention.slack: String should match pattern '^S[A-Z0-9]{2,20}$'.",
        ),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(file: Path, text: str, said: str) -> None:
    assert complaint(file, CHANNELS + text) == said


@pytest.mark.parametrize(("models", "analyses"), [("{use: always}", 0), ("{question: {analyses: 4}}", 4)])
def test_analyses_before_the_sureness_of_a_written_answer_are_made_where_they_are_asked_for(
    models: str, analyses: int, tmp_path: Path
) -> None:
    file = tmp_path / "plumbline.yaml"
    file.write_text(f"models: {models}\n", "utf-8")
    assert load_workspace(file).models.question == QuestionLimits(analyses=analyses)
