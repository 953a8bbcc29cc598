"""Azure DevOps wikis: a page that cannot be read."""

from __future__ import annotations

from tests.contract.source_worlds.remote import SourceReading, azure_wiki_world


async def test_page_that_cannot_be_read_is_named_and_stays_and_others_are_read() -> None:
    async with azure_wiki_world() as world:
        for key in "12":
            world.write(key, f"Drain {key}.")
        reading = await SourceReading().go_on(world)
        for key in "12":
            world.write(key, f"Cordon {key}.")
        world.server.unreadable.add("/Runbooks/Page 1")
        for _ in range(2):
            await reading.go_on(world)
            assert "HTTP status 400" in reading.reasons["Runbooks/Page 1.md"]
            assert reading.texts == ["Drain 1.", "Cordon 2."]
        world.server.unreadable.clear()
        assert (await reading.go_on(world)).texts == ["Cordon 1.", "Cordon 2."]
        assert reading.left_out == []
