from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents.incident_questions import CommandName, parse_command
from core.model.conversation import CUT, MAX_MESSAGE, Platform, SharedFile
from core.model.document import Document
from core.model.errors import ChatUnavailable
from core.model.messages import Notice
from handlers.common.post_message import Poster
from handlers.questions.answer_question import with_files
from tests.fakes.answering import question
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

FILES = (SharedFile("build.log", "https://files.slack.com/1"), SharedFile("app.log", "https://files.slack.com/2"))


class FakeFiles:
    """Implements `FileReader` with texts by name; what has none cannot be read."""

    def __init__(self, **texts: str) -> None:
        self._texts = {f"{name}.log": text for name, text in texts.items()}

    async def text(self, file: SharedFile) -> str:
        if file.name not in self._texts:
            raise ChatUnavailable("it is not text")
        return self._texts[file.name]


def without_names(document: Document) -> Document:
    return replace(document, text=document.text.replace("Ines", "[name]"))


async def read(files: FakeFiles, text: str, chat: RecordingMessenger) -> str:
    store = InMemoryStore()
    ports = some_ports(
        store=store,
        poster=Poster(store, {Platform.SLACK: chat}),
        files={Platform.SLACK: files},
        redact=without_names,
    )
    return (await with_files(replace(question(text), files=FILES), ports)).text


async def test_the_redacted_text_of_the_files_stands_below_what_was_typed(chat: RecordingMessenger) -> None:
    said = await read(FakeFiles(build="E: disk full", app="by Ines"), "why did it fail?", chat)
    assert said == "why did it fail?\nE: disk full\nby [name]"
    assert chat.posted == []


@pytest.mark.parametrize("text", ["quiet 00:00-23:59", "status"])
async def test_a_file_alone_is_asked_about_and_is_no_command(text: str, chat: RecordingMessenger) -> None:
    command = parse_command(await read(FakeFiles(build=text, app=""), "", chat))
    assert command.name is CommandName.ASK


async def test_a_command_gets_the_file_as_its_text(chat: RecordingMessenger) -> None:
    command = parse_command(await read(FakeFiles(build="E: disk full", app=""), "rca", chat))
    assert (command.name, command.argument.strip()) == (CommandName.RCA, "E: disk full")


async def test_a_file_that_cannot_be_read_is_named_once_and_the_others_are_read(chat: RecordingMessenger) -> None:
    assert await read(FakeFiles(build="E: disk full"), "why?", chat) == "why?\nE: disk full"
    (notice,) = chat.standing.values()
    assert notice == Notice("I could not read app.log: it is not text.")


async def test_files_that_are_long_together_are_cut_in_the_middle(chat: RecordingMessenger) -> None:
    said = await read(FakeFiles(build="a" * MAX_MESSAGE, app="the end"), "why?", chat)
    assert len(said) <= MAX_MESSAGE
    assert CUT in said
    assert said.endswith("the end")
