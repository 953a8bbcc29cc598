"""Passwords, keys and tokens: the formats of well-known issuers, and values that a text calls a secret.

The formats of issuers' tokens are as public scanners describe them, with lengths as there or less strict. None was checked
with its issuer, and most issuers publish no lengths, so a format may have changed since.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

# Formats without a prefix, recognised by the text near them.
_NEAR = (
    re.compile(r"(?i:artif|jfrog|buildkit).{0,100}[\s=:\"](AP[0-9A-F][A-Za-z0-9]{8,200})(?=[\s\"]|$)"),
    re.compile(r"(?i:aws).{0,20}(?i:key|pwd|pw|password|pass|token).{0,20}?\b([0-9A-Za-z/+]{40})(?![0-9A-Za-z/+])"),
    re.compile(r"(?<![A-Za-z0-9+/])(?<!sha512-)([A-Za-z0-9+/]{86,88}==)"),  # Azure's storage
    # addresses that are a right: of webhooks, of signed downloads, of functions
    re.compile(r"https://hooks\.slack\.com/(?:services|workflows|triggers)/(\w+(?:/\w+){1,3})", re.IGNORECASE),
    re.compile(r"\.office\.com/webhook(?:b2)?/([^\s\"'<>)]{32,400})"),
    re.compile(r"/(?:web)?hooks/(?:\d{1,20}/)?([A-Za-z0-9_-]{60,80}|(?=[a-z]{0,26}\d)[a-z0-9]{26})(?![\w-])"),
    re.compile(r"/integrations?/(?:[\w-]{1,40}/){0,3}?((?=[a-z]{0,31}\d)[a-z0-9]{25,32})(?![\w-])", re.IGNORECASE),
    re.compile(r"/bot(\d{8,10}:AA[\w-]{33})/"),  # Telegram
    re.compile(
        r"[?&](?:sig|(?:x-(?:amz|goog)-)?signature|x-amz-security-token|code)=((?=[^\s&]{0,60}\d)[^\s&\"'<>]{20,2000})",
        re.IGNORECASE,
    ),
    re.compile(r"://[^\s:/?#@]{1,200}:([^\s:/?#@$&'()*+,;=!\[\]]{1,200})@"),
    re.compile(r"://([0-9a-f]{32})(?::\w{0,40})?@[\w.-]{1,200}/\d"),  # Sentry's address of a project
    # IBM's cloud services: a key without a prefix, after its name.
    re.compile(
        r"(?i:key|pwd|pass(?:word)?|token)[\"'\]]{0,2} {0,4}(?::=|=>|::|[=: ]) {0,4}[\"']?"
        r"((?:[0-9a-f]{48}|[0-9a-z]{64}|[A-Za-z0-9_-]{44})(?![A-Za-z0-9_-]))"
    ),
    re.compile(r"(?:NPM[ _-]?TOKEN|_authToken)\W{1,5}(?:NpmToken\.)?([a-z0-9-]{36})", re.IGNORECASE),
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_NAMES_OF_PASSWORDS = (
    r"(?:password|passwd|passphrase|passcode|passwort|kennwort|contraseña|mot de passe|wachtwoord|senha|пароль|密码|パスワード|"
    r"(?<![a-z])(?:pwd|pw|pass(?=[\"'`]?[ \t]{0,9}[:=]))|_pass|keypass|storepass|rediscli_auth)"
)
_KEY = (
    r"(?:(?:api|access|auth|secret|account|client|private|maps|encryption|signing|license)[ _.-]?key(?:_base)?|"
    r"secret|token|(?P<opaque>cookie|(?<![a-z])sid|"
    r"(?:routing|integration|unseal|recovery|ingest|write|app|application|functions?|master|webhook|shared)[ _.-]?key))"
)
_NAME = rf"(?P<name>(?P<password>{_NAMES_OF_PASSWORDS})|(?P<header>(?<=x-)(?:api|access|auth)-(?:key|token))|{_KEY})"
_QUOTE = r"\\{0,3}[\"'`]"
_VALUE = rf"(?P<quote>(?:{_QUOTE})?)(?P<value>(?:(?!</)[^\s\"'`\\]|\\(?![\\\"'`nrt])){{4,}}+)"
_SEPARATOR = (
    r"(?:(?P<tight>=)|[*_]{0,3}(?:[ \t]{0,40}(?::=|=>|->|[:=：→—–](?!:)|(?P<cell>\|(?![^\n]{0,400}\n[ \t|:]{0,9}-{3})))|"
    r"(?P<prose> (?:is|was|lautet) ))[*_]{0,3}[ \t]{0,40}|"
    r"(?P<below>[*_]{0,3}:[*_]{0,3}[ \t]{0,40}(?:[>|][+-]?)?\r?\n(?:[ \t]{0,40}\r?\n)?(?:```\w*\n)?[ \t]{0,40})|"
    # a pair of elements or attributes, or a variable with a default
    r"(?:[,;]?\s{1,40}|\s{0,9}\{[^{}]{0,200}?\s)[\"']?(?:value|default)[\"']?\s{0,9}[:=]\s{0,9}|"
    r"(?P<element>(?:>|</(?:t[dh]|dt)>)(?:\s{0,40}<\w[^<>]{0,80}>){0,3}\s{0,9}))"
)
_FOR = r"(?: \d{1,2}| for (?:\w+(?: \w+)?|(?:key )?'[^'\n]{1,200}'|[\w.-]{1,60}@[\w.-]{1,60}))?"
_ASSIGNED = re.compile(rf"{_NAME}{_FOR}(?:{_QUOTE})?\]?{_SEPARATOR}{_VALUE}(?=(?P<rest>[^\n]?[^\n]?))")
_OPTION = re.compile(
    rf"(?<!\S)--?[\w-]*?{_NAME}[ =](?P<prose>){_VALUE}(?=(?P<rest>)(?:[\"'`]|[ \t]*$|\s+-|\s+[^\s./:]{{0,100}}[./:])|)"
)
_HEADING = re.compile(rf"(?:[^\W_]{{1,40}}[ _.-]){{0,3}}{_NAME}s?", re.IGNORECASE)
_TABLE = re.compile(
    r"^(?P<head>[^\n]{0,400}\|[^\n]{0,400})\n[ \t]{0,3}\|?[ \t]{0,9}:?-{3}[ \t:|-]{0,400}\n(?P<rows>(?:[^\n|]{0,400}\|[^\n]{0,2000}(?:\n|\Z))+)",
    re.MULTILINE,
)
_CELL = re.compile(r"[^|\n]+")
_ANY = r"(?P<value>[^\s\"'`]{4,})"
_ACCOUNT = r"[\"']?[^\s:\"']{1,100}"
# What precedes a password in the line of a command.
_BEFORE = {
    "curl http https xh etcdctl": rf"(?:-[ua]|--user|--auth)[ =]?{_ACCOUNT}:",
    "mysql mysqldump mysqladmin 7z 7za 7zr rar": "-p",
    "login mongo mongosh mongodump cqlsh cypher-shell beeline useradd usermod": "-p[ =]?",
    "plink pscp psftp nodetool": "-pw ",
    "xfreerdp": "/p:",
    "redis-cli": "(?:-a|--pass)[ =]?",
    "ldapsearch ldapmodify ldapadd ldappasswd ldapwhoami": "-w[ =]?",
    "sqlcmd mosquitto_pub mosquitto_sub ipmitool zip unzip": "-P ?",
    "smbclient rpcclient": r"-U ?[\"']?[^\s%]{1,100}%",
    "lftp": rf"-u ?{_ACCOUNT},",
    "snmpwalk snmpget snmpset snmpbulkwalk": "-c ?",
    "sshpass": "-p *",
    "sqlplus expdp impdp rman sqlldr": r"[A-Za-z][\w.]{0,60}/",
    "htpasswd": r"-\w{0,5}b\w{0,5} \S{1,200} \S{1,100} ",
    "net": r"(?:use (?:\S{1,3} )?\\\\\S{1,200}(?: /\S{1,100})? |user \S{1,100} )",
    "rabbitmqctl": r"(?:add_user|change_password) \S{1,100} ",
    "kubectl oc": r"secret [^\n]{0,300}?--from-literal[ =][\"']?[\w.-]{1,100}=",
    "vault": r"(?:put|write) \S{1,100} [\w.-]{1,60}=",
}
_COMMAND = re.compile(
    rf"(?<![\w.-])(?P<name>{'|'.join(' '.join(_BEFORE).split())})(?= )(?=(?P<line>(?:[^\n&|;]|(?<! )[&|;]){{0,400}}))"
)
_AFTER = {
    name: re.compile(rf" {before}[\"']?(?P<value>(?!-)[^\s\"'`]{{4,}})")
    for names, before in _BEFORE.items()
    for name in names.split()
}
# Forms that name no password, by words of which one occurs in each. `mixed` is a value that is no plain word.
_FORMS = {
    "requirepass masterauth": rf"\b(?:requirepass|masterauth) +[\"']?{_ANY}",
    "pass:": rf"-pass(?:in|out)? +pass:{_ANY}",
    "--creds": rf"--creds[ =][^\s:]{{1,100}}:{_ANY}",
    "IDENTIFIED PASSWORD": rf"\b(?:IDENTIFIED BY|(?:SET )?PASSWORD(?: FOR [^\n;=]{{1,100}}=)?) *(?:PASSWORD\()?'{_ANY}",
    "SecureString": rf"\bConvertTo-SecureString +(?:-String +)?[\"']{_ANY}",
    "define( put( set": rf"\b(?:define|put|set\w{{0,20}})\( ?[\"'](?i:[^\"'\n]{{0,60}}?(?:{_NAMES_OF_PASSWORDS}|{_KEY}))[\"'], *[\"']{_ANY}",
    "ENV ARG setx set": rf"\b(?:ENV|ARG|setx|set) +(?i:\w{{0,60}}?(?:{_NAMES_OF_PASSWORDS}|{_KEY})) +[\"']?(?P<mixed>\S{{6,}})",
    "oracle:thin:": r"\boracle:thin:[\w.]{1,60}/(?P<value>[^\s/@]{4,})@",
    "machine": rf"\bmachine\s\S{{1,200}}\s{{1,9}}login\s\S{{1,100}}\s{{1,9}}password\s{_ANY}",
    "auth": r"(?:\"auth\": ?\"|\b_auth ?= ?)(?P<value>[A-Za-z0-9+/]{12,}={0,2})",
    "| ": r"\b(?:echo|printf) (?:-n )?[\"']?(?:[^\s:\"'|]{1,100}:)?(?P<value>[^\s\"'|]{4,200})[\"']? *\| *"
    r"(?:sudo -S|(?:sudo )?chpasswd|[^\n|]{1,200}--password-stdin)",
    "Authorization": r"\bAuthorization[\"']?: *[\"']?"
    r"(?:(?:token|ApiKey|Api-Key|Key|Digest|Negotiate|GenieKey) +(?P<value>[\w.~+/=-]{8,})|[A-Z][\w-]{1,20} +(?P<mixed>[\w.~+/-]{12,}=*))",
    "Bearer Basic": r"\b(?:Bearer|Basic) +(?P<value>[A-Za-z0-9._~+/-]{16,}=*)",
    "://": r"://[^\s/@:]{0,100}:(?P<value>[^\s/@]{3,200})@",
    "root": r"(?<!\S)root +/ +(?P<mixed>\S{6,})",
    "redentials creds ogin user User": r"\b(?i:credentials?|creds|logins?|user(?:name)?/pass(?:word)?)[*_]{0,3} ?[:=] ?[*_]{0,3}"
    r"[A-Za-z][\w.@-]{0,60}(?: ?/ ?|:|\|)(?P<mixed>[^\s/:\"']{6,100}+)(?![/:])",
    ":": r"^[ \t]{0,3}[^\s:/]{1,200}:(?:\d{2,5}|\*):[A-Za-z*][^\s:]{0,60}:[^\s:]{1,60}:(?P<mixed>[^\s:]{6,100})[ \t]*$",
    # the environment of a command; the configuration of a network device
    "PASS": r"\b[A-Z][A-Z0-9_]{0,60}PASS(?:WORD|PHRASE|WD)?=(?P<q>[\"'])(?P<value>[^\"'$\n]{6,100})(?P=q)",
    "password secret key": r"^[ \t]{0,9}(?:[\w-]{1,30} (?:\S{1,60} (?:privilege \d{1,2} )?)?)?(?:password|secret|key) [05789] (?P<value>[^\s$]{4,})[ \t]*$",
    "community": r"\bsnmp-server community (?P<value>[^\s\"']{4,})",
    "AUTH": r"^(?:\S{1,60}> ?)?AUTH (?:\w{1,40} )?(?P<mixed>\S{6,100})[ \t]*$",
}
_IN_TEXT = tuple((words.split(), re.compile(pattern, re.MULTILINE)) for words, pattern in _FORMS.items())
_NEXT_MANIFEST = re.compile(r"^---", re.MULTILINE)
_DATA = re.compile(r"^(?:data|stringData):[ \t]*\n(?P<pairs>(?:[ \t]+[^\n]+(?:\n|\Z))+)", re.MULTILINE)
_PAIR = re.compile(r"^[ \t]+[\w.-]{1,100}: *[\"']?(?P<value>[^\s\"'|>${<][^\s\"']{3,})", re.MULTILINE)
# Texts are searched in pieces, because a pattern may take quadratic time.
PIECE = re.compile(r".{1,4000}(?!\S)|\S{1,20000}", re.DOTALL)
_MARK = re.compile(r"[^\w./:-]")  # occurs in no word or name
MIN_PASSWORD = 6  # characters
MIN_TOKEN = 8  # characters
MAX_WORDS = 2
_NO_PASSWORD = re.compile(
    "args|bool|boolean|bytes|changed?|config|credentials?|default|disabled|empty|enabled|encrypted|expired|false|forgotten|"
    "getpass|hidden|incorrect|input|integer|invalid|masked|missing|never|none|null|number|optional|password|prompt|redacted|"
    "required|reset|rotated|secret|sensitive|settings|strict|string|text|token|true|undefined|unknown|unset|username|value|"
    "vault|wrong",
    re.IGNORECASE,
)
"""Words that stand in the place of a password and are none."""
_END = re.compile(
    r";(?:\s|\w+=|$)|&(?:\w+[=;])|(?<![.,;)|])[.,;)|]+$"
)  # the end of a value: `a=1;b=2`, `?a=1&b=2`, a full stop
_REFERENCE = re.compile(
    r"""^(?:[$<{%*(\[-]|/|\.{1,2}/|~/|https?:|file:|vault:|op:|arn:|secret/|env[.(:]|os\.|process\.|sha\d+:)|"""
    r"""[>})\]]$|^x{3,}$|\.(?:ya?ml|json|pem|crt|txt|env|sh)$|\(|^v?\d+(?:\.\d+)+$|[\[*]$|"""
    r"""^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|^[a-z]+(?:[._][a-z]+)+$""",
)
"""A value that refers to a secret or is none: a variable, template, path, file, option or version."""

_IDENTIFIER = re.compile(r"^[a-z0-9]+(?:-[a-z0-9]+)+$")
_NAMED = re.compile(r"^(?=\d*[a-z])[a-z0-9]++(?:[._-][a-z0-9]++)+$")  # orders.created.v2
_CAMEL = re.compile(r"[a-z][A-Z]")
_PHRASE = re.compile(r"^[a-z]{3,}(?:[-_ ][a-z]{3,}){2,}$")


class SecretPatterns:
    """Implements `core.ports.SecretDetector`. Nothing is verified over the network."""

    def find(self, text: str) -> list[tuple[int, int]]:
        spans = [match.span() for match in (*_PRIVATE_KEY.finditer(text), *ISSUED.finditer(text))]
        for piece in PIECE.finditer(text):
            spans += ((piece.start() + start, piece.start() + end) for start, end in _in_piece(piece[0]))
        return _merged(spans)


def _in_piece(text: str) -> Iterator[tuple[int, int]]:
    yield from (match.span(1) for pattern in _NEAR for match in pattern.finditer(text))
    lower = text.replace("İ", "I").lower()  # of the same length; patterns that ignore case take several times as long
    for pattern in (_ASSIGNED, _OPTION):
        for match in pattern.finditer(lower):
            if text[slice(*match.span("name"))] == "PASS":  # the result of a test
                continue
            yield from _value(text[slice(*match.span("value"))], match.start("value"), match)
    yield from _in_columns(text)
    yield from _in_commands(text, lower)
    yield from _in_manifests(text)


def _in_columns(text: str) -> Iterator[tuple[int, int]]:
    """Yield the cells of a table below a heading that calls them secret."""
    for table in _TABLE.finditer(text):
        named = [_HEADING.fullmatch(cell[0].strip(" *_`")) for cell in _CELL.finditer(table["head"].strip(" |"))]
        for row in table["rows"].splitlines(keepends=True) if any(named) else ():
            at = table.start("rows") + table["rows"].index(row)
            start = len(row) - len(row.lstrip(" |"))
            for heading, cell in zip(named, _CELL.finditer(row, start), strict=False):
                word = cell[0].strip(" *`\n")
                if heading and " " not in word:
                    yield from _value(word, at + cell.start() + cell[0].index(word), heading)


def _value(value: str, start: int, match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the place of a value that the text calls a secret, if it looks like one."""
    parts = match.groupdict()
    if end := "|" if parts.get("cell") else "<" if parts.get("element") else "":
        value = value.partition(end)[0]
    end = _END.search(value)
    value = value[: end.start()] if end else value
    if value and not _REFERENCE.search(value) and _looks_secret(value, parts):
        yield start, start + len(value)


def _looks_secret(value: str, match: Mapping[str, str | None]) -> bool:
    """Return whether a value looks like a secret. Plain words (unless a whole password) and resource names do not."""
    if match["password"]:
        if match.get("quote") and _PHRASE.match(value):
            return True
        if match.get("prose") is not None and (_IDENTIFIER.match(value) or _CAMEL.search(value)):
            return len(value) >= MIN_PASSWORD and bool(_CAMEL.search(value))
        return len(value) >= MIN_PASSWORD and (_is_mixed(value) or (_stands_alone(match) and _is_word(value, match)))
    if match["opaque"]:
        return bool(len(value) >= 2 * MIN_TOKEN and _is_mixed(value) and not _NAMED.match(value))
    is_uuid = len(value) == 36 and value.count("-") == 4
    return (
        len(value) >= MIN_TOKEN
        and _is_mixed(value)
        and (is_uuid or bool(match["header"]) or not _IDENTIFIER.match(value))
    )


def _is_word(value: str, match: Mapping[str, str | None]) -> bool:
    """Return whether letters are a password: one word, or, where a value is marked as one, two with a hyphen."""
    words = value.split("-") if match.get("quote") or match.get("cell") else [value]
    return len(words) <= MAX_WORDS and all(word.isalpha() and not _NO_PASSWORD.fullmatch(word) for word in words)


def _stands_alone(match: Mapping[str, str | None]) -> bool:
    """Return whether nothing follows the value in its line or quotes, so that it is no word of a sentence."""
    if match.get("below") is not None or match.get("rest") is None:
        return False
    rest = str(match["rest"])
    return (
        bool(match["quote"])
        or not rest.strip()
        or rest.lstrip().startswith(("<", "|"))
        or (match.get("tight") is not None and rest.startswith(" "))
    )


def _in_commands(text: str, lower: str) -> Iterator[tuple[int, int]]:
    for command in _COMMAND.finditer(lower):
        for match in _AFTER[command["name"]].finditer(text, *command.span("line")):
            if not _REFERENCE.search(match["value"]):
                yield match.span("value")
    for words, pattern in _IN_TEXT:
        for match in pattern.finditer(text) if any(map(text.__contains__, words)) else ():
            name = str(match.lastgroup)
            if not _REFERENCE.search(match[name]) and (
                name == "value" or _is_mixed(match[name]) or _CAMEL.search(match[name])
            ):
                yield match.span(name)


def _in_manifests(text: str) -> Iterator[tuple[int, int]]:
    """Yield the values of the Kubernetes objects that are secrets."""
    if "kind: Secret" not in text:
        return
    for start, end in pairwise((0, *(match.start() for match in _NEXT_MANIFEST.finditer(text)), len(text))):
        for data in _DATA.finditer(text, start, end) if "kind: Secret" in text[start:end] else ():
            yield from (pair.span("value") for pair in _PAIR.finditer(text, *data.span("pairs")))


def _is_mixed(value: str) -> bool:
    """Return whether a value has letters together with digits or special characters."""
    return any(map(str.isalpha, value)) and (any(map(str.isdigit, value)) or bool(_MARK.search(value)))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged = list[tuple[int, int]]()
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


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
