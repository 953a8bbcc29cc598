"""Forms of secrets as operations meet them: addresses that are a right, digests, devices, prompts; and innocent lines.

A fourth part of the set, written before its author had read a rule. Of the 132 forms that it began with, 104 were found
then, and 1 of 332 innocent lines was touched. See `tests.secret_lines` on the notation.
"""

from __future__ import annotations

from collections.abc import Sequence

FORMS: Sequence[str] = r"""
https://acme.blob.core.windows.net/dumps/a.gz?sv=2022-11-02&sr=b&sig=⟦7{a40}%3D⟧&se=2026-01-01
https://prod-1.westeurope.logic.azure.com/workflows/1/triggers/manual/paths/invoke?api-version=1&sig=⟦7{a42}⟧
https://b.s3.amazonaws.com/x?X-Amz-Expires=60&X-Amz-Signature=⟦7{h63}⟧
https://storage.googleapis.com/b/x?X-Goog-Signature=⟦7{h127}⟧
https://acme.azurewebsites.net/api/page?code=⟦7{a53}==⟧
https://discord.com/api/webhooks/{d19}/⟦{a68}⟧
https://acme.webhook.office.com/webhookb2/⟦{uuid}@{uuid}/IncomingWebhook/{h32}/{uuid}⟧
https://chat.example/hooks/⟦7q{h24}⟧
https://oncall.example/integrations/v1/alertmanager/⟦7{h24}⟧/
https://api.telegram.org/bot⟦{d10}:AA{a33}⟧/sendMessage
https://hooks.slack.com/triggers/⟦T{u9}/{d13}/{h32}⟧
admin:⟦$apr1${a8}${a22}⟧
ops:⟦$6${a16}${a86}⟧:19000:0:99999:7:::
password_hash: ⟦$2b$12${a53}⟧
hash = ⟦$argon2id$v=19$m=65536,t=3,p=4${a22}${a43}⟧
userPassword: ⟦{{SSHA}}{a32}⟧
pbkdf2 of Django: ⟦pbkdf2_sha256$600000${a22}${a43}=⟧
enable secret 5 ⟦$1${a4}${a22}⟧
username admin privilege 15 password 7 ⟦08{u18}⟧
 enable password 0 ⟦{w}⟧
snmp-server community ⟦{w}⟧ RO
Unseal Key 1: ⟦7{b42}=⟧
Recovery Key 3: ⟦7{b42}=⟧
routing_key: ⟦R0{u30}⟧
integration key = ⟦7{h31}⟧
DD_APP_KEY=⟦7{h39}⟧
x-functions-key: ⟦7{a53}==⟧
curl -H 'X-Api-Key: ⟦{k}-{d4}⟧' https://a.example
The admin password is ⟦quiet{p}⟧, please rotate it.
the pw is ⟦greenHeron⟧ until Monday
define( 'DB_PASSWORD', '⟦{w}⟧' );
net use Z: \\fs1\share /user:acme\ops ⟦{p}⟧
net user ops ⟦{p}⟧ /add
Authorization: Splunk ⟦{uuid}⟧
Authorization: Klaviyo-API-Key ⟦pk7{h32}⟧
Enter passphrase for key '/root/.ssh/id_rsa': ⟦{w}⟧
[sudo] password for ops@web01: ⟦{w}⟧
Credentials: admin / ⟦greenHeron⟧
db.creds.pwd -> ⟦{w}⟧
cqlsh cass-1 -u cassandra -p ⟦{w}⟧
cypher-shell -u neo4j -p ⟦{w}⟧ 'match (n) return n'
nodetool -u ops -pw ⟦{w}⟧ status
plink -ssh ops@web01 -pw ⟦{w}⟧ uptime
xfreerdp /v:srv1 /u:ops /p:⟦{w}⟧
BORG_PASSPHRASE='⟦{w} {w}⟧' borg list
**Root password:** `⟦{k}⟧`
| DB password | ⟦{k}⟧ |
key = ⟦K001{a27}⟧
ldapsearch -x -D cn=admin,dc=acme -w ⟦{w}⟧ -b dc=acme
mongodb+srv://app:⟦{w}⟧@cluster0.example/orders?retryWrites=true
Server=tcp:sql1.example,1433;Uid=app;Pwd=⟦{p}⟧;Encrypt=yes
Endpoint=sb://acme.example/;SharedAccessKeyName=Root;SharedAccessKey=⟦7{b42}=⟧
PrivateKey = ⟦7{b42}=⟧
java -Djavax.net.ssl.keyStorePassword=⟦{w}⟧ -jar app.jar
:password => '⟦{w}⟧',
conn = psycopg2.connect(host='db', user='app', password='⟦{w}⟧')
VAULT_TOKEN=⟦hvs.{a40}⟧
Initial Root Token: ⟦s.{a24}⟧
wget --http-user=ops --http-password=⟦{w}⟧ http://a.example/y
az login --service-principal -u app -p ⟦Q~8{a33}⟧ --tenant acme
Set-Cookie: JSESSIONID=⟦7{u31}⟧; Path=/; HttpOnly
""".strip("\n").splitlines()

