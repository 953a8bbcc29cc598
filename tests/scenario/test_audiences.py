"""Whatever an audience may not read is shown to it through no door: drawn worlds, in which every text has a word of its own."""

from __future__ import annotations

import os
import random

import pytest

from core.model.messages import ButtonAction
from tests.fakes.canary_world import World

SEED = int(os.environ.get("PLUMBLINE_AUDIENCE_SEED", "40"))
FEW = 2
TOGETHER = 25  # in one test, which is to end before it counts as hanging
MANY = int(os.environ.get("PLUMBLINE_AUDIENCE_WORLDS", "50"))  # a second each


async def lived_through(seed: int) -> World:
    """A world in which people talk about an incident and another like it follows; everybody looks at everything.

    Channels turn private in between, and public again, of which the bot is not told.
    """
    world = World(seed)
    await world.examined.recall()
    dice = random.Random(seed)
    first = await world.incident("first")
    await world.question()
    await world.maintenance()
    for _ in range(dice.randint(1, 3)):
        await world.remark(first)
    if dice.random() < 0.5:
        await world.press(first, ButtonAction.NOT_OURS)
    if dice.random() < 0.5:
        await world.press(first, ButtonAction.OWNER_WRONG)
    if dice.random() < 0.5:
        name = dice.choice([target.name for target in world.ports.filing.targets])
        await world.press(first, ButtonAction.FILE, title="Till", choice=name)
    await world.outcome(first)
    if dice.random() < 0.7:
        world.convert_rooms()
    if dice.random() < 0.3:
        world.forget_places(first)
    if dice.random() < 0.7:
        await world.over(first)
    await world.learn()
    second = await world.incident("second")
    await world.look_everywhere(dice.choice([first, second]))
    world.convert_rooms()
    await world.quiet_night(dice.choice([first, second]))
    await world.question()
    world.invite_guests()
    world.convert_rooms()
    for incident in (first, second):
        await world.look_everywhere(incident)
    return world


@pytest.mark.parametrize("number", range(FEW))
async def test_no_word_of_a_drawn_world_is_shown_to_anybody_who_may_not_read_it(number: int) -> None:
    world = await lived_through(SEED + number)
    assert world.chat.seen > 10


@pytest.mark.external
@pytest.mark.parametrize("first", range(0, MANY, TOGETHER))
async def test_no_word_of_many_drawn_worlds_is_shown_to_anybody_who_may_not_read_it(first: int) -> None:
    for number in range(first, min(first + TOGETHER, MANY)):
        await lived_through(SEED + number)
