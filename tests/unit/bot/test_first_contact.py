"""The commands that somebody new runs first."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot import cli
from bot.cli import app
from bot.config.new_configuration import FirstAnswers, configuration
from bot.config.workspace import load_workspace
from core.model.conversation import Platform
from core.model.errors import PlumblineError


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "configure_logging", lambda *_: None)  # it is for a whole process
    return tmp_path


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output.split()[0]) == (0, "plumbline")


def test_a_question_without_a_configuration_says_how_to_begin_and_creates_nothing(empty_home: Path) -> None:
    result = CliRunner().invoke(app, ["ask", "how do I roll back?"])
    assert result.exit_code == 1
    assert "plumbline init" in str(result.exception)
    assert not list(empty_home.iterdir())


def test_a_question_without_documents_says_which_source_failed(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CliRunner().invoke(app, ["init"]).exit_code == 0
    monkeypatch.setenv("PLUMBLINE_CONFIG", "plumbline.yaml")
    result = CliRunner().invoke(app, ["ask", "how do I roll back?"])
    assert result.exit_code == 1
    assert "documents could not be read" in str(result.exception)
    (empty_home / "documents").mkdir()
    assert "contain no documents" in str(CliRunner().invoke(app, ["ask", "how do I roll back?"]).exception)


def test_the_next_steps_begin_with_the_folder_that_is_missing(empty_home: Path) -> None:
    (empty_home / "runbooks").mkdir()
    assert "mkdir" not in CliRunner().invoke(app, ["init", "--documents", "runbooks"]).output
    assert "mkdir -p 'my docs'" in CliRunner().invoke(app, ["init", "--force", "--documents", "my docs"]).output


def test_init_without_a_terminal_writes_a_file_that_loads(empty_home: Path) -> None:
    result = CliRunner().invoke(app, ["init", "--name", "Acme", "--slack", "C012"])
    assert result.exit_code == 0
    workspace = load_workspace(empty_home / "plumbline.yaml")
    assert workspace.name == "Acme"
    assert workspace.channels[0].ids[Platform.SLACK] == "C012"
    assert [source.name for source in workspace.sources] == ["documents"]


@pytest.mark.parametrize("name", ['Acme "Europe": {a, b}', "- # &x *y", "Fähren – 渡轮"])
def test_whatever_a_company_is_called_the_file_loads(empty_home: Path, name: str) -> None:
    file = empty_home / "plumbline.yaml"
    file.write_text(configuration(FirstAnswers(name, "my docs", prometheus="http://prometheus:9090")), encoding="utf-8")
    workspace = load_workspace(file)
    assert workspace.name == name
    assert [tool.label for tool in workspace.tools] == ["prometheus"]


def test_init_replaces_no_file_unless_it_is_told_to(empty_home: Path) -> None:
    file = empty_home / "plumbline.yaml"
    file.write_text("name: mine\n", encoding="utf-8")
    with pytest.raises(PlumblineError, match="--force"):
        CliRunner().invoke(app, ["init"], catch_exceptions=False)
    assert file.read_text(encoding="utf-8") == "name: mine\n"
    assert CliRunner().invoke(app, ["init", "--force"]).exit_code == 0


def test_the_doctor_fails_where_nothing_is_indexed() -> None:
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "nothing is indexed" in result.output
