"""Judge whether a new incident needs a person or can wait, learned from people's reactions to earlier ones.

The model is a logistic regression on facts known when the incident began: how often this alert needed a person, how it
flaps, how it ends by itself, how far its value is from its threshold, what else is open, and whether a deployment is in
progress. Its probabilities are calibrated on judgements made out of fold by time: each one by a model of earlier
incidents only. Until enough is learned, a model fitted on generated incidents judges (see `prior`).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from heapq import heappop, heappush
from importlib import import_module
from itertools import pairwise
from math import log, log1p, sqrt
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from core.confidence.calibrator import Label
from core.confidence.ensemble import FloatArray
from core.confidence.measures import NORMAL_95
from core.model.alert import Severity
from core.model.badge import Evaluation, Steps
from core.model.incident import Incident

VERSION = "paging-2"
PRIOR_VERSION = f"{VERSION}-prior"
PRIOR_FILE = Path(__file__).with_name("paging_prior.json")  # written by `python -m tests.benchmarks fit-paging`
MIN_LABELS = 60  # incidents with a known outcome; with fewer, nothing is judged
MIN_EACH = 10  # minimum that needed a person, and minimum that did not
MIN_SEEN = 3  # known outcomes of an alert, before one of its incidents is held back
MAX_EXCESS = 10.0  # times the threshold; more is no worse
BLOCKS = 5  # of time; each but the first is judged by a model of the earlier ones
DAY, HOUR, JUST_NOW = timedelta(days=1), timedelta(hours=1), timedelta(minutes=10)
ALIKE = 200  # past judgements that one is compared with, before an incident is held back
LATEST = 5  # outcomes of an alert that show whether it has changed
KEPT_SPANS = 20  # latest durations kept of an alert that ended by itself
PRIOR = 2.0  # weight, in incidents, of the share of the service, or of all services


@dataclass(slots=True)
class _Outcomes:
    """Known outcomes: the numbers that needed a person and that did not, and the durations of the latest of those."""

    needed: int = 0
    alone: int = 0
    minutes: deque[float] = field(default_factory=lambda: deque[float](maxlen=KEPT_SPANS))
    latest: deque[bool] = field(default_factory=lambda: deque[bool](maxlen=LATEST))

    def recent_share(self, prior: float) -> float:
        return (sum(self.latest) + PRIOR * prior) / (len(self.latest) + PRIOR)

    def share(self, prior: float) -> float:
        return (self.needed + PRIOR * prior) / (self.needed + self.alone + PRIOR)


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts known when an incident begins. `minutes` is the median time after which its alert ended by itself."""

    severity: Severity
    needed: int
    alone: int
    alert_share: float
    recent_share: float
    service_share: float
    lately: int  # times that the alert fired within a day
    last_hour: int
    minutes: float | None
    others_open: int  # on the same service
    just_began: int  # anywhere
    deploying: bool
    has_parent: bool
    excess: float | None = None

    @property
    def features(self) -> tuple[float, ...]:
        return (
            float(self.severity is Severity.CRITICAL),
            float(self.severity is Severity.INFO),
            _log_odds(self.alert_share),
            _log_odds(self.recent_share),
            _log_odds(self.service_share),
            log1p(self.needed + self.alone),
            log1p(self.lately),
            log1p(self.last_hour),
            log1p(self.minutes) if self.minutes is not None else log1p(24 * 60),
            log1p(self.others_open),
            log1p(self.just_began),
            float(self.deploying),
            float(self.has_parent),
            min(max(log(self.excess or 1.0), 0.0), log(MAX_EXCESS)),
            float(self.needed + self.alone == 0),
        )

    @property
    def evidence(self) -> tuple[str, ...]:
        """Return the reasons in words, most informative first."""
        seen = self.needed + self.alone
        reasons = [
            f"{self.alone} of the last {seen} ended by themselves" if seen and self.alone >= self.needed else "",
            f"{self.needed} of the last {seen} needed a person" if seen and self.alone < self.needed else "",
            f"usually within {round(self.minutes)} min" if self.minutes and self.alone > self.needed else "",
            "part of another open incident" if self.has_parent else "",
            "a deployment is in progress" if self.deploying else "",
            f"fired {self.lately} times in the 24 h before" if self.lately > 1 else "",
            f"{self.others_open} more open on this service" if self.others_open and not self.has_parent else "",
            f"{self.just_began} other incidents began within 10 min" if self.just_began > 1 else "",
            f"{self.excess:.1f} times its threshold" if self.excess and self.excess > 1 else "",
            "its severity is critical" if not seen and self.severity is Severity.CRITICAL else "",
            "no earlier one has a known outcome" if not seen else "",
        ]
        return tuple(filter(None, reasons))


