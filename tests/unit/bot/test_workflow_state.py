"""What the workflow engine keeps is JSON; pickle is never read."""

from __future__ import annotations

import base64
import pickle
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from dbos import DBOS
from dbos._serialization import DBOSDefaultSerializer
from rich.console import Console

from bot.commands.records import run_backup, run_restore
from bot.config.settings import Settings
from bot.work import engine
from bot.work.engine import JsonSerializer, RecordedError
from core.model.errors import ChatBusy, MessageNotFound, PlumblineError
from tests.cases import every_case
from tests.databases import database

QUIET = Console(quiet=True)


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self._marker,)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """Made by whoever unpickles what is `pickled`."""
    return tmp_path / "somebody ran this"


@pytest.fixture
def pickled(marker: Path) -> str:
    return base64.b64encode(pickle.dumps(Touch(marker))).decode()


def crafted(database: Path, pickled: str, of: str) -> None:
    """The engine's database with a workflow of which something is pickled."""
    DBOS.migrate(f"sqlite:///{database}")
    written = {"workflow_status": "plumbline_json", "operation_outputs": "plumbline_json"} | {of: "py_pickle"}
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "INSERT INTO workflow_status (workflow_uuid, status, name, class_name, config_name, application_version,"
            " executor_id, recovery_attempts, priority, serialization, inputs) VALUES"
            " ('w', 'PENDING', 'Workflows.present_held', 'Workflows', 'plumbline', ?, 'dead', 0, 0, ?, ?)",
            (engine.VERSION, written["workflow_status"], pickled),
        )
        connection.execute(
            "INSERT INTO operation_outputs (workflow_uuid, function_id, function_name, output, serialization)"
            " VALUES ('w', 1, 'present', ?, ?)",
            (pickled, written["operation_outputs"]),
        )
        connection.commit()


@pytest.mark.parametrize("of", ["workflow_status", "operation_outputs"])
async def test_workflow_of_crafted_backup_runs_no_code_when_it_is_read(
    tmp_path: Path, marker: Path, pickled: str, of: str
) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "backup"
    home.mkdir()
    async with database(f"sqlite:///{home / 'plumbline.sqlite'}"):
        pass
    crafted(home / "workflows.sqlite", pickled, of)
    run_backup(settings(home), file, QUIET)
    run_restore(settings(other), file, QUIET, force=False)
    with engine.client(f"sqlite:///{other / 'workflows.sqlite'}") as client:
        assert [each.workflow_id for each in client.list_workflows()] == ["w"]
        with suppress(PlumblineError, ValueError):
            client.list_workflow_steps("w")
    assert not ran(marker)


def test_the_engine_cannot_unpickle_whatever_a_row_says(marker: Path, pickled: str) -> None:
    with pytest.raises(PlumblineError, match="never read"):
        DBOSDefaultSerializer.deserialize(pickled)
    with pytest.raises(PlumblineError):
        DBOSDefaultSerializer.serialize("anything")
    assert not ran(marker)


@pytest.mark.parametrize("value", [None, ["i1", {"id": "é\ud800", "n": [1, 2.5, True, None]}]])
def test_what_workflows_are_given_comes_back(value: object) -> None:
    assert JsonSerializer().deserialize(JsonSerializer().serialize(value)) == value


def test_the_arguments_of_a_workflow_come_back_as_the_tuple_that_the_engine_extends_when_it_resumes() -> None:
    given = {"args": ("i1", {"id": "x"}), "kwargs": {}}
    assert JsonSerializer().deserialize(JsonSerializer().serialize(given)) == given


def test_errors_come_back_as_what_they_were_and_unknown_ones_by_name() -> None:
    busy, gone, other = (
        JsonSerializer().deserialize(JsonSerializer().serialize(error))
        for error in (ChatBusy("wait", 7.5), MessageNotFound("gone"), KeyError("x"))
    )
    assert (type(busy), str(busy), busy.retry_after) == (ChatBusy, "wait", 7.5)
    assert (type(gone), str(gone)) == (MessageNotFound, "gone")
    assert (type(other), str(other)) == (RecordedError, "KeyError: 'x'")


@every_case("value", [{1, 2}, b"bytes", object(), float("nan"), Path("x")])
def test_what_is_no_json_is_not_written(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        JsonSerializer().serialize(value)


@every_case(
    "written",
    ["", "gASV", "[]", '{"value": 1, "error": 2}', '{"error": "x"}', '{"error": {"type": "Path", "message": 1}}'],
)
def test_what_was_not_written_here_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        JsonSerializer().deserialize(written)


def ran(marker: Path) -> bool:
    return marker.exists()


def settings(folder: Path) -> Settings:
    return Settings.model_validate({"PLUMBLINE_DATA_DIR": folder})