QUIET: Sequence[str] = r"""
FATAL: password authentication failed for user "postgres"
The password is stored in Vault under secret/data/{w}/db.
Password must be at least {d2} characters long.
password: ********
password: "{{{{ vault_db_password }}}}"
POSTGRES_PASSWORD_FILE=/run/secrets/pg
PGPASSFILE=~/.pgpass psql -h db
token expired at 2026-03-04T10:00:00Z
Token bucket is empty, requests are throttled
SyntaxError: unexpected token: end of input
The API key header is X-Api-Key.
Secret "{k}" not found
aws secretsmanager get-secret-value --secret-id {w}/db
gcloud secrets versions access latest --secret={k}
az keyvault secret show --vault-name kv --name {w}
public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{a8} ops@laptop
Duplicate entry '{d2}' for key 'PRIMARY'
routing key: orders.created.{w}.v2
routing_key={w}.created
cache key: user:{d4}:profile
master key rotation of {w} is due
app key: {k}
function key: {w}_handler_{d2}
idempotency key {uuid} reused
traceparent: 00-{h32}-{h16}-01
HEAD is now at {h8} Bound what may follow
etag: "{h40}"
arn:aws:secretsmanager:eu-west-1:{d12}:secret:{w}/db-AbCdEf
AccessDenied: User is not authorized to perform sts:AssumeRole
vpc-{h17} subnet-{h17}
/subscriptions/{uuid}/resourceGroups/{w}
WWW-Authenticate: Bearer realm="registry", error="invalid_token"
Authorization: Basic realm="ops"
Authorization: AWS4-HMAC-SHA256 is expected
curl -u admin https://{w}.example
psql -h db -p 5432 -U app {w}
docker compose -p {w} up -d
kubectl logs -p {w}-0
lsof -p {d4}
useradd -m -s /bin/bash {w}
usermod -aG docker {w}
nodetool -h cass-1 -p 7199 status
cqlsh cass-1 9042 -u cassandra
net use Z: \\fs1\share /user:acme\ops
net user ops
net user ops /active:no
xfreerdp /v:srv1 /u:ops
session opened for user root by (uid=0)
Accepted publickey for ops from 10.0.0.{d1} port {d5} ssh2: ED25519 SHA256:{a43}
https://grafana.example/d/{h9}/{w}?orgId=1&from=now-1h
https://github.com/acme/{w}/commit/{h40}
https://github.com/acme/{w}/settings/hooks/{d9}
https://docs.example/integrations/webhooks/{w}-service-provider
https://docs.example/hooks/use-effect-and-state
https://acme.slack.com/archives/C02AB3CD4/p{d16}
https://idp.example/reset?token=<token>
https://a.example/callback?code=invalid
https://a.example/search?signature=required
postgres://app@db:5432/{w}
Server=sql1;Database={w};Integrated Security=true
OAuth client secret expired, see runbook
client_id: {uuid}
client_secret: see 1Password, item "{w} oauth"
Set-Cookie: theme=dark; Path=/
password reset took {d1} s
the password is case-sensitive
the password is time-limited
Tests: {d2} passed, 1 failed
PWD=/srv/{w}
AWS_SECRET_ACCESS_KEY is not set
GITHUB_TOKEN: ${{{{ secrets.GITHUB_TOKEN }}}}
helm upgrade {w} ./chart -f values-prod.yaml
"GET /api/v1/secrets HTTP/1.1" 403
kafka group.id={w}-consumer session.timeout.ms=30000
sasl.mechanism=PLAIN
ldap bind failed: invalid credentials (49)
UUID={uuid} /data ext4 defaults 0 2
license: Apache-2.0
secret rotation job failed
private_network: 10.0.0.0/8
encryptionKeyId: alias/{w}
salt: enabled
Status: open / investigating
Escalate to: payments-oncall / #payments
Password hashing uses bcrypt with cost 12.
echo "$1$2$3" >>{w}.log
sed -i 's/a$/b/' {w}.conf
apiKey: process.env.API_KEY
String password = request.getParameter("password");
SELECT id, password_hash FROM users WHERE email = $1
password   | text | not null
| DB_PASSWORD | password of the database, from Vault |
- **Token**: ask in #platform
Password: ask on call
Password for {w}: in 1Password
secret 5 times in a row
snmp-server location {w}
PASSWORD="$DB_PASSWORD" make {w}
""".strip("\n").splitlines()