def _log_odds(share: float) -> float:
    return float(np.log(share / (1 - share)))


class PageHistory:
    """The incidents known at a time. They are added when they end, in any order."""

    def __init__(self, ended: Iterable[Episode] = ()) -> None:
        self._all = _Outcomes()
        self._services = defaultdict[str, _Outcomes](_Outcomes)
        self._alerts = defaultdict[tuple[str, str], _Outcomes](_Outcomes)
        self._begun: list[datetime] = []
        self._fired = defaultdict[tuple[str, str], list[datetime]](list[datetime])
        for episode in ended:
            self.add(episode)

    def add(self, ended: Episode) -> None:
        insort(self._begun, ended.began_at)
        for at in ended.firings:
            insort(self._fired[ended.key], at)
        if ended.needed is None:
            return
        for outcomes in (self._all, self._services[ended.service], self._alerts[ended.key]):
            outcomes.latest.append(ended.needed)
            if ended.needed:
                outcomes.needed += 1
            else:
                outcomes.alone += 1
                if ended.ended_at is not None:
                    outcomes.minutes.append((ended.ended_at - ended.began_at).total_seconds() / 60)

    def facts(self, new: Episode, still_open: Collection[Episode]) -> Facts:
        """Return the facts about a new incident, given the other incidents that are still open."""
        at, own = new.began_at, self._alerts.get(new.key, _Outcomes())
        of_service = self._services.get(new.service, _Outcomes())
        others = [each for each in still_open if each.id != new.id]
        fired = [*self._fired.get(new.key, ()), *(at for each in others if each.key == new.key for at in each.firings)]
        service_share = of_service.share(self._all.share(0.5))
        return Facts(
            new.severity,
            own.needed,
            own.alone,
            own.share(service_share),
            own.recent_share(own.share(service_share)),
            service_share,
            sum(at - DAY <= each <= at for each in fired),
            sum(at - HOUR <= each <= at for each in fired),
            median(own.minutes) if own.minutes else None,
            sum(each.service == new.service for each in others),
            bisect_right(self._begun, at)
            - bisect_left(self._begun, at - JUST_NOW)
            + sum(at - JUST_NOW <= each.began_at <= at for each in others),
            new.deploying,
            new.has_parent,
            new.excess,
        )


def facts_in_order(episodes: Sequence[Episode]) -> list[tuple[Episode, Facts]]:
    """Return each incident with the facts known when it began, in order of their start."""
    history, rows = PageHistory(), list[tuple[Episode, Facts]]()
    still_open: dict[str, Episode] = {}
    endings: list[tuple[datetime, str]] = []
    for new in sorted(episodes, key=lambda each: (each.began_at, each.id)):
        while endings and endings[0][0] <= new.began_at:
            history.add(still_open.pop(heappop(endings)[1]))
        rows.append((new, history.facts(new, still_open.values())))
        still_open[new.id] = new
        if new.ended_at is not None:
            heappush(endings, (new.ended_at, new.id))
    return rows


