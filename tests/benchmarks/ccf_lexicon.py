"""Keyword lists of manual families: none, mined from the corpus, or by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import normalised, terms
from tests.benchmarks.ccf_corpus import Case
from tests.benchmarks.ccf_hints import mined_hints

# Written with the questions in view, to compare with the paper, which does not print its lists: no measure of what
# happens on questions that nobody has seen.
HAND = {
    "rcp": """RCP PCF NRF SPR PCC Rx N7 Gx AF SMF Npcf_SMPolicyControl Nnrf VoNR IMSI ResourceURI 策略 会话 专载 授权
        回落 紧急呼叫 中移 合适的信令跟踪""",
    "director": """Director VDC Daisyseed SSH SNMP Sto-Mgt 裸金属 物理机 虚机规格 发布虚机 网卡 镜像 虚拟资源 硬件资源
        组织 子组织 容灾 部署工具 部署规模 断点续装 命令行部署 地址池 云上 南向 纳管""",
    "emsplus": """EMSPlus EMSPlus_HeartBeat_NET IPDR MDS MU DPU MAN Reporting Logging 报表 日志 详单 定时任务 通用查询
        内存占用 CPU使用率 故障来源 故障类别 License文件 字段数据 未授权""",
    "umac": """uMAC AMF MME SGSN SGSN/MME VNF VNFC NFS SC GSU VoLTE CSFB ZXR10 Dump 告警级别 业务告警 告警无法 处理故障
        无法注册 License不足 服务化架构 软参 弹性 全量日志 license项 无线网元 安装前 用户信令跟踪""",
}


class Lexicon(StrEnum):
    NONE = "none"
    MINED = "mined"
    HAND = "hand"

    @property
    def label(self) -> str:
        return {
            Lexicon.NONE: "no keyword lists",
            Lexicon.MINED: "keyword lists mined from the corpus without the tested chunk",
            Lexicon.HAND: "written with the questions in view",
        }[self]


@dataclass(frozen=True, slots=True)
class Keywords:
    """Family → keyword → weight above 0."""

    weights: Mapping[str, Mapping[str, float]]

    @classmethod
    def chosen(cls, lexicon: Lexicon, cases: Sequence[Case]) -> Keywords:
        """The lists of the families of `cases`; mined ones come from these cases alone."""
        if lexicon is Lexicon.MINED:
            return cls(mined_hints([_terms(case.question) for case in cases], [case.family for case in cases]))
        if lexicon is Lexicon.HAND:
            return cls({family: dict.fromkeys(words.split(), 1.0) for family, words in HAND.items()})
        return cls({})

    def lists(self) -> dict[str, tuple[str, ...]]:
        return {family: tuple(words) for family, words in self.weights.items()}

    def shares(self, question: str, families: Sequence[str]) -> NDArray[np.float64]:
        """What each family has of the weight of the keywords that the question holds; all the same if it holds none."""
        held = np.array([self._held(question, family) for family in families])
        total = float(held.sum())
        return held / total if total else np.full(len(families), 1 / len(families))

    def _held(self, question: str, family: str) -> float:
        return sum(weight for word, weight in self.weights.get(family, {}).items() if _holds(question, word))


def _holds(question: str, keyword: str) -> bool:
    """Whether a question has a keyword, as a term or as written; a Latin one not within a longer word."""
    return keyword in _terms(question) or bool(_pattern(keyword).search(normalised(question)))


@lru_cache(maxsize=1_000)
def _pattern(keyword: str) -> re.Pattern[str]:
    before = r"(?<![A-Za-z0-9])" if keyword[0].isascii() else ""
    after = r"(?![A-Za-z0-9])" if keyword[-1].isascii() else ""
    return re.compile(f"{before}{re.escape(keyword)}{after}", re.IGNORECASE)


@lru_cache(maxsize=10_000)
def _terms(question: str) -> tuple[str, ...]:
    return tuple(terms(question))
