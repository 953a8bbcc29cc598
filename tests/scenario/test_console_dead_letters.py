"""The operator sees the messages that a chat refused on the local page, and retries them with a button."""

from __future__ import annotations

import aiohttp
from bs4 import BeautifulSoup

from core.model.conversation import Place, Platform
from core.model.messages import Notice
from tests.fakes.console_site import console_site

INTENT = "answer:slack:C0ASK:1"


async def test_a_dead_letter_is_shown_and_its_button_asks_for_another_try_once() -> None:
    async with console_site() as site, aiohttp.ClientSession(site.address) as http:
        async with site.store.transaction() as transaction:
            place = Place(Platform.SLACK, "C0ASK")
            await transaction.dead_letters.add(INTENT, place, Notice("<b>hello"), "Slack refused: is_archived.")
        async with http.get("/dead-letters") as response:
            page = BeautifulSoup(await response.text(), "html.parser")
        assert "is_archived" in page.get_text()
        (form,) = [form for form in page.find_all("form") if form["action"] == "/console/dead-letters"]
        field = form.find("input", {"name": "intent"})
        assert field is not None
        for _ in range(2):
            async with http.post(str(form["action"]), data={"intent": field["value"]}) as response:
                assert response.status == 200
        (task,) = site.store.tasks.added.values()
        assert (task.workflow, task.subject) == ("redeliver", INTENT)


async def test_a_letter_that_is_no_longer_there_cannot_be_tried_again() -> None:
    async with console_site() as site, aiohttp.ClientSession(site.address) as http:
        async with http.post("/console/dead-letters", data={"intent": "nothing"}) as response:
            assert response.status == 404
        async with http.get("/dead-letters") as response:
            assert "There are no dead letters" in await response.text()
