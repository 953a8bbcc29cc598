"""From the sources of plumbline.yaml to the index: what is private stays out, and how fresh each source is."""

from __future__ import annotations

from pathlib import Path

import yaml

from bot.config.settings import load_settings
from bot.config.workspace import load_workspace
from bot.wiring.application import Core, ingest, open_core
from core.ports import Ingestion
from tests.contract.source_worlds.repository import git

PAGE = "# Till\n\nAsk Asha Brandt or mail asha@marigold.example; the password is Otter-1234.\n"


def company(folder: Path) -> Path:
    (folder / "documents").mkdir()
    (folder / "documents" / "till.md").write_text(PAGE, encoding="utf-8")
    repository = folder / "runbooks"
    repository.mkdir()
    git(repository, "init", "--quiet", "--initial-branch=main")
    (repository / "drain.md").write_text("# Drain\n\nRun `drain --all`.", encoding="utf-8")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message=first")
    sources = [
        {"kind": "folder", "name": "handbook", "path": "documents"},
        {"kind": "git_repository", "name": "runbooks", "url": repository.as_uri()},
    ]
    path = folder / "plumbline.yaml"
    path.write_text(yaml.safe_dump({"sources": sources, "privacy": {"names": ["Asha Brandt"]}}), encoding="utf-8")
    return path


async def texts(core: Core) -> dict[str, str]:
    return {passage.document_id: passage.text async for passage in core.knowledge.index.scan()}


async def freshness(core: Core) -> dict[str, Ingestion]:
    async with core.store.transaction() as transaction:
        return {each.source: each for each in await transaction.ingestions.all()}


async def test_what_is_indexed_holds_no_names_no_addresses_and_no_secrets(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "data", config=company(tmp_path))
    async with open_core(settings, load_workspace(settings.config)) as core:
        assert (await ingest(core)).added == 2
        assert await texts(core) == {
            "handbook/till.md": "# Till\n\nAsk Person 1 or mail [e-mail]; the password is [secret].",
            "runbooks/drain.md": "# Drain\n\nRun `drain --all`.",
        }


async def test_a_source_that_fails_keeps_its_documents_and_the_time_that_it_was_read(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "data", config=company(tmp_path))
    async with open_core(settings, load_workspace(settings.config)) as core:
        await ingest(core)
        before = await freshness(core)
        (tmp_path / "runbooks").rename(tmp_path / "elsewhere")
        report = await ingest(core)
        after = await freshness(core)
        assert list(report.failed) == ["runbooks"]
        assert "runbooks/drain.md" in await texts(core)
    assert (before["runbooks"].failure, after["runbooks"].documents) == ("", 1)
    assert after["runbooks"].failure.startswith("runbooks: git fetch failed")
    assert after["runbooks"].finished_at == before["runbooks"].finished_at
    began, ended = before["handbook"].finished_at, after["handbook"].finished_at
    assert began is not None
    assert ended is not None
    assert ended > began


async def test_where_reading_goes_on_is_kept_from_one_process_to_the_next(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "data", config=company(tmp_path))
    for expected in (2, 0):
        async with open_core(settings, load_workspace(settings.config)) as core:
            assert (await ingest(core)).added == expected
            async with core.store.transaction() as transaction:
                cursor = await transaction.cursors.load("runbooks")
            assert cursor is not None
            assert git(tmp_path / "runbooks", "rev-parse", "HEAD:drain.md") in cursor.position


async def test_a_source_that_is_no_longer_named_takes_its_documents_along(tmp_path: Path) -> None:
    path = company(tmp_path)
    settings = load_settings(data_dir=tmp_path / "data", config=path)
    async with open_core(settings, load_workspace(settings.config)) as core:
        await ingest(core)
    named = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(named | {"sources": named["sources"][1:]}), encoding="utf-8")
    async with open_core(settings, load_workspace(settings.config)) as core:
        assert (await ingest(core, only="runbooks")).removed == 0
        assert (await ingest(core)).removed == 1
        assert list(await texts(core)) == ["runbooks/drain.md"]
        assert set(await freshness(core)) == {"runbooks", "curated"}
    path.write_text(yaml.safe_dump(named), encoding="utf-8")
    async with open_core(settings, load_workspace(settings.config)) as core:
        assert (await ingest(core)).added == 1
        assert set(await texts(core)) == {"handbook/till.md", "runbooks/drain.md"}


async def test_settings_that_name_no_source_at_all_take_nothing_away(tmp_path: Path) -> None:
    path = company(tmp_path)
    settings = load_settings(data_dir=tmp_path / "data", config=path)
    async with open_core(settings, load_workspace(settings.config)) as core:
        await ingest(core)
    path.write_text("{}", encoding="utf-8")
    async with open_core(settings, load_workspace(settings.config)) as core:
        assert (await ingest(core)).removed == 0
        assert set(await texts(core)) == {"handbook/till.md", "runbooks/drain.md"}


async def test_a_changed_setting_holds_for_what_did_not_change_itself(tmp_path: Path) -> None:
    path = company(tmp_path)
    (tmp_path / "runbooks" / "drain.md").write_text("# Drain\n\nMateo Silvestri drains.", encoding="utf-8")
    git(tmp_path / "runbooks", "commit", "--all", "--quiet", "--message=second")
    settings = load_settings(data_dir=tmp_path / "data", config=path)
    async with open_core(settings, load_workspace(settings.config)) as core:
        await ingest(core)
        assert (await texts(core))["runbooks/drain.md"] == "# Drain\n\nMateo Silvestri drains."
    said = yaml.safe_load(path.read_text(encoding="utf-8"))
    said["sources"][1]["readers"] = ["channel:bridge"]
    said["privacy"]["names"].append("Mateo Silvestri")
    path.write_text(yaml.safe_dump(said), encoding="utf-8")
    async with open_core(settings, load_workspace(settings.config)) as core:
        assert (await ingest(core)).changed == 1
        [drain] = [each async for each in core.knowledge.index.scan() if each.document_id == "runbooks/drain.md"]
        assert (drain.readers, drain.text) == ({"channel:bridge"}, "# Drain\n\nPerson 1 drains.")
