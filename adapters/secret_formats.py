"""The formats of tokens that issuers mark with a prefix.

They are as public scanners describe them, with lengths as there or less strict. None was checked with its issuer, and most
issuers publish no lengths, so a format may have changed since.
"""

from __future__ import annotations

import re

_ALPHABETS = {
    "d": r"\d",
    "h": "[0-9a-fA-F]",
    "U": "[A-Z0-9]",
    "l": "[a-zA-Z]",
    "a": "[A-Za-z0-9]",
    "w": r"[\w-]",
    "b": r"[A-Za-z0-9+/=_-]",
}
# A run is an alphabet and a length: `<a36>` for exactly 36 characters, `<a36+>` for at least so many.
_FORMATS = """
AKIA<U16> ASIA<U16> ABIA<U16> ACCA<U16> ABSK<b40+> LTAI<a20> AIza<w35> ya29.<w40+> GOCSPX-<w28> AKC<a10+> AGE-SECRET-KEY-1<U58>
ghp_<a36+> gho_<a36+> ghu_<a36+> ghs_<a36+> ghr_<a36+> github_pat_<w40+>
glpat-<w20+> glrt-<w20+> gldt-<w20+> glptt-<w40+> glft-<w20+> glcbt-<w20+> glsoat-<w20+> gloas-<w60+> glagent-<w50+>
ATATT3<b50+> ATCTT3<b50+> ATBB<a24+> BBDC-<b30+> npm_<a36> pypi-<w50+> rubygems_<h48> CLOJARS_<a60> dckr_pat_<w24+> dckr_oat_<w24+>
glsa_<a32>_<h8> glc_<b32+> dapi<h32> hf_<l30+> api_org_<l30+> r8_<a37+> gsk_<a50+> pplx-<a40+> xai-<a70+>
sk-<w32+> sk-proj-<w32+> sk-ant-<w32+> sk-svcacct-<w32+> sk-or-v1-<h64> sk_live_<a24+> sk_test_<a24+> rk_live_<a24+> rk_test_<a24+> whsec_<b24+>
SG.<w22>.<w43> xkeysib-<h64>-<a16> key-<h32> shpat_<h32> shpca_<h32> shppa_<h32> shpss_<h32> sq0atp-<w22+> sq0csp-<w43> EAAA<w60>
xapp-<d1>-<w20+> xoxe.xoxp-<d1>-<b100+> sntryu_<h64> sntrys_eyJ<b60+> lin_api_<a40> lin_oauth_<h64> ntn_<a40+> secret_<a43> figd_<w40+>
pul-<h40> PMAK-<h24>-<h34> NRAK-<U27> NRJS-<h19> NRII-<w32> pscale_tkn_<w32+> pscale_pw_<w32+> pscale_oauth_<w32+>
dp.pt.<a40+> dp.st.<w40+> dop_v1_<h64> doo_v1_<h64> dor_v1_<h64> dt0c01.<U24>.<U64> hvs.<w20+> hvb.<w20+> hvr.<w20+>
sbp_<h40> phx_<a40+> tfp_<w40+> nfp_<a36+> fio-u-<b64> ops_eyJ<b100+> duffel_live_<w43> CFPAT-<w43> EZAK<a54> EZTK<a54>
HRKU-AA<w58> rdme_<a70> pnu_<a36> sgp_<h40> shippo_live_<h40> shippo_test_<h40> fo1_<w43> <a14>.atlasv1.<w60+> sha256~<w43> p8e-<a32>
AC<h32> SK<h32> K00<d1><a27>
"""
_RUN = re.compile(r"<(\w)(\d+)(\+?)>")


def _pattern(form: str) -> str:
    pieces = _RUN.split(form)  # text, alphabet, length, plus, text, …
    runs = zip(pieces[1::4], pieces[2::4], pieces[3::4], pieces[4::4], strict=True)
    expanded = (
        f"{_ALPHABETS[kind]}{{{length}{',' if plus else ''}}}{'+' if plus else ''}{re.escape(text)}"
        for kind, length, plus, text in runs
    )
    return re.escape(pieces[0]) + "".join(expanded)


ISSUED = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?:{'|'.join(_pattern(form) for form in _FORMATS.split())})(?![A-Za-z0-9])|"
    r"xox[a-z]-(?:\d+-)+[A-Za-z0-9]+|[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27}|[0-9a-z]{32}-us\d{1,2}|\d{8,10}:AA[\w-]{33}|"
    # digests of passwords
    r"\$(?:[1567y]|gy|apr1|sha1)\$(?:rounds=\d{1,9}\$)?[\w./]{1,40}(?:\$[\w./]{1,64})?\$[\w./]{22,90}|\$2[abxy]?\$\d\d\$[\w./]{53}|"
    r"\$(?:argon2\w{1,2}|scrypt|pbkdf2[\w-]{0,10})\$[\w$./=,+-]{30,300}|pbkdf2_\w{3,8}\$\d{1,9}\$\w{1,60}\$[\w+/=]{20,100}|"
    r"\{S?SHA\d{0,3}\}[\w+/=]{20,120}|\$[89]\$[\w./-]{8,60}|"
    r"(?<![\w-])eyJ[\w-]++={0,2}\.[\w-]++={0,2}(?:\.[\w.+/=-]*)?)"
)
