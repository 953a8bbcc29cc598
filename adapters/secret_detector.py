"""Passwords, keys and tokens: values that a text calls a secret, random values with a prefix, and formats of issuers.

A value beside a word for a secret goes in whatever container the two stand, by one pattern of names, separators and
values (`_ASSIGNED`). The closer the two are bound, the less the value has to look like a secret; what is only in the same
line has to be made like a password (`_is_chosen`). Below a heading for secrets every value goes, if one of them looks like
a secret. A random value without such a name goes if it has a prefix like an issuer's, whoever that is, or if its line
speaks of a secret.

The formats of issuers' tokens are as public scanners describe them, with lengths as there or less strict. None was checked
with its issuer, and most issuers publish no lengths, so a format may have changed since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest

# A private key, of which the end may be missing, or the beginning.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)|"
    r"(?:^[A-Za-z0-9+/]{40,76}\r?\n)*+^[A-Za-z0-9+/=]{1,76}\r?\n-----END [A-Z0-9 ]{0,40}PRIVATE KEY",
    re.MULTILINE,
)
# The words for a password in several languages. Every place that reads names reads these.
_WORDS_IN_LANGUAGES = (
    "password|passwd|passphrase|passcode|passwort|kennwort|passwörter|kennwörter|zugangscode|"
    "mots?[ _]de[ _]passe|phrase[ _]de[ _]passe|code d'accès|contraseña|contrasena|clave[ _]de[ _]acceso|"
    "senha|palavra[ _-]passe|parola|wachtwoord|toegangscode|lösenord|passord|adgangskode|salasana|"
    "hasło|heslo|jelszó|şifre|пароль|密码|密碼|パスワード|暗証番号|비밀번호"
)
_NAMES_OF_PASSWORDS = (
    rf"(?:{_WORDS_IN_LANGUAGES}|psk|(?<![a-z])(?:pwd|pw|mdp|cred(?![a-z])|pin(?=\W{{1,3}}\d{{4,8}}\b))|"
    r"(?:recovery|backup|scratch)[ _-]codes?|access[ -]code|"
    r"(?<!by)(?<!com)(?<!sur)(?<!tres)pass(?=[\"'`]?[ \t]{0,9}[:=<>])|_pass|keypass|storepass|pre[ _-]?shared[ _-]?key|rediscli_auth)"
)
_KEY = (
    r"(?:(?:api|access|auth|secret|account|client|private|maps|encryption|decryption|signing|validation|license)[ _.-]?key(?:_base)?|"
    r"(?<!\d:)secret|token|(?P<opaque>cookie|(?<![a-z])sid|(?<=[a-z]_)auth|"
    r"(?:routing|integration|unseal|recovery|ingest|write|app|application|functions?|master|webhook|shared)[ _.-]?key)|"
    # words that name a secret as often as something else
    r"(?P<weak>(?<!public)(?<!public[ _-])key(?:[ _-]?data)?|auth|session|jwt|bearer|login|credentials?|creds)(?=(?: \d{1,2})?\W{1,40}(?:(?:value|default)\W{1,9})?[\w+/%.~-]{16}|\W{0,9}\Z))"
)
_NAME = (
    # the beginnings of the names, by which most places of a text are passed over at once
    rf"(?={'|'.join(sorted({word[:3] for word in _WORDS_IN_LANGUAGES.split('|')}))}|ps|pw|md|cr|pi|p[aro]|s[cehit]|to|ke|a[cpu]|ba|c[lo]|de|ma|we|_p|r[eo]|en|l[io]|in|un|va|fu|jw|be)"
    rf"(?P<name>(?P<password>{_NAMES_OF_PASSWORDS})|(?P<header>(?<=x-)(?:api|access|auth)-(?:key|token))|{_KEY})"
)
_QUOTE = r"\\{0,3}[\"'`]"
_VALUE = (
    rf"(?P<quote>(?:{_QUOTE})?)(?P<value>(?:[^\s\"'`\\<&;]|<(?!/)|[&;](?![\w.-]{{1,60}}=)|\\(?![\\\"'`nrt])){{4,}}+)"
)
_BEFORE_ODD = r"[^\n]{0,60}?(?<=[\s\"'`(\[>,])(?=[^\s\d]{0,40}\d)"
_SEPARATOR = (
    r"(?:(?P<tight>=)|[*_]{0,3}(?:[ \t]{0,40}(?::=|=>|->|[:=：→—–](?!:)|(?P<cell>\|(?![^\n]{0,400}\n[ \t|:]{0,9}-{3})))|"
    r"\t|(?P<prose> (?:(?:now )?(?:is|was|lautet|ist|est|es|é)(?: now| still| currently)?|(?:(?:re)?set|changed|rotated) to):? ))[*_]{0,3}[ \t]{0,40}|"
    # on the next line, alone
    r"(?P<below>[*_]{0,3}(?::|(?P<heading>(?: \([^()\n]{0,60}\))?(?=[*_ \t]{0,9}\r?\n)))[*_]{0,3}[ \t]{0,40}(?:[>|][+-]?)?\r?\n(?:[ \t]{0,40}\r?\n)?"
    r"(?:```\w*\n)?[ \t]{0,40}(?::[ \t]{1,40})?(?=(?(heading)[^\s,;]|\S){4,}+[ \t]{0,40}(?:[\r\n]|\Z)))|"
    # a pair of elements or attributes, or a variable with a default
    r"(?:[,;]?\s{1,40}|\s{0,9}\{[^{}]{0,200}?\s)[\"']?(?:value|default)[\"']?\s{0,9}[:=]\s{0,9}|"
    r"(?P<element>(?:>(?!@)|:?</(?:t[dh]|dt|b|strong|em|h\d|span|label)>:?)(?:\s{0,40}<\w[^<>]{0,80}>){0,3}\s{0,9})|"
    r"(?P<beside>(?: (?:- )?(?=[^\s\d]{0,40}\d)(?=[\"'`]?[^\s=:\"'`]{8,}+=*[\"'`.,;)]*(?:\s|\Z))|(?:\(|,) ?(?=[\"'])))|"
    # in the same line, before a word with a digit
    rf"(?P<chosen>(?(password)(?![^\W\d_]){_BEFORE_ODD}|(?!))))"
)
_FOR = r"(?: \d{1,2}| (?:for|of|on) (?:(?:the )?\w+(?: \w+)?|(?:key )?'[^'\n]{1,200}'|[\w.-]{1,60}@[\w.-]{1,60}))?"
_ASSIGNED = re.compile(
    rf"(?:{_NAME}{_FOR}(?:{_QUOTE})?\]?{_SEPARATOR}|"
    # words that speak of a password without naming it
    rf"(?P<spoken>(?=[elpr])(?<![a-z])(?:log ?in|logon|enter|prompted|reset)(?![a-z]){_BEFORE_ODD})){_VALUE}"
    # nothing follows in the line, so that the value is no word of a sentence
    r"(?:(?(below)(?!)|(?:(?=[^\S\n]?+(?:\s|\Z|[<|&;]))|(?(tight)(?= )|(?!))))(?P<alone>))?"
)
_OPTION = re.compile(
    rf"(?<!\S)--?[\w-]*?{_NAME}[ =](?P<prose>){_VALUE}(?=(?P<alone>)(?:[\"'`]|[ \t]*$|\s+-|\s+[^\s./:]{{0,100}}[./:])|)"
)
_HEADING = re.compile(
    rf"(?:[^\W_]{{1,40}}[ _.-]){{0,3}}{_NAME}s?(?: \([^()]{{0,60}}\)| (?:for|of|on|für|de|du) [^:]{{1,60}})?:?",
    re.IGNORECASE,
)
# Tables of Markdown and of wikis, columns that commas, semicolons or tabs part, and lists of one column below a line that
# names them, each with the pattern of its cells.
_TABLES = tuple(
    (re.compile(table, re.MULTILINE), re.compile(cell))
    for table, cell in (
        (
            r"^(?P<head>[^\n]{0,400}\|[^\n]{0,400})\n[ \t]{0,3}\|?[ \t]{0,9}:?-{3}[ \t:|-]{0,400}\n(?P<rows>(?:[^\n|]{0,400}\|[^\n]{0,2000}(?:\n|\Z))+)",
            r"[^|\n]+",
        ),
        (
            r"^(?P<head>[\w \"-]{1,40}+(?:[,;\t][\w \"-]{1,40}+){1,30}+)\r?\n(?P<rows>(?:[^\n,;\t]{0,400}[,;\t][^\n]{0,2000}(?:\n|\Z))+)",
            r"(?<![^,;\t\n])[^,;\t\n]*",
        ),
        (
            r"^[ \t]{0,9}\|\|(?P<head>[^\n|]{1,100}+(?:\|\|[^\n|]{1,100}+){1,30})\|\|[ \t]{0,9}\r?\n(?P<rows>(?:[ \t]{0,9}\|[^\n]{0,2000}(?:\n|\Z))+)",
            r"[^|\n]+",
        ),
        (
            r"^(?P<head>[^\n|,;\t]{4,100}+)\r?\n(?P<rows>(?:[ \t]{0,40}(?:(?:[*-]|\d{1,2}[.)])[ \t]{1,4})?\S{6,100}+[ \t]{0,9}(?:\r?\n|\Z)){2,100})",
            r"[^\n]+",
        ),
    )
)
_ONLY_WORD = re.compile(r"[ \t]*+(?:(?:-|\d{1,2}[.)])[ \t])?[ \t*`_\"]*+(?P<value>[^\s*`\"]\S{3,100}?)[ \t*`_\"\r]*")
_ROW = re.compile(r"[ \t|]*(?P<cells>[^\n]+)")
_MARKUP = ' *`_"\r'
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
    # Formats without a prefix, recognised by the text near them.
    "rtifact ARTIFACT frog FROG Frog uildkit": r"(?i:artif|jfrog|buildkit).{0,100}[\s=:\"](?P<issued>AP[0-9A-F][A-Za-z0-9]{8,200})(?=[\s\"]|$)",
    "aws AWS Aws": r"(?i:aws).{0,20}(?i:key|pwd|pw|password|pass|token).{0,20}?\b(?P<issued>[0-9A-Za-z/+]{40})(?![0-9A-Za-z/+])",
    "==": r"(?<![A-Za-z0-9+/])(?<!sha512-)(?P<issued>[A-Za-z0-9+/]{86,88}==)",  # Azure's storage
    # addresses that are a right: of webhooks, of signed downloads, of functions
    "hooks.slack.com": r"https://hooks\.slack\.com/(?:services|workflows|triggers)/(?P<issued>\w+(?:/\w+){1,3})",
    ".office.com": r"\.office\.com/webhook(?:b2)?/(?P<issued>[^\s\"'<>)]{32,400})",
    "hooks/": r"/(?:web)?hooks/(?:\d{1,20}/)?(?P<issued>[A-Za-z0-9_-]{60,80}|(?=[a-z]{0,26}\d)[a-z0-9]{26})(?![\w-])",
    "ntegration": r"/(?i:integrations?)/(?:[\w-]{1,40}/){0,3}?(?P<issued>(?=[a-z]{0,31}\d)[a-z0-9]{25,32})(?![\w-])",
    "/bot": r"/bot(?P<issued>\d{8,10}:AA[\w-]{33})/",  # Telegram
    "sig= ignature= oken= code=": r"[?&](?i:sig|(?:x-(?:amz|goog)-)?signature|x-amz-security-token|code)="
    r"(?P<issued>(?=[^\s&]{0,60}\d)[^\s&\"'<>]{20,2000})",
    "@": r"://[^\s:/?#@]{1,200}:(?!x-oauth-basic@)(?P<issued>[^\s:/?#@$&'()*+,;=!\[\]<>{}]{1,200})@",
    # IBM's cloud services: a key without a prefix, after its name.
    "ey EY wd WD ass ASS oken OKEN": r"(?i:key|pwd|pass(?:word)?|token)[\"'\]]{0,2} {0,4}(?::=|=>|::|[=: ]) {0,4}[\"']?"
    r"(?P<issued>[0-9a-f]{48}|[0-9a-z]{64}|[A-Za-z0-9_-]{44})(?![A-Za-z0-9_-])",
    "_TOKEN _token TOKEN _authToken": r"(?i:NPM[ _-]?TOKEN|_authToken)\W{1,5}(?:NpmToken\.)?(?P<issued>[a-z0-9-]{36})",
    "requirepass masterauth": rf"\b(?:requirepass|masterauth) +[\"']?{_ANY}",
    "pass:": rf"-pass(?:in|out)? +pass:{_ANY}",
    "--creds": rf"--creds[ =][^\s:]{{1,100}}:{_ANY}",
    "IDENTIFIED PASSWORD": rf"\b(?:IDENTIFIED BY|(?:SET )?PASSWORD(?: FOR [^\n;=]{{1,100}}=)?) *(?:PASSWORD\()?'{_ANY}",
    "SecureString": rf"\bConvertTo-SecureString +(?:-String +)?[\"']{_ANY}",
    "define( put( set": rf"\b(?:define|put|set\w{{0,20}})\( ?[\"'](?i:[^\"'\n]{{0,60}}?(?:{_NAMES_OF_PASSWORDS}|{_KEY}))[\"'], *[\"']{_ANY}",
    "(": r"\((?:(?<=(?i:login|.auth|nnect|ntial|tials|icate)\()|(?<=(?i:auth) = \()|(?<=(?i:auth)=\())\s{0,9}[\"'][^\"'\n]{1,100}[\"'],\s{0,9}[\"'](?P<mixed>[^\s\"']{6,200})[\"']",
    "-p -P -w": r"(?<!\S)(?:-[uUD]|--user(?:name)?)[ =]?(?!-)\S{1,100} (?:[^\s-]\S{0,100} ){0,3}-(?:[pPw]|pw)[ =]?[\"']?(?P<mixed>[^\s\"']{6,200})",
    "ENV ARG setx set": rf"\b(?:ENV|ARG|setx|set) +(?i:\w{{0,60}}?(?:{_NAMES_OF_PASSWORDS}|{_KEY})) +[\"']?(?P<mixed>\S{{6,}})",
    "oracle:thin:": r"\boracle:thin:[\w.]{1,60}/(?P<value>[^\s/@]{4,})@",
    "machine": rf"\bmachine\s\S{{1,200}}\s{{1,9}}login\s\S{{1,100}}\s{{1,9}}password\s{_ANY}",
    "auth": r"(?:\"auth\": ?\"|\b_auth ?= ?)(?P<value>[A-Za-z0-9+/]{12,}={0,2})",
    "| ": r"\b(?:echo|printf) (?:-n )?[\"']?(?:[^\s:\"'|]{1,100}:)?(?P<value>[^\s\"'|]{4,200})[\"']? *\| *"
    r"(?:sudo -S|(?:sudo )?chpasswd|[^\n|]{1,200}--(?:password-)?stdin)",
    "Authorization": r"\bAuthorization[\"']?: *[\"']?"
    r"(?:(?:token|ApiKey|Api-Key|Key|Digest|Negotiate|GenieKey) +(?P<value>[\w.~+/=-]{8,})|[A-Z][\w-]{1,20} +(?P<mixed>[\w.~+/-]{12,}=*))",
    "Bearer Basic SSWS": r"\b(?:Bearer|Basic|SSWS) +(?P<value>[A-Za-z0-9._~+/-]{16,}=*)",
    "://": r"://(?:[^\s/@:]{0,100}:(?!x-oauth-basic@)(?P<value>[^\s/@]{3,200})|(?P<opaque>[\w.~+=-]{20,200}+)(?::[\w-]{0,40})?)@",
    "ookie": r"(?i:\bcookie[\"']?[:=] ?[\"']?|--cookie[ =][\"']?)(?:[\w.-]{1,60}=[^\s;]{0,200}; ?){0,20}?[\w.-]{1,60}=(?P<opaque>[\w.%+/~-]{16,2000})",
    "-b ": r"-b [\"']?[\w.-]{1,60}=(?P<opaque>[\w.%+/~-]{16,2000})",
    "root": r"(?<!\S)root +/ +(?P<mixed>\S{6,})",
    "root admin": r"(?<!\S)(?:root|admin)[:/](?P<odd>[^\s:/]{8,100}+)(?![:/])",
    "redentials creds ogin user User": r"\b(?i:credentials?|creds|logins?|user(?:name)?/pass(?:word)?)[*_]{0,3}(?: ?[:=] ?| (?:is|are) )[*_]{0,3}"
    r"[A-Za-z][\w.@-]{0,60}(?: ?/ ?|:|\|)(?P<mixed>[^\s/:\"']{6,100}+)(?![/:])",
    ":": r"^[ \t]{0,3}[^\s:/]{1,200}:(?:\d{2,5}|\*):[A-Za-z*][^\s:]{0,60}:[^\s:]{1,60}:(?P<mixed>(?:[^\s:\\]|\\[^\s]){6,100})[ \t]*$",
    # the environment of a command; the configuration of a network device
    "PASS": r"\b[A-Z][A-Z0-9_]{0,60}PASS(?:WORD|PHRASE|WD)?=(?P<q>[\"'])(?P<value>[^\"'$\n]{6,100})(?P=q)",
    "password secret key": r"^[ \t]{0,9}(?:[\w-]{1,30} (?:\S{1,60} (?:privilege \d{1,2} )?)?)?(?:password|secret|key) [05789] (?P<value>[^\s$]{4,})[ \t]*$",
    "community": r"\bsnmp-server community (?P<value>[^\s\"']{4,})",
    # what a prompt got by mistake, what a command printed, and the groups of a key to be typed
    "$ # > %": r"^(?:[\w.-]{1,60}@[^\n$#>%]{1,80}|[\w.-]{1,60})[$#>%] (?P<chosen>\S{8,40})[ \t]*$",
    "Q~": r"(?<![\w.~-])(?P<value>[\w.~-]{3}\dQ~[\w.~-]{31,34})(?![\w.~-])",  # Entra ID
    "-field= op:// get-secret-value versions keyvault pwgen openssl": r"\b(?:vault (?:kv get|read) -field=|op read |get-secret-value |secrets versions access |"
    r"secret show |pwgen |openssl rand )[^\n]{0,200}\n(?P<mixed>\S{8,200})[ \t]*$",
    "etup manual uthenticator OTP 2FA MFA": r"(?i:key|secret|code|otp|mfa|2fa)[^\n:]{0,40}: ?(?P<value>(?=(?:[A-Za-z]{4} )*+[A-Za-z]{0,3}[2-7])[A-Za-z2-7]{4}(?: [A-Za-z2-7]{4}){3,15})(?![\w ]*[0189])",
    "AUTH": r"^(?:\S{1,60}> ?)?AUTH (?:\w{1,40} )?(?P<mixed>\S{6,100})[ \t]*$",
}
_IN_TEXT = tuple((words.split(), re.compile(pattern, re.MULTILINE)) for words, pattern in _FORMS.items())
_MANIFEST = re.compile(r"(?:^(?!---)[^\n]*+\n?)++", re.MULTILINE)
_DATA = re.compile(r"^(?:data|stringData):[ \t]*\n(?P<pairs>(?:[ \t]+[^\n]+(?:\n|\Z))+)", re.MULTILINE)
_PAIR = re.compile(r"^[ \t]+[\w.-]{1,100}: *[\"']?(?P<value>[^\s\"'|>${<][^\s\"']{3,})", re.MULTILINE)
# Texts are searched in pieces, because a pattern may take quadratic time.
PIECE = re.compile(r".{1,4000}(?!\S)|\S{1,20000}", re.DOTALL)
# `bound` is set where a token has a name of its own, `prefix` is like that of an issuer, and `long` is set where the rest
# has upper and lower case and is longer than an identifier.
_TOKEN = re.compile(
    r"(?<![\w/\\.+%@#$~-])(?P<bound>(?<=[:=])|(?<=[:=] )|(?<=[:=][\"'])|(?<=[:=] [\"']))?(?=[\w+/.~-]{16})"
    r"(?P<prefix>(?!sha\d)(?:(?:[a-z]{2,9}|[A-Z]{2,9})[\da-z]{0,2}[-_.]|\d[-_.]){1,4})?"
    r"(?P<long>(?=[\d_.~-]*+[A-Za-z0-9])(?=[^a-z\s]{0,40}[a-z])(?=[^A-Z\s]{0,40}[A-Z])(?=[\w.~-]{30,}+(?![+/])))?"
    r"(?P<body>[A-Za-z0-9][\w+/.~-]*+={0,2})"
)
_BESIDE = re.compile(
    rf"(?:{_NAMES_OF_PASSWORDS}|secret|token|credential|cookie|jwt|bearer|login|unseal|(?:api|access|auth|private|deploy)[ _-]?key)"
    r"s?(?![\w-])"
)
BEFORE, AFTER = 60, 20  # characters of its line on both sides of a token, in which a word for a secret counts
_RUNS = re.compile(r"[A-Za-z0-9]+")
_CHUNK = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")  # a word, or a number
# A hash, a number, a ULID, the wire format of a public key (it begins with zeros), a mangled symbol.
_IS_ID = re.compile(r"(?:0x)?[\da-fA-F]+|0[0-7][\dA-HJKMNP-TV-Z]{24}|AAAA.*|_*[ZR].*", re.DOTALL)
_HEX = re.compile(r"(?<![A-Za-z0-9])(?:[\da-f]{32,}+|[\dA-F]{32,}+)(?![A-Za-z0-9])")
MIN_RUN, MAX_CHUNK = 12, 3.3  # letters and digits in a row of a random value, and of each chunk on average
_SECRET = re.compile(b"x+")
_MARK = re.compile(r"[^\w./:-]")  # occurs in no word or name
MIN_PASSWORD = 6  # characters
MIN_TOKEN = 8  # characters
_WORD = re.compile(
    r"(?:(?:^|(?!^)-)(?!(?:args|bool|boolean|bytes|changed?|config|credentials?|default|disabled|empty|enabled|encrypted|expired|false|"
    r"forgotten|getpass|hidden|incorrect|input|integer|invalid|masked|missing|never|none|null|number|optional|password|prompt|"
    r"redacted|required|reset|rotated|secret|sensitive|settings|strict|string|text|token|true|undefined|unknown|unset|username|"
    r"value|vault|wrong)(?![^\W\d_]))[^\W\d_]+){1,2}",
    re.IGNORECASE,
)  # one word or two, but none that stands in the place of a password
_END = re.compile(
    r";(?:\s|\w+=|$)|&(?:\w+[=;])|(?<![.,;)|\]}])[.,;)|\]}]+$"
)  # the end of a value: `a=1;b=2`, `?a=1&b=2`, a full stop
# A value that refers to a secret or is none: a variable, template, path, file, option or version.
_REFERENCE = re.compile(
    r"""^(?:![a-z]|id=|[$<{%*(\[-]|/|\.{1,2}/|~/|https?:|file:|vault:|op:|arn:|secret/|env[.(:]|os\.|process\.|sha\d+:)|"""
    r"""[>})\]]$|^x{3,}$|\.(?:ya?ml|json|pem|crt|txt|env|sh)$|[$\]][({]|^!?[A-Za-z_$][\w.$:<>]{2,}[(\[{]|^v?\d+(?:\.\d+)+$|[\[*]$|"""
    r"""^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|^[a-z]+(?:[._][a-z]+)+$""",
)
# A password in a sentence: of digits, or of a digit and letters with a mark inside, or of a digit and letters of both cases
# with more than a name has: three digits, a digit in the place of a letter, or words that a mark parts.
_ODD = re.compile(
    r"(?=\D*\d)(?:\d{8,}+$|(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?:(?:\D*\d){3}|[A-Z]?[a-z]+\d[a-z]{2}|.*[a-z\d][._-]\w)|"
    r"(?=.*?[a-zA-Z]).+?[^\w./:-].)"
)
_IDENTIFIER = re.compile(r"^[a-z0-9]+(?:-[a-z0-9]+)+$")
_NAMED = re.compile(r"^(?=\d*[a-z])[a-z0-9]++(?:[._-][a-z0-9]++)+$")  # orders.created.v2
_IN_NAMES = re.compile(r"^\d+$|[,/=(\[]|\d\.\d|\..{0,100}\.")  # numbers, paths, versions, packages
_CAMEL = re.compile(r"[a-z][A-Z]")
_PHRASE = re.compile(r"^[a-z]{3,}(?:[-_ ][a-z]{3,}){2,}$")


class SecretPatterns:
    """Implements `core.ports.SecretDetector`. Nothing is verified over the network."""

    def find(self, text: str) -> list[tuple[int, int]]:
        secret = bytearray(len(text))
        # Office's formats write the end of a line so. The length stays.
        for start, end in _spans(text.replace("_x000D_", " " * 7)):
            secret[start:end] = b"x" * (end - start)
        return [match.span() for match in _SECRET.finditer(secret)]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    issued = (ISSUED, _PRIVATE_KEY) if "PRIVATE KEY" in text else (ISSUED,)
    yield from (match.span() for pattern in issued for match in pattern.finditer(text))
    for piece in PIECE.finditer(text):
        yield from ((piece.start() + start, piece.start() + end) for start, end in _in_piece(piece[0]))


def _in_piece(text: str) -> Iterator[tuple[int, int]]:
    lower = text.replace("İ", "I").lower()  # of the same length; patterns that ignore case take several times as long
    for pattern in (_ASSIGNED, _OPTION):
        for match in pattern.finditer(lower):
            if text[slice(*match.span("name"))] != "PASS":  # the result of a test
                yield from _value(text[slice(*match.span("value"))], match.start("value"), match)
    yield from _unnamed(text, lower)
    yield from _in_columns(text)
    yield from _in_commands(text, lower)
    yield from _in_manifests(text)


def _unnamed(text: str, lower: str) -> Iterator[tuple[int, int]]:
    """Yield the random tokens with a prefix like an issuer's, or without a name but beside a word for a secret."""
    for match in _TOKEN.finditer(text):
        end = match.end() - len(match[0]) + len(match[0].rstrip(".-~/"))
        beside = f"{lower[max(0, match.start() - BEFORE) : match.start()]}\0{lower[end : end + AFTER]}"
        if (match["prefix"] and match["long"] is not None and _is_random(match["body"])) or (
            match["bound"] is None
            and (_is_opaque if match["prefix"] else _is_random)(match["body"])
            and _BESIDE.search(beside, beside.rfind("\n", 0, BEFORE) + 1)
        ):
            yield match.start(), end


def _is_chosen(value: str) -> bool:
    """Return whether a value is made like a password that a person chose, and like no name, version or address."""
    return (
        len(value) >= MIN_TOKEN
        and bool(_ODD.match(value))
        and not _REFERENCE.search(value)
        and not _IN_NAMES.search(value)
        and not (_CAMEL.search(value) and not _MARK.search(value))
    )


def _is_random(value: str) -> bool:
    """Return whether letters and digits alternate as in no word, name, path, hash or identifier."""
    runs = _RUNS.findall(value)
    return (
        len(set(value)) >= MIN_TOKEN
        and any(len(run) >= MIN_RUN and not run.isalpha() and not _IS_ID.fullmatch(run) for run in runs)
        and all(len(run) < MAX_CHUNK * len(_CHUNK.findall(run)) for run in runs if len(run) > MAX_CHUNK + 1)
    )


def _is_opaque(value: str) -> bool:
    return _is_random(value) or bool(_HEX.search(value))


def _may_be_secret(value: str) -> bool:
    """Return whether a value neither refers to something else nor stands in the place of one that is missing."""
    return not _REFERENCE.search(value) and (not value.isalpha() or bool(_WORD.fullmatch(value)))


def _is_mixed(value: str) -> bool:
    """Return whether a value has letters together with digits or special characters."""
    return any(map(str.isalpha, value)) and (any(map(str.isdigit, value)) or bool(_MARK.search(value)))


# Whether what a group of a form finds looks like a secret.
_JUDGES: Mapping[str, Callable[[str], bool]] = {
    "value": bool,
    "mixed": lambda value: _is_mixed(value) or bool(_CAMEL.search(value)),
    "odd": lambda value: bool(_ODD.match(value)),
    "chosen": _is_chosen,
    "opaque": _is_opaque,
}


def _in_columns(text: str) -> Iterator[tuple[int, int]]:
    """Yield the cells below a heading that calls them secret, if one of them looks like it."""
    for tables, cells in _TABLES:
        for table in tables.finditer(text):
            named = [_HEADING.fullmatch(cell[0].strip(_MARKUP)) for cell in cells.finditer(table["head"].strip(" |"))]
            rows = _ROW.finditer(text, *table.span("rows")) if any(named) else ()
            columns = zip_longest(*(cells.finditer(text, *row.span("cells")) for row in rows))
            for heading, column in zip(named, columns, strict=False):
                if heading:
                    words = [word for cell in column if cell and (word := _ONLY_WORD.fullmatch(text, *cell.span()))]
                    spans = [word.span("value") for word in words if _may_be_secret(word["value"])]
                    if any(_looks_secret(text[slice(*span)], heading.groupdict()) for span in spans):
                        yield from spans


def _value(value: str, start: int, match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the place of a value that the text calls a secret, if it looks like one."""
    parts = match.groupdict()
    end = "|" if parts.get("cell") else "<" if parts.get("element") else "\n"
    value = _END.split(value.partition(end)[0], maxsplit=1)[0]
    if value and not _REFERENCE.search(value) and _looks_secret(value, parts):
        yield start, start + len(value)


def _looks_secret(value: str, match: Mapping[str, str | None]) -> bool:
    """Return whether a value looks like a secret. Plain words (unless a whole password) and resource names do not."""
    if match.get("spoken") or match.get("chosen") is not None:
        return _is_chosen(value) or (bool(match["password"]) and _is_random(value))
    if match["weak"] or match.get("beside") is not None or match.get("heading") is not None:
        # A word of a sentence stands in such a place as often.
        return _is_random(value) or bool(
            (not match["weak"] and _HEX.search(value)) or (match["password"] and _ODD.match(value))
        )
    if match["password"]:
        phrase = (match.get("quote") or "passphrase" in match["password"]) and _PHRASE.match(value)
        if match.get("prose") is not None and not phrase and (_IDENTIFIER.match(value) or _CAMEL.search(value)):
            return len(value) >= MIN_PASSWORD and bool(_CAMEL.search(value))
        alone = match.get("quote") or (match.get("alone") is not None and not match.get("prose"))
        return len(value) >= MIN_PASSWORD and (
            bool(phrase)
            or _is_mixed(value)
            or bool(
                alone
                and (
                    value.isdigit()
                    or (_WORD.fullmatch(value) and ("-" not in value or match.get("quote") or match.get("cell")))
                )
            )
        )
    if match["opaque"]:
        return bool(len(value) >= 2 * MIN_TOKEN and _is_mixed(value) and not _NAMED.match(value))
    return (
        len(value) >= MIN_TOKEN
        and _is_mixed(value)
        and ((len(value), value.count("-")) == (36, 4) or bool(match["header"]) or not _IDENTIFIER.match(value))
    )


def _in_commands(text: str, lower: str) -> Iterator[tuple[int, int]]:
    for command in _COMMAND.finditer(lower):
        for match in _AFTER[command["name"]].finditer(text, *command.span("line")):
            if not _REFERENCE.search(match["value"]):
                yield match.span("value")
    for words, pattern in _IN_TEXT:
        for match in pattern.finditer(text) if any(map(text.__contains__, words)) else ():
            name = str(match.lastgroup)
            if name == "issued" or (not _REFERENCE.search(match[name]) and _JUDGES[name](match[name])):
                yield match.span(name)


def _in_manifests(text: str) -> Iterator[tuple[int, int]]:
    """Yield the values of the Kubernetes objects that are secrets."""
    for manifest in _MANIFEST.finditer(text) if "kind: Secret" in text else ():
        for data in _DATA.finditer(text, *manifest.span()) if "kind: Secret" in manifest[0] else ():
            yield from (pair.span("value") for pair in _PAIR.finditer(text, *data.span("pairs")))


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
_RUN = re.compile(r"<(\w)(\d+)(\\\+)?>")


_ISSUERS = _RUN.sub(
    lambda run: _ALPHABETS[run[1]] + "{" + run[2] + (",}+" if run[3] else "}"),
    "|".join(map(re.escape, _FORMATS.split())),
)
ISSUED = re.compile(
    # no format is shorter, and most words are
    rf"(?<![A-Za-z0-9])(?=\S{{11}})(?:(?:{_ISSUERS})(?![A-Za-z0-9])|"
    r"xox[a-z]-(?:\d+-)+[A-Za-z0-9]+|[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27}|[0-9a-z]{32}-us\d{1,2}|\d{8,10}:AA[\w-]{33}|"
    # digests of passwords
    r"\$(?:[1567y]|gy|apr1|sha1)\$(?:rounds=\d{1,9}\$)?[\w./]{1,40}(?:\$[\w./]{1,64})?\$[\w./]{22,90}|\$2[abxy]?\$\d\d\$[\w./]{53}|"
    r"\$(?:argon2\w{1,2}|scrypt|pbkdf2[\w-]{0,10})\$[\w$./=,+-]{30,300}|pbkdf2_\w{3,8}\$\d{1,9}\$\w{1,60}\$[\w+/=]{20,100}|"
    r"\{S?SHA\d{0,3}\}[\w+/=]{20,120}|\$[89]\$[\w./-]{8,60}|"
    r"(?<![\w-])eyJ[\w-]++={0,2}\.[\w-]++={0,2}(?:\.[\w.+/=-]*)?)"
)
