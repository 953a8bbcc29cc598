"""Lines with a made-up secret in every form, and lines without one that look alike, drawn from templates.

The rules were developed on all parts but the held-out one: the templates with an even number here, those with an odd number,
those from manuals and from operations, which others wrote, and those made of kinds and places. No line of this file is like a key: values are drawn when it runs.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Mapping, Sequence

from tests import secret_lines_by_place as by_place
from tests import secret_lines_from_manuals as manuals
from tests import secret_lines_from_operations as operations

A, H, D = string.ascii_letters + string.digits, "0123456789abcdef", string.digits
SECRETS, INNOCENT = 150, 500  # lines drawn of each part, at least; every form is drawn once
WORDS = "amber otter quay lantern harbour copper thistle ferry marble willow gravel saffron".split()

# `{p}` is a password, `{w}` one of letters only, `{t}` an opaque token; `{h32}` hexadecimal, `{a36}` letters and digits.
# What stands between ⟦ and ⟧ must go.
FORMS: Sequence[str] = """
**Password:** ⟦{p}⟧
**Token**: ⟦{t}⟧
__Passphrase:__ ⟦{p}⟧
- *API key:* `⟦{t}⟧`
| Password | ⟦{p}⟧ |
| db_password | ⟦{p}⟧ | rotated in May |
| User | Password |\\n| --- | --- |\\n| ops | ⟦{p}⟧ |
| Host | API key | Owner |\\n|---|---|---|\\n| a.example | ⟦{t}⟧ | web |
<td>Password</td><td>⟦{p}⟧</td>
<tr><th>API key</th>\\n<td class="v">⟦{t}⟧</td></tr>
Password:\\n  ⟦{p}⟧
API token:\\n\\n⟦{t}⟧
Password:\\n\\n```\\n⟦{p}⟧\\n```
secret_key:\\n    "⟦{t}⟧"
{{\\"user\\":\\"ops\\",\\"password\\":\\"⟦{p}⟧\\"}}
"body": "{{\\\\"token\\\\": \\\\"⟦{t}⟧\\\\"}}"
<password>⟦{p}⟧</password>
<ApiKey>⟦{t}⟧</ApiKey>
<add key="Password" value="⟦{p}⟧" />
<property name="hibernate.connection.password">⟦{p}⟧</property>
<server password="⟦{p}⟧"/>
<entry key='secret-token' value='⟦{t}⟧'/>
- name: DB_PASSWORD\\n  value: "⟦{p}⟧"
{{"name": "API_TOKEN", "value": "⟦{t}⟧"}}
docker login -u ops -p ⟦{p}⟧ registry.example
podman login --username ops --password ⟦{w}⟧ registry.example
redis-cli -h cache.example -a ⟦{p}⟧ ping
redis-cli -a '⟦{w}⟧' --no-auth-warning info
curl -u ops:⟦{p}⟧ https://a.example/health
curl -sS --user 'ops:⟦{w}⟧' https://a.example
mysql -u root -p⟦{p}⟧ billing
mysqldump -uroot -p'⟦{w}⟧' billing > x.sql
PGPASSWORD=⟦{p}⟧ psql -h db.example
export PGPASSWORD='⟦{w}⟧'
sshpass -p ⟦{w}⟧ ssh ops@web01
mongosh -u admin -p ⟦{p}⟧ --host db.example
ldapsearch -D cn=admin -w ⟦{p}⟧ -b dc=example
sqlcmd -S db -U sa -P ⟦{p}⟧
rabbitmqctl add_user ops ⟦{p}⟧
smbclient //nas/share -U ops%⟦{p}⟧
openssl rsa -in k.pem -passin pass:⟦{p}⟧
ALTER USER ops WITH PASSWORD '⟦{w}⟧';
CREATE USER 'ops'@'%' IDENTIFIED BY '⟦{p}⟧';
requirepass ⟦{w}⟧
Authorization: token ⟦{a40}⟧
Authorization: Bearer ⟦{t}⟧
Authorization: ApiKey ⟦{a28}⟧
-H "Authorization: Basic ⟦{a24}⟧"
-H "PRIVATE-TOKEN: ⟦{a20}⟧"
X-Api-Key: ⟦{a32}⟧
postgres://ops:⟦{p}⟧@db.example:5432/x
amqp://ops:⟦{w}⟧@mq.example/
redis://:⟦{p}⟧@cache.example:6379/0
git clone https://oauth2:⟦{a26}⟧@git.example/a.git
GRAFANA ⟦glsa_{a32}_{h8}⟧
databricks: ⟦dapi{h32}⟧
use ⟦dckr_pat_{a27}⟧ to pull
remote said ⟦ghp_{a36}⟧ is expired
CI uses ⟦glpat-{a20}⟧
bot ⟦xoxb-{d12}-{d12}-{a24}⟧ left
id ⟦AKIA{u16}⟧ found
model pulled with ⟦hf_{l34}⟧
published with ⟦npm_{a36}⟧
twine used ⟦pypi-AgEIcHlwaS5vcmc{a70}⟧
openai ⟦sk-{a48}⟧
anthropic ⟦sk-ant-api03-{a93}AA⟧
mail via ⟦SG.{a22}.{a43}⟧
shop ⟦shpat_{h32}⟧
SENTRY_DSN=https://⟦{h32}⟧@o1.ingest.sentry.example/42
dsn: "https://⟦{h32}⟧@errors.example/7"
releases with ⟦sntryu_{h64}⟧
linear ⟦lin_api_{a40}⟧ revoked
pulumi ⟦pul-{h40}⟧
postman ⟦PMAK-{h24}-{h34}⟧
new relic ⟦NRAK-{u27}⟧
planetscale ⟦pscale_tkn_{a43}⟧
doppler ⟦dp.pt.{a43}⟧
rubygems ⟦rubygems_{h48}⟧
brevo ⟦xkeysib-{h64}-{a16}⟧
dynatrace ⟦dt0c01.{u24}.{u64}⟧
digital ocean ⟦doo_v1_{h64}⟧
age ⟦AGE-SECRET-KEY-1{u58}⟧
google oauth ⟦GOCSPX-{a28}⟧
groq ⟦gsk_{a52}⟧
figma ⟦figd_{a40}⟧
supabase ⟦sbp_{h40}⟧
stripe hook ⟦whsec_{a32}⟧
notion ⟦ntn_{d11}{a35}⟧
⟦-----BEGIN RSA PRIVATE KEY-----\\n{a64}\\n{a64}\\n-----END RSA PRIVATE KEY-----⟧
⟦-----BEGIN OPENSSH PRIVATE KEY-----\\n{a64}\\n-----END OPENSSH PRIVATE KEY-----⟧
session ⟦eyJ{a30}.eyJ{a40}.{a43}⟧ ended
jwt=⟦eyJ{a20}.eyJ{a50}.{a43}⟧
password: ⟦{w}⟧
password = "⟦{w}⟧"
db.password=⟦{w}⟧
"passwd": "⟦{w}⟧",
the password is "⟦{w}⟧"
Passwort: ⟦{p}⟧
https://a.example/cb?access_token=⟦{t}⟧&x=1
Data Source=db;User Id=sa;Password=⟦{p}⟧;Timeout=5
AccountKey=⟦{b86}==⟧;EndpointSuffix=x
aws_secret_access_key = ⟦{b40}⟧
client_secret: ⟦{a34}⟧
--set adminPassword=⟦{p}⟧
--from-literal=password=⟦{w}⟧
helm install x --set auth.token=⟦{t}⟧
""".strip().splitlines()

QUIET: Sequence[str] = """
kubectl -n {w} rollout restart deployment/{k}
kubectl get secret {k}-tls -o jsonpath='{{.data}}'
git checkout {h40}
commit {h40} by the release bot
image: registry.example/{w}@sha256:{h64}
request_id={uuid} status=200 duration=12ms
trace {h32} span {h16}
pod {k}-{h9}-{l5} restarted {d2} times
2026-03-1{d1}T10:0{d1}:11Z level=info msg="token refreshed" user={w}
2026-03-1{d1}T10:0{d1}:11Z WARN password reset requested for account {d6}
password: ${{DB_PASSWORD}}
password: <password>
password=$(cat /run/secrets/{w})
"password": "{{{{ .Values.{w}.password }}}}"
token: <your-{w}-token>
token: $GITHUB_TOKEN
export TOKEN="$(vault read -field=token secret/{w})"
secretKeyRef:\\n  name: {k}\\n  key: password
secretName: {k}-tls
valueFrom:\\n  secretKeyRef:\\n    name: {k}
- name: DB_PASSWORD\\n  valueFrom:
- name: TOKEN\\n  value: $(CI_TOKEN)
The password reset link expires after {d2} minutes.
Reset your password: open the {w} page and choose Forgot.
If the token is invalid, sign in again to {w}.
Tokens are rotated every {d2} days by {w}.
The secret is stored in Vault at secret/{w}/db.
password: required
password: optional string, at least {d1} characters
| Password | required | the password of the {w} user |
| Field | Type | Default |\\n| --- | --- | --- |\\n| password | string | none |
| User | Password |\\n| --- | --- |\\n| ops | see Vault |
| token | string | The token of the {w} service |
| Secret | Rotated by | Every |\\n| --- | --- | --- |\\n| {k} | {w} | {d2} days |
<td>Password</td><td>see the {w} vault</td>
<password>${{{w}.password}}</password>
<label>Password</label><input type="password" name="{w}">
<input type="password" placeholder="Password" />
Password:\\n\\nAsk the {w} team for it.
Password:\\n- stored in {w}
API key:\\n\\n1. Open the {w} console.
**Password:** in the {w} vault
**Token:** ask #{w}
docker login registry.{w}.example
docker login -u ops --password-stdin registry.example
docker run -p {d4}:80 {w}:1.2
docker run -p 8080:8080 -a stdout {w}
redis-cli -h {w}.example ping
redis-cli -a "$REDIS_PASSWORD" ping
mysql -u root -p {w}
mysql -h {w}.example -P 3306 -u app
mysql --port={d4} --user={w}
curl -u "$USER:$PASSWORD" https://{w}.example
curl -fsS https://{w}.example/healthz
PGPASSWORD=$PASS psql -h {w}.example
ssh -p {d4} ops@{w}01
mkdir -p /var/lib/{w}
cp -a /srv/{w} /mnt
ps -p {d5}
nmap -p 443 {w}.example
mongosh --host {w}.example -u admin -p
git clone https://git.example/{w}/{k}.git
postgres://{w}@db.example:5432/x
postgres://user:$PASSWORD@db.example/{w}
http://{w}.example:8080/a@b
Authorization: Bearer $TOKEN
Authorization: token <token>
Authorization: required for {w}
authorization failed for {w}
Bearer of the {w} shield
access_key_id of {w} is set in CI
rate(http_requests_total{{job="{w}"}}[5m]) > {d2}
{w}_token_refresh_total{{code="200"}} {d4}
process_cpu_seconds_total {d3}.{d2}
disk usage of /dev/sda{d1} is {d2} %
etag: "{h32}"
md5 {h32}  {w}.tar.gz
checksum: {h64}
ssh-rsa AAAAB3NzaC1yc2E{b80} ops@{w}
-----BEGIN CERTIFICATE-----
data:image/png;base64,iVBORw0KGgo{b40}
integrity sha512-{b86}==
uid {uuid}
X-Request-Id: {uuid}
X-Forwarded-For: 10.{d2}.{d2}.{d1}
arn:aws:iam::{d12}:role/{w}
s3://{w}-backups/2026/03/{h8}.gz
projects/{w}/locations/eu/keyRings/{w}
public_key: {w}.pub
keyboard: {w}
key: {w}
primary key: id{d2}
partition key: customer_{d2}
sort_key={w}-{d4}
author: {w}
tokenizer: {w}-v{d1}
max_tokens: {d4}
token_count={d4}
tokens used: {d5}
cookie policy: {w}
secretary: {w}
passenger: {w}{d2}
bypass: {w}-{d3}
compass={w}{d2}
pass: {d3} fail: {d1}
PASS: TestLogin/{w}{d2} (0.0{d1}s)
passed={d3} failed=0
passwordPolicy: strict
password_min_length: {d2}
password_encryption = scram-sha-256
PasswordAuthentication no
password: changed {d2} days ago
password expired for user {w}
password=true
show_password: false
reset_password_path: /users/{w}/reset
password = os.environ["DB_PASSWORD"]
password = config.{w}.password
password=args.password,
def login(user: str, password: str) -> None:
token = request.headers.get("X-Token")
const token = await getToken({w});
if (password.length < {d2}) return;
secret = client.get_secret("{w}")
run `vault kv get secret/{w}` for the password
the {w} dashboard shows the token bucket: {d3} left
kubectl create secret generic {k} --from-file=password.txt
--token-ttl={d2}h
--secret-name={k}
--password-file=/etc/{w}/pw
CrashLoopBackOff in {k}-{h9}-{l5}
java.lang.IllegalStateException: token at line {d3}
ERROR [{w}] invalid password for user "{w}"
level=error err="secret \\"{k}\\" not found"
node ip-10-0-{d2}-{d2}.eu-west-1.compute.internal is NotReady
etcd member {h16} is unhealthy
version {d1}.{d2}.{d1} of {w}
helm upgrade {k} ./chart --set image.tag={h7}
terraform state show aws_instance.{w}
aws s3 cp s3://{w}/a . --profile {w}
sk-learn and hf_hub are imported by {w}
<https://grafana.example/d/{l9}/{w}?orgId=1&var-job={w}>
""".strip().splitlines()

_RUN = re.compile(r"\{(?P<kind>uuid|[phtwkdualb])(?P<length>\d*)\}")
_MARKED = re.compile(r"⟦(.*?)⟧", re.DOTALL)
_ALPHABETS = {
    "a": A,
    "h": H,
    "d": D,
    "u": string.ascii_uppercase + "234567",
    "l": string.ascii_letters,
    "b": A + "+/",
}


def _drawn(kind: str, length: str, draw: random.Random) -> str:
    made: dict[str, Callable[[], str]] = {
        "p": lambda: f"{draw.choice(WORDS).title()}{draw.choice('-#!%_.')}{draw.randint(100, 9999)}",
        "w": lambda: draw.choice(WORDS) + draw.choice(WORDS),
        "t": lambda: "".join(draw.choices(A, k=draw.choice((24, 32, 40)))) + "7x",
        "k": lambda: f"{draw.choice(WORDS)}-{draw.choice(WORDS)}",
        "uuid": lambda: "-".join("".join(draw.choices(H, k=n)) for n in (8, 4, 4, 4, 12)),
    }
    return "".join(draw.choices(_ALPHABETS[kind], k=int(length))) if length else made[kind]()


def _lines(templates: Sequence[str], count: int) -> list[str]:
    """Return so many lines, each template in turn with other values."""
    draw = random.Random(count)
    chosen = (templates[at % len(templates)] for at in range(count))
    unescaped = (line.replace("\\n", "\n").replace('\\"', '\\"') for line in chosen)
    filled = (_RUN.sub(lambda match: _drawn(match["kind"], match["length"], draw), line) for line in unescaped)
    return [line.replace("{{", "{").replace("}}", "}") for line in filled]


PARTS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "even forms": (FORMS[0::2], QUIET[0::2]),
    "odd forms": (FORMS[1::2], QUIET[1::2]),
    "forms from manuals": (manuals.FORMS, manuals.QUIET),
    "forms from operations": (operations.FORMS, operations.QUIET),
    "kinds and places": (by_place.FORMS, by_place.QUIET),
    "held-out places": (by_place.HELD_OUT_FORMS, by_place.QUIET),
}


def secret_lines(part: str) -> list[tuple[str, str]]:
    """Return texts of a part, each with the secret in it."""
    return [
        (_MARKED.sub(r"\1", line), found[1])
        for line in _lines(PARTS[part][0], max(SECRETS, len(PARTS[part][0])))
        if (found := _MARKED.search(line))
    ]


def innocent_lines(part: str) -> list[str]:
    return _lines(PARTS[part][1], INNOCENT)


def measured(find: Callable[[str], list[tuple[int, int]]], part: str) -> tuple[list[str], list[str]]:
    """Return the texts whose secret stays, wholly or in part, and the innocent lines that lose something."""
    missed = [
        text
        for text, secret in secret_lines(part)
        if not any(start <= text.find(secret) and text.find(secret) + len(secret) <= end for start, end in find(text))
    ]
    return missed, [line for line in innocent_lines(part) if find(line)]
