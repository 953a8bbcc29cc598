"""A question without a certain answer gets closest matches, and one press in Slack makes one of them the answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.block_kit import buttons, texts
from tests.fakes.slack_api import CHANNEL
from tests.scenario.application import RunningBot

UNSURE = "who says when the pool is rebuilt and rolled back?"  # words of several pages
SECOND = "2 answers it"


def shown(message: dict[str, Any]) -> str:
    return "\n".join(texts(message["blocks"]))


@pytest.mark.asyncio(loop_scope="session")
async def test_a_press_on_the_second_quote_makes_it_the_answer_in_the_same_message_and_labels_the_first(
    bot: RunningBot,
) -> None:
    thread = await bot.slack.asks(bot.address, UNSURE)
    await bot.slack.until(lambda: any(SECOND in buttons(each["blocks"]) for each in bot.slack.replies(thread)))
    (offered,) = bot.slack.replies(thread)
    button, before = buttons(offered["blocks"])[SECOND], shown(offered)
    heads = (next(line for line in before.splitlines() if f"[{number}]" in line) for number in (1, 2))
    first, second = (head.strip("*").partition("] *")[2] for head in heads)
    await bot.slack.presses(bot.address, button, offered)
    await bot.slack.until(lambda: "chose this one" in shown(bot.slack.message(CHANNEL, offered["ts"])))
    answer = bot.slack.message(CHANNEL, offered["ts"])
    assert second in shown(answer)
    assert first not in shown(answer)
    assert SECOND not in buttons(answer["blocks"])
    assert len(bot.slack.replies(thread)) == 1, "nothing is posted beside it"
    async with bot.store.transaction() as transaction:
        labels = await transaction.predictions.labels_of(button["value"])
    assert [label.correct for label in labels] == [False]