@dataclass(frozen=True, slots=True)
class PageModel:
    """A fitted model. `judged` are the probabilities of past judgements, made out of fold by time, in ascending order;
    `needed` are their outcomes (0 or 1).
    """

    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    bias: float
    judged: FloatArray
    needed: FloatArray

    def probability(self, facts: Facts) -> float:
        """Return the probability that a person is needed, before calibration."""
        score = (np.array(facts.features) - self.mean) / self.scale @ self.weights + self.bias
        return float(1 / (1 + np.exp(-score)))

    @property
    def labels(self) -> list[Label]:
        """Return the past judgements as labels for a calibrator."""
        return [
            Label(Evaluation(1.0, judged), bool(needed))
            for judged, needed in zip(self.judged.tolist(), self.needed.tolist(), strict=True)
        ]

    def like(self, probability: float) -> tuple[int, int]:
        """Return the number of past judgements near this probability (at most ALIKE), and how many needed a person."""
        rank = int(np.searchsorted(self.judged, probability))
        near = self.needed[max(0, rank - ALIKE // 2) : rank + ALIKE // 2]
        return len(near), int(near.sum())

    def may_wait(self, raw: float, calibrated: float | None, facts: Facts, hold_below: float) -> bool:
        """Return whether an incident may be held back, because it is not critical and almost certainly needs nobody.

        Its calibrated probability, and the upper end of the 95 % interval of the share among similar past judgements,
        must be at most `hold_below`, and MIN_SEEN outcomes of its own alert must be known.
        """
        if facts.severity is Severity.CRITICAL or facts.needed + facts.alone < MIN_SEEN:
            return False
        return calibrated is not None and calibrated <= hold_below and _upper(*self.like(raw)) <= hold_below


def _upper(count: int, held: int) -> float:
    """Return the upper end of the 95 % interval of a share (Wilson 1927); 1 for no cases."""
    if count == 0:
        return 1.0
    share, spread = held / count, NORMAL_95**2 / count
    return (share + spread / 2 + NORMAL_95 * sqrt(share * (1 - share) / count + spread / count / 4)) / (1 + spread)


def has_enough(episodes: Iterable[Episode]) -> bool:
    """Return whether enough outcomes of either kind are known to fit a model."""
    return _is_enough([each.needed for each in episodes if each.needed is not None])


def fit_paging(episodes: Sequence[Episode]) -> PageModel | None:
    """Fit a model; None if there are too few known outcomes, or too few of either kind."""
    if not has_enough(episodes):
        return None
    rows = [(each, facts) for each, facts in facts_in_order(episodes) if each.needed is not None]
    judged = judged_out_of_fold(rows)
    if not _is_enough([needed for _, needed in judged.values()], least=MIN_LABELS // 2, each=MIN_EACH // 2):
        return None
    probabilities, outcomes = np.array(sorted(judged.values()), float).T
    return replace(fitted_to(rows), judged=probabilities, needed=outcomes)


def judged_out_of_fold(rows: Sequence[tuple[Episode, Facts]]) -> dict[str, tuple[float, bool]]:
    """Return, by id, the probability and the outcome of each incident that a model of earlier outcomes can judge.

    `rows` are incidents with known outcomes, in order.
    """
    judged: dict[str, tuple[float, bool]] = {}
    edges = [len(rows) * block // BLOCKS for block in range(BLOCKS + 1)]
    for first, after in pairwise(edges[1:]):
        block = rows[first:after]
        past = [
            (each, facts) for each, facts in rows[:first] if each.ended_at and each.ended_at <= block[0][0].began_at
        ]
        if not _is_enough([bool(each.needed) for each, _ in past], least=2 * MIN_EACH, each=MIN_EACH // 2):
            continue
        model = fitted_to(past)
        judged |= {each.id: (model.probability(facts), bool(each.needed)) for each, facts in block}
    return judged


def _is_enough(needed: Sequence[bool], least: int = MIN_LABELS, each: int = MIN_EACH) -> bool:
    return len(needed) >= least and each <= sum(needed) <= len(needed) - each


def fitted_to(rows: Sequence[tuple[Episode, Facts]]) -> PageModel:
    """Fit a model without past judgements to incidents with known outcomes, some of either kind."""
    values = np.array([facts.features for _, facts in rows])
    mean, scale = values.mean(axis=0), values.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    model: Any = import_module("sklearn.linear_model").LogisticRegression(C=1.0, max_iter=1000)  # untyped
    model.fit((values - mean) / scale, [bool(each.needed) for each, _ in rows])
    return PageModel(mean, scale, np.array(model.coef_[0]), float(model.intercept_[0]), np.empty(0), np.empty(0))


@cache
def _prior_values() -> dict[str, Any]:
    return json.loads(PRIOR_FILE.read_text("utf-8"))


@cache
def prior() -> PageModel:
    """Return the model that judges before there are outcomes to learn from, fitted on generated incidents."""
    arrays = {name: np.array(_prior_values()[name], float) for name in ("mean", "scale", "weights", "judged", "needed")}
    return PageModel(bias=float(_prior_values()["bias"]), **arrays)


def prior_probability(raw: float) -> float:
    """Return the probability of a judgement by the prior, calibrated by fits on other kinds of incidents."""
    return Steps(tuple(_prior_values()["upper"]), tuple(_prior_values()["probabilities"])).probability(
        Evaluation(1.0, raw)
    )


AT_ONCE = timedelta(minutes=1)  # after an incident was opened; later merges were not known when it was judged
MAX_TEXT = 1_000  # characters of an alert in which its value is looked for
_COMPARISON = re.compile(
    r"(?<![\w.])(?P<value>\d{1,12}(?:\.\d{1,6})?)\s?[%\w/]{0,8},?\s?\(?"
    r"(?:(?:(?:is|are)\s)?(?:>=?|above|over|more than|greater ?than|exceeds|(?P<below><=?|below|under|less ?than|lower ?than)))\s?"
    r"(?:the threshold of |threshold )?(?P<limit>\d{1,12}(?:\.\d{1,6})?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Episode:
    """An incident as training data.

    `alert` names its alert or group. `needed` tells whether a person was needed, None if unknown; it is known from
    `ended_at` on. `again` are the times at which it fired again. `has_parent`: it may be part of an open incident.
    `excess` is how many times the alert's threshold its value was, None if it does not say.
    """

    id: str
    alert: str
    service: str
    severity: Severity
    began_at: datetime
    ended_at: datetime | None = None
    needed: bool | None = None
    deploying: bool = False
    has_parent: bool = False
    again: tuple[datetime, ...] = ()
    excess: float | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.service, self.alert

    @property
    def firings(self) -> tuple[datetime, ...]:
        """Return when it fired, each time once."""
        return self.began_at, *self.again


def needed_person(incident: Incident) -> bool | None:
    """Return whether people acted on an incident; None if it is open, ended without a cure, or before anybody was notified.

    They act if they take, acknowledge, reassign, comment on or file it, or note how it ended. An
    incident that ended while held back has no known outcome, because holding back must not prove itself right.
    """
    acted = (
        incident.taken_by,
        incident.hops,
        incident.notes,
        incident.resolution,
        incident.filings,
        any(alert.acknowledged is not None and not alert.acknowledged.withdrawn for alert in incident.alerts),
    )
    if any(acted):
        return True
    was_told = incident.silenced is None and not incident.is_held_back(incident.updated_at)
    return False if incident.is_cured and was_told else None


def episode_of(incident: Incident) -> Episode:
    """Return a stored incident as training data: as it was when it began, and with its outcome.

    An incident that was never judged has no record of that: its alerts give the severity, and a deployment is unknown.
    """
    page, merge, alert = incident.findings.page, incident.part_of, incident.alerts[0] if incident.alerts else None
    begun = [each.severity for each in incident.alerts if each.starts_at <= incident.opened_at]
    severity = min(begun, key=[*Severity].index, default=incident.severity)
    has_parent = (
        merge is not None and not merge.person and (merge.at or incident.opened_at) - incident.opened_at <= AT_ONCE
    )
    if page is not None:
        severity, has_parent = page.severity, page.has_parent
    return Episode(
        incident.id,
        alert.name if alert is not None and alert.name else incident.group_key,
        incident.service,
        severity,
        incident.opened_at,
        incident.resolved_at,
        needed_person(incident),
        page is not None and page.deploying,
        has_parent,
        incident.reopenings,
        excess_in(f"{alert.summary}\n{alert.description}") if alert is not None else None,
    )


def excess_in(text: str) -> float | None:
    """Return how many times the threshold a stated value is, as in “p99 is 4 s (> 2 s)”, or the reverse for a lower limit."""
    match = _COMPARISON.search(text[:MAX_TEXT])
    if match is None:
        return None
    value, limit = float(match["value"]), float(match["limit"])
    if match["below"]:
        value, limit = limit, value
    return value / limit if value > 0 and limit > 0 else None
