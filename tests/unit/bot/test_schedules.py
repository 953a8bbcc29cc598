"""Recurring jobs run once each time they are due, also those that were missed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.config.workspace import load_workspace
from bot.work.schedules import (
    END_QUIET_HOURS,
    INGEST,
    RECALIBRATE,
    RETAIN,
    WATCH,
    Job,
    Ticks,
    ask_for_due,
    keep_schedules,
    recurring_jobs,
)
from core.model.errors import ConfigurationError, StoreUnavailable
from core.ports import Task
from tests.fakes.clock import FakeClock
from tests.fakes.store import InMemoryStore

MIDNIGHT = datetime(2026, 3, 14, tzinfo=UTC)
LOOK = timedelta(minutes=5)
HOURS = {INGEST: 2, RECALIBRATE: 3, RETAIN: 4}  # of the default
JOBS = recurring_jobs(load_workspace(None))


def jobs_of(folder: Path, text: str) -> tuple[Job, ...]:
    file = folder / "plumbline.yaml"
    file.write_text(text)
    return recurring_jobs(load_workspace(file))


async def looks(store: InMemoryStore, begin: datetime, count: int, jobs: Sequence[Job] = JOBS) -> list[list[str]]:
    """What each look of a replica asks for."""
    asked: list[list[str]] = []

    async def accept(task: Task) -> bool:
        async with store.transaction() as transaction:
            is_new = await transaction.tasks.add(task)
        if is_new:
            asked[-1].append(task.key)
        return is_new

    for number in range(count):
        asked.append([])
        await ask_for_due(jobs, accept, begin + number * LOOK)
    return asked


async def a_night(store: InMemoryStore, day: datetime) -> None:
    """All of its jobs are asked for when they are due."""
    for hour in HOURS.values():
        await looks(store, day + timedelta(hours=hour), 3)


async def test_a_night_that_nobody_was_awake_in_is_made_up_for_one_job_after_the_other() -> None:
    store = InMemoryStore()
    await a_night(store, MIDNIGHT - timedelta(days=1))
    nine = MIDNIGHT + timedelta(hours=9)
    missed = [[f"{workflow}:2026-03-14T{hour:02}:00"] for workflow, hour in HOURS.items()]
    assert await looks(store, nine, 5) == [*missed, [], []]


async def test_replicas_that_start_together_and_again_make_up_for_it_once() -> None:
    store = InMemoryStore()
    nine = MIDNIGHT + timedelta(hours=9)
    asked = [key for _ in range(3) for look in await looks(store, nine, 4) for key in look]
    assert len(asked) == len(set(asked)) == len(JOBS)


async def test_a_job_that_ran_when_it_was_due_is_not_run_again_before_it_is_due_again() -> None:
    store = InMemoryStore()
    await looks(store, MIDNIGHT, 3)  # whatever the day before left
    await a_night(store, MIDNIGHT)
    until_next = (timedelta(hours=26) - timedelta(hours=4, minutes=15)) // LOOK
    assert not any(await looks(store, MIDNIGHT + timedelta(hours=4, minutes=15), until_next))
    assert await looks(store, MIDNIGHT + timedelta(hours=26), 1) == [[f"{INGEST}:2026-03-15T02:00"]]


async def test_several_missed_nights_are_made_up_for_once() -> None:
    store = InMemoryStore()
    await a_night(store, MIDNIGHT)
    asked = await looks(store, MIDNIGHT + timedelta(days=9, hours=1), 6)
    missed = [f"{workflow}:2026-03-22T{hour:02}:00" for workflow, hour in HOURS.items()]
    assert [key for look in asked for key in look] == missed


async def test_a_run_whose_key_may_be_deleted_by_now_is_not_made_up_for(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, 'schedules: {ingestion: "0 2 1 * *"}\nretention: {events: 3}')
    due = datetime(2026, 3, 1, 2, tzinfo=UTC)
    assert jobs[0].latest(due + timedelta(days=2)) is not None
    assert jobs[0].latest(due + timedelta(days=4)) is None


# The clocks of Berlin are set ahead at 2:00 on 29 March 2026, and back at 3:00 on 25 October.
@pytest.mark.parametrize("evening", [datetime(2026, 3, 28, 18, tzinfo=UTC), datetime(2026, 10, 24, 18, tzinfo=UTC)])
@pytest.mark.parametrize("cron", ["30 2 * * *", "0 3 * * *"])
async def test_a_daily_job_runs_once_in_a_night_of_another_length(cron: str, evening: datetime, tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, f'schedules: {{timezone: Europe/Berlin, ingestion: "{cron}"}}')[:1]
    store = InMemoryStore()
    await looks(store, evening, 1, jobs)
    asked = [key for look in await looks(store, evening, 12 * 12, jobs) for key in look]
    assert asked == [
        f"{INGEST}:{evening + timedelta(days=1):%Y-%m-%d}T{cron[2:].strip()[0]:0>2}:{cron[:2].strip():0>2}"
    ]


async def test_an_hourly_job_runs_each_hour_of_the_machine_s_zone(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, 'schedules: {timezone: Asia/Kolkata, ingestion: "0 * * * mon-fri"}')[:1]
    saturday = [jobs[0].latest(datetime(2026, 3, 13, hour, 45, tzinfo=UTC)) for hour in (16, 17, 18, 19)]
    assert [task and task.key[-5:] for task in saturday] == ["22:00", "23:00", "23:00", "23:00"]


def test_a_post_looks_back_to_the_one_before_and_is_not_made_up_for_when_it_is_stale(tmp_path: Path) -> None:
    handover = 'handovers: [{channel: general, cron: "0 9,21 * * *", timezone: Europe/Berlin}]'
    job = jobs_of(tmp_path, f"schedules: {{{handover}}}")[-1]
    task = job.latest(datetime(2026, 3, 14, 8, 5, tzinfo=UTC))
    assert task is not None
    assert (task.key, task.subject) == ("post_handover:general:2026-03-14T09:00", "general")
    assert task.payload == {"intent": task.key, "since": "2026-03-13T20:00:00+00:00"}
    digest = jobs_of(tmp_path, "schedules: {digests: [{channel: general}]}")[-1]
    assert digest.latest(datetime(2026, 3, 16, 20, 59, tzinfo=UTC)) is not None
    assert digest.latest(datetime(2026, 3, 16, 21, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("0 9 * * 1-5", "name weekdays, as in mon-fri"),
        ("0 25 * * *", "25 \\* \\* \\* is not a cron expression"),
        ("@daily", "Wrong number of fields"),
        ("0 9 31 2 *", "never comes"),
    ],
)
def test_an_expression_that_says_no_time_is_refused_with_its_line(cron: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"line 2: schedules.ingestion: .*{said}"):
        jobs_of(tmp_path, f'schedules:\n  ingestion: "{cron}"')


class Replica:
    """A machine whose clock goes on by a minute, or jumps, whenever `pass_by` is awaited. Stores are shared."""

    def __init__(self, name: str, store: InMemoryStore, begin: datetime, jobs: Sequence[Job] = JOBS) -> None:
        self.name, self.store = name, store
        self.clock = FakeClock(begin)
        self.asked: list[str] = []
        self._awake = asyncio.Event()
        self.loop = asyncio.create_task(
            keep_schedules(
                jobs,
                self._accept,
                self.clock,
                is_anything_held=self._something,
                is_anything_open=self._something,
                sleep=self._sleep,
            )
        )

    async def pass_by(self, *minutes: float) -> None:
        for each in minutes:
            await asyncio.sleep(0)  # until the loop sleeps
            await asyncio.sleep(0)
            self.clock.advance(60 * each)
            self._awake.set()
        for _ in range(3):
            await asyncio.sleep(0)

    async def work(self) -> list[Task]:
        """Claim tasks, as a dispatcher does."""
        async with self.store.transaction() as transaction:
            return await transaction.tasks.claim(self.name, 100)

    async def _sleep(self, seconds: float) -> None:
        assert 0 < seconds <= 60
        self._awake.clear()
        await self._awake.wait()

    async def _accept(self, task: Task) -> bool:
        async with self.store.transaction() as transaction:
            is_new = await transaction.tasks.add(task)
        self.asked += [task.workflow] if is_new else []
        return is_new

    async def _something(self) -> bool:
        if self.clock.now() == MIDNIGHT + timedelta(hours=13):
            raise StoreUnavailable("down")
        return True


@pytest.fixture
async def machine() -> AsyncIterator[Replica]:
    replica = Replica("a", InMemoryStore(), MIDNIGHT + timedelta(hours=12))
    yield replica
    replica.loop.cancel()


async def test_a_process_that_starts_is_left_alone_before_it_catches_up(machine: Replica) -> None:
    await machine.pass_by(1, 1)
    assert machine.asked == [WATCH, END_QUIET_HOURS] * 2
    await machine.pass_by(1)
    assert machine.asked[4:] == [WATCH, END_QUIET_HOURS, INGEST]


@pytest.mark.parametrize("jump", [-60, -9, 60, 20, -1 / 60], ids=lambda jump: f"{jump:.2f} minutes")
async def test_a_clock_that_jumps_delays_no_look(machine: Replica, jump: float) -> None:
    await machine.pass_by(*[1] * 10)
    machine.asked.clear()
    await machine.pass_by(jump, *[1] * 10)
    assert 10 <= machine.asked.count(WATCH) <= 11
    assert machine.asked.count(END_QUIET_HOURS) == machine.asked.count(WATCH)


async def test_a_database_that_does_not_answer_is_asked_again_after_a_minute(machine: Replica) -> None:
    await machine.pass_by(*[1] * 59)
    machine.asked.clear()
    await machine.pass_by(1)
    assert machine.asked == []
    await machine.pass_by(1)
    assert machine.asked == [WATCH, END_QUIET_HOURS]


async def test_in_a_night_of_two_replicas_jumping_clocks_and_a_kill_each_job_runs_once() -> None:
    store = InMemoryStore()
    await a_night(store, MIDNIGHT - timedelta(days=1))
    async with store.transaction() as transaction:
        await transaction.tasks.end([task.key for task in await transaction.tasks.claim("yesterday", 100)])
    killed, left = (Replica(name, store, MIDNIGHT + timedelta(minutes=100)) for name in "ab")
    ran: list[str] = []

    async def minutes_pass(minutes: int, *replicas: Replica, slow: Replica | None = None) -> None:
        for _ in range(minutes):
            for replica in replicas:
                await replica.pass_by(1)
                if replica is slow:
                    continue
                tasks = await replica.work()
                ran.extend(task.key for task in tasks)
                async with store.transaction() as transaction:
                    await transaction.tasks.end([task.key for task in tasks])

    await minutes_pass(10, killed, left)
    await killed.pass_by(30)  # its clock is set ahead: the ingestion of two o'clock begins there at 01:50
    await minutes_pass(10, killed, left)
    await killed.pass_by(-45)  # and back, to before two o'clock
    await minutes_pass(40, left, killed)
    await left.pass_by(-45)
    await minutes_pass(20, left, killed)
    killed.clock.advance(60 * 45)
    await minutes_pass(40, killed, slow=killed)
    assert [task.workflow for task in await killed.work() if task.workflow == RETAIN] == [RETAIN]
    killed.loop.cancel()  # with the work of four o'clock under way
    async with store.transaction() as transaction:
        await transaction.tasks.release([killed.name])
    await left.pass_by(70)  # its clock is set right
    await minutes_pass(20, left)
    left.loop.cancel()

    nightly = Counter(key for key in ran if not key.startswith((WATCH, END_QUIET_HOURS)))
    assert nightly == {f"{workflow}:2026-03-14T{hour:02}:00": 1 for workflow, hour in HOURS.items()}


async def test_two_replicas_whose_clocks_are_set_back_together_look_once_a_minute() -> None:
    clock = FakeClock()
    replicas = [Ticks(clock), Ticks(clock)]
    names = [[ticks.name() for ticks in replicas]]
    for minutes in (1, 1, 1, -2, 1, 2):
        clock.advance(60.0 * minutes)
        names.append([ticks.name() for ticks in replicas])
    assert all(ours == theirs for ours, theirs in names)
    assert len({ours for ours, _ in names}) == len(names), "each is another minute"
    assert names[-1] == ["2026-03-14T09:34"] * 2, "what is new again has its plain name"
