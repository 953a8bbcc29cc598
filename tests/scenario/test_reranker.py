"""From `models.reranker` of plumbline.yaml to the quote that is shown first."""

from __future__ import annotations

import io
from pathlib import Path

import yaml
from rich.console import Console

from bot.commands.commands import run_ask
from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.evaluation.answers import asked_of
from bot.wiring.application import Core, ingest, open_core
from bot.wiring.ports import agent_tools
from core.answering.find import find_answer
from core.model.answer import Answer
from core.model.conversation import Audience
from core.ports import AgentCaller
from tests.fakes.llama_server import fake_llama_server

ASKED = "how many connections does the gateway hold for a pod?"
PAGES = {
    "pools": "# Connection pools\n\nThe gateway holds 40 connections for each pod.",
    "limits": "# Connections\n\nA pod of the gateway holds connections open until a ceiling that sysctl sets.",
    "tuning": "# Connections of a pod\n\nThe gateway logs the connections that a pod holds open.",
}
VAULT = "# Vault\n\nHow many connections does the gateway hold for a pod of the vault? Thirteen."


def company(folder: Path, url: str) -> Path:
    for name, pages in {"docs": PAGES, "vault": {"vault": VAULT}}.items():
        (folder / name).mkdir()
        for key, text in pages.items():
            (folder / name / f"{key}.md").write_text(text, encoding="utf-8")
    path = folder / "plumbline.yaml"
    sources = [
        {"kind": "folder", "name": "docs", "path": "docs"},
        {"kind": "folder", "name": "vault", "path": "vault", "readers": ["channel:vault-keepers"]},
    ]
    channels = [{"name": "vault-keepers", "private": True, "console": "vault-keepers"}]
    models = {"reranker": {"url": url, "model": "tiny"}}
    path.write_text(yaml.safe_dump({"channels": channels, "sources": sources, "models": models}), encoding="utf-8")
    return path


async def answered(core: Core) -> Answer:
    return (await find_answer(asked_of(ASKED, Audience()), core.knowledge.retriever))[0]


async def test_the_passage_that_the_server_prefers_is_quoted_first_and_it_reads_what_the_asker_may(
    tmp_path: Path,
) -> None:
    async with fake_llama_server() as llama:
        path = company(tmp_path, llama.url)
        settings = Settings.model_validate({"PLUMBLINE_DATA_DIR": tmp_path / "data", "PLUMBLINE_EMBEDDINGS": "none"})
        async with open_core(settings, load_workspace(path)) as core:
            assert (await ingest(core)).added == 4
            llama.ranking = {}
            plain = [each.document_id for each in (await answered(core)).citations]
            [asked] = llama.bodies
        async with open_core(settings, load_workspace(path)) as core:
            last = next(place for place, text in enumerate(asked["documents"]) if "sysctl" in text)
            llama.ranking = {
                "results": [{"index": place, "relevance_score": float(place == last)} for place in range(3)]
            }
            preferring = await answered(core)
    assert plain[0] != "docs/limits.md"
    assert preferring.citations[0].document_id == "docs/limits.md"
    assert (asked["query"], asked["model"], len(asked["documents"])) == (ASKED, "tiny", 3)
    assert "Thirteen" not in str(llama.bodies)


async def test_no_server_gets_a_secret_of_a_question_that_an_agent_or_the_terminal_asks(tmp_path: Path) -> None:
    asked = f"password: Otter-1234 of ada@tern.example is refused: {ASKED}"
    async with fake_llama_server() as llama:
        path, out = company(tmp_path, llama.url), Console(file=io.StringIO())
        settings = Settings.model_validate(
            {"PLUMBLINE_CONFIG": path, "PLUMBLINE_DATA_DIR": tmp_path / "data", "PLUMBLINE_EMBEDDINGS": "none"}
        )
        async with open_core(settings, load_workspace(path)) as core:
            await ingest(core)
            await agent_tools(core).ask(asked, AgentCaller("editor", Audience()))
        await run_ask(settings, asked, "", out, out, as_json=False)
    clean = asked.replace("Otter-1234", "[secret]").replace("ada@tern.example", "[e-mail]")
    assert [body["query"] for body in llama.bodies] == [clean, clean]
