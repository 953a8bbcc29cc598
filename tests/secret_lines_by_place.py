"""Forms of secrets made of kinds and places, tokens with an issuer's prefix, and innocent lines, as a fifth part of the set.

The rules were developed on it, but for the places of `HELD_OUT` and the tokens of `HELD_OUT_TOKENS`. When these were measured
first, 165 of 240 were found: 37 of 40 tokens, and 128 of 200 in their places. Arguments of functions and columns between
commas were mended only then. See `tests.secret_lines` on the notation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

# The words that name a secret, and a value of its kind.
KINDS: Sequence[tuple[str, str]] = (
    ("db password", "{p}"),
    ("root password", "{w}"),
    ("admin passwd", "{p}"),
    ("smtp pass", "{p}"),
    ("vpn passphrase", "{p}"),
    ("wifi psk", "{p}"),
    ("service account password", "{b24}"),
    ("backup password", "7{d9}"),
    ("keystore password", "{w}"),
    ("bind pw", "{p}"),
    ("api token", "{t}"),
    ("access token", "7{h39}"),
    ("refresh token", "{t}"),
    ("bearer token", "{t}"),
    ("deploy token", "a7{a18}"),
    ("auth token", "7{h31}"),
    ("personal access token", "{t}"),
    ("session token", "{t}"),
    ("bot token", "{t}"),
    ("id token", "{t}"),
    ("api key", "7{h31}"),
    ("access key", "7{b39}"),
    ("secret key", "7{b39}"),
    ("secret access key", "7{b39}"),
    ("account key", "7{b85}=="),
    ("encryption key", "7{b42}="),
    ("private key", "7{b42}="),
    ("signing key", "7{h63}"),
    ("master key", "7{h31}"),
    ("shared key", "7{b42}="),
    ("license key", "A7{u3}-7{u4}-B{u4}-{u5}"),
    ("deploy key", "{t}"),
    ("client secret", "{t}"),
    ("signing secret", "7{h31}"),
    ("webhook secret", "{t}"),
    ("app secret", "7{h31}"),
    ("shared secret", "{t}"),
    ("jwt secret", "{t}"),
    ("session cookie", "{t}"),
    ("gossip encryption key", "7{b42}="),
)

# {s} is the name in snake case, {C} in camel case, {K} in kebab case, {U} in upper case, {H} as a header, {T} as a title, {n} plain.
CONTAINERS: Sequence[str] = """
<s>=<v>
export <U>='<v>'
<s>: <v>
  <K>: "<v>"
{{"user": "ops", "<C>": "<v>", "port": 1}}
<<C>><v></<C>>
<server host="a.example" <K>="<v>"/>
| <T> | <v> |
| User | <T> |\\n| --- | --- |\\n| ops | <v> |
| ops | <n> | <v> | eu |
## <T>\\n\\n<v>
## <T>\\n<v>\\n\\n## Contact
<T>\\n<v>
<b><T></b><br><v>
<p><strong><T>:</strong> <code><v></code></p>
<s><tab><v>
tool connect --<K> <v>
tool connect --<K>=<v> --verbose
ENV <U> <v>
https://a.example/cb?<s>=<v>&x=1
curl -H 'X-<H>: <v>' https://a.example
Cookie: theme=dark; <s>=<v>; lang=en
Server=db1;<C>=<v>;Timeout=5
'<s>' => '<v>',
<C> := "<v>"
the <n> is <v>
The <n> for the staging cluster is `<v>`
new <n>: <v> (valid until Friday)
<tr><td><T></td><td><v></td></tr>
<dl><dt><T></dt><dd><v></dd></dl>
<n> → <v>
<n> - <v>
client = Client(host="a.example", <s>="<v>")
- name: <U>\\n  value: <v>
<T>:\\n    <v>
level=info msg="retrying" <s>=<v> attempt=2
:key: <n> `<v>`
<n> is now <v>
<n> changed to <v>
<C>: '<v>' // staging
<s> = "<v>"  # staging
[<s>: <v>]
  set <s> "<v>"
""".strip().splitlines()

HELD_OUT: Sequence[str] = """
host,user,<s>\\na.example,ops,<v>
tool config set <s> <v>
builder.with<P>("<v>").build()
<setting name="<C>"><value><v></value></setting>
os.getenv("<U>", "<v>")
""".strip().splitlines()

# Names stand on their own here, or with the word that a place has for them.
PLACED: Sequence[str] = r"""
    client-key-data: ⟦LS0t{b240}==⟧
Cookie: session=⟦{t}⟧; theme=dark
Set-Cookie: auth=⟦{t}⟧; Path=/; HttpOnly
cookie: connect.sid=⟦s%3A{a32}.{a43}⟧
-b 'session=⟦{t}⟧'
git clone https://⟦{h40}⟧:x-oauth-basic@github.com/acme/a.git
https://⟦{t}⟧@git.example/acme/a.git
login('ops', '⟦{p}⟧')
session.auth = ("ops", "⟦{p}⟧")
client.authenticate("ops", "⟦{p}⟧")
conn = connect("ops", "⟦{p}⟧", "db.example")
HTTPBasicAuth('ops', '⟦{p}⟧')
setPassword("⟦{w}⟧")
vault login ⟦s.{a24}⟧
vault login -method=token ⟦{t}⟧
vault unseal ⟦7{b42}=⟧
mysql -p⟦{p}⟧ -u root shop
mysql -u root -p⟦{d8}⟧ shop
mysql -h db -uroot -p⟦{p}⟧
docker login -p ⟦{p}⟧ -u ops registry.example
docker login registry.example -u ops -p ⟦{p}⟧
oc login https://api.example:6443 -u ops -p ⟦{p}⟧
argocd login cd.example --username admin --password ⟦{p}⟧
ngrok config add-authtoken ⟦2{a27}_{a20}7⟧
doctl auth init -t ⟦7{h63}⟧
gh auth login --with-token <<< ⟦{t}⟧
tool auth login ⟦{t}⟧
isql -S db -U sa -P ⟦{p}⟧
bcp x out y -U sa -P ⟦{p}⟧ -S db
tool -u ops -w ⟦{p}⟧ status
gpg --batch --passphrase ⟦{p}⟧ -d x.gpg
echo '⟦{p}⟧' | passwd --stdin ops
mount -t cifs //nas/x /mnt -o username=ops,password=⟦{p}⟧
kubeadm join 10.0.0.1:6443 --token ⟦7{h5}.{h15}7⟧
login: ops\npassword: ⟦{p}⟧
user: ops, pass: ⟦{p}⟧
ops / ⟦{p}⟧ (password of the console)
creds are ops:⟦{p}⟧
use ⟦{p}⟧ as the password
"username": "ops",\n"password": "⟦{w}⟧"
psk="⟦{w} {w}⟧"
 wpa_passphrase=⟦{p}⟧
password: "⟦{w} {w} {w} {w}⟧"
Authorization: Basic ⟦{b24}⟧
authorization=[Bearer ⟦{t}⟧]
Proxy-Authorization: Basic ⟦{b24}⟧
X-Vault-Token: ⟦{t}⟧
Api-Key ⟦{a8}.{a32}⟧
"d": "⟦{a43}⟧", "kty": "OKP"
""".strip("\n").splitlines()

TOKENS: Sequence[str] = """
tskey-auth-{a12}CNTRL-{a32}
CCIPAT_{a22}_{h40}
bkua_{h40}
fo1_{a43}
FlyV1 ⟦fm2_{a90}⟧
u+{a18}
pcsk_{a6}_{a60}
nvapi-{a64}
rnd_{a32}
lsv2_pt_{h32}_{h10}
tvly-dev-{a32}
re_{a8}_{a24}
SWMTKN-1-{h50}-{l25}
v1.0-{h24}-{h146}
ory_at_{a43}.{a43}
sk-lf-{uuid}
1//0g{a60}
sl.{a130}
mfa.{a84}
gAAAAAB{a60}_{a40}
rpa_{a40}
vcp_{a56}
hvb.{a80}
""".strip().splitlines()

HELD_OUT_TOKENS: Sequence[str] = """
ddtk_{a40}
snyk_uat.{a8}.{a60}
apify_api_{a36}
np_{a40}
cio-{a30}.{a40}
jina_{h32}{a32}
flb-v2-{a20}-{a32}
xau_{a48}
""".strip().splitlines()

_AROUND = ("{} was left in the log", "VENDOR={}", "the {} token", "run with {} today", '"{}",')


def _names(words: str) -> dict[str, str]:
    parts = words.split()
    pascal = "".join(map(str.title, parts))
    return {
        "<tab>": "\t",
        "<s>": "_".join(parts),
        "<U>": "_".join(parts).upper(),
        "<K>": "-".join(parts),
        "<C>": pascal[0].lower() + pascal[1:],
        "<P>": pascal,
        "<H>": "-".join(map(str.title, parts)),
        "<T>": words.capitalize(),
        "<n>": words,
    }


def _forms(containers: Sequence[str]) -> Iterator[str]:
    for words, value in KINDS:
        for container in containers:
            form = container.replace("<v>", f"⟦{value}⟧")
            for place, name in _names(words).items():
                form = form.replace(place, name)
            yield form


def _tokens(tokens: Sequence[str]) -> Iterator[str]:
    return (around.replace("{}", token if "⟦" in token else f"⟦{token}⟧") for token in tokens for around in _AROUND)


FORMS: Sequence[str] = (*_forms(CONTAINERS), *PLACED, *_tokens(TOKENS))
HELD_OUT_FORMS: Sequence[str] = (*_forms(HELD_OUT), *_tokens(HELD_OUT_TOKENS))

QUIET: Sequence[str] = (
    r"""
the password is stored in Vault
the password is the same as on staging
token: see 1Password
token: ask the {w} team
password = os.environ['DB_PASSWORD']
password = os.getenv("DB_PASSWORD", "")
password: ${{DB_PASSWORD}}
password: ${{DB_PASSWORD:-changeme}}
password: {{{{ .Values.password }}}}
password: {{{{ lookup('env', 'DB_PASSWORD') }}}}
password: !vault |
password: ********
password: ••••••••
password: xxxxxxxx
password: <redacted>
password: [REDACTED]
password: null
password: ""
password: N/A
password: same as above
secretKeyRef: name: {w}
reset your password here
reset your password at https://id.example/reset
Forgot password? Click here
tokens: 512
max_tokens=4096
total_tokens: {d5}
prompt_tokens={d4} completion_tokens={d3}
primary_key: id
sort key: created_at
api_key_rotation: weekly
api_key_enabled: true
access_key_age_days: {d2}
secret_name: {k}
secretName: {k}-tls
secret: {k}
secrets: inherit
secrets:\n  - {k}
imagePullSecrets:\n- name: {k}
token_ttl: 24h
token_endpoint: https://id.example/oauth/token
token_type: Bearer
tokenReview: enabled
token_url=https://id.example/oauth2/v1/token
auth: true
auth: oidc
auth_method: kubernetes
auth.type=SASL_SSL
authenticator: org.apache.cassandra.auth.PasswordAuthenticator
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required;
key.serializer=org.apache.kafka.common.serialization.StringSerializer
key.converter: org.apache.kafka.connect.json.JsonConverter
keystore.type: PKCS12
ssl.keystore.location=/etc/kafka/{w}.jks
ssl_certificate_key /etc/nginx/tls/{w}.key;
ssh_key_file: ~/.ssh/id_ed25519
key_name: {k}
key: {k}-{d4}
key: user:{d5}:session
key=node-modules-{h64}
cache-key: linux-node-{h40}
cache key is v1-deps-{h32}
Cache restored from key: Linux-pip-{h64}
primary key (tenant_id, id)
foreign key fk_orders_customer references customers
object key uploads/2026/03/{uuid}.png
kms_key_id: arn:aws:kms:eu-west-1:{d12}:key/{uuid}
kms key {uuid} is pending deletion
keyid: {u16}
key fingerprint: SHA256:{a43}
ssh key fingerprint SHA256:{a43} ops@{w}
host key for [{w}.example]:22 has changed
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{a43} ops@{w}
deploy key ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ{a200} ci
ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAI{a80}=
public_key: {b42}=
PublicKey = {b42}=
jwks kid {a43} is not known
"kid": "{a22}"
certificate serial {h32}
-----BEGIN CERTIFICATE-----\nMIID{b60}\n{b64}\n-----END CERTIFICATE-----
certificate-authority-data: LS0t{b120}==
caBundle: LS0t{b120}
commit {h40}
{h7} Rotate the token of the {w} job
HEAD is now at {h7} Remove password from logs
git revert {h40} # token change
Merge branch '{k}' into main ({h40})
index {h7}..{h7} 100644
image: ghcr.io/acme/{w}@sha256:{h64}
Digest: sha256:{h64}
docker.io/library/{w}:1.2@sha256:{h64}
sha512-{b86}==
"integrity": "sha512-{b86}==",
sha256sum {w}.tgz: {h64}
{h64}  {w}.tar.gz
{h32} *{w}.iso
SHA1({w})= {h40}
etag: W/"{h32}"
ETag: "{h32}-{d1}"
x-amz-request-id: {u16}
x-amz-id-2: {b75}=
x-amzn-trace-id: Root=1-{h8}-{h24}
X-Request-Id: {a20}
request_id={a22} status=200
req_{a24} took {d3} ms
request req_01{u22} failed with 529
"request_id": "req_{a24}"
correlation id {uuid}
correlationId={a26}
traceparent: 00-{h32}-{h16}-01
trace_id={h32} span_id={h16}
TraceID: {h32}, sampled
trace {h32} has {d2} spans, token refresh took {d3} ms
b3: {h32}-{h16}-1
evt_1N{a22} delivered
event evt_{a24} was retried
charge ch_3N{a22} succeeded
pi_3M{a22} requires action
customer cus_{a14} created
run-{a16} planned and finished
ws-{a16} was locked by {w}
ID: 01{u24}
ulid 01{u24} sorted
job {uuid} started
session {uuid} opened
session opened for user {w}
session id {d8} closed
Session 0x{h16} established
session timeout: 30m
user session expired after {d2} minutes
cookie consent: accepted
Cookie: theme=dark; lang=en
Set-Cookie: lang=en; Path=/; Max-Age={d5}
cookies are set with SameSite=Lax
SESSION_COOKIE_SECURE = True
SESSION_COOKIE_NAME: {w}_sid
C0{u9} is the id of #{w}
<@U0{u8}> rotated the token
U0{u9} joined C0{u8}
thread_ts={d10}.{d6}
T0{u7}/B0{u8} is disabled
pod {k}-{h9}-{l5} is Pending
pod/token-service-{h9}-x{d1}k7p restarted
deployment.apps/{k} scaled to {d1}
replicaset {k}-{h10} has {d1} pods
{k}-6d8f9c7b5d-x2x7p   1/1   Running   0   {d2}m
auth-{w}-7c6f9d8b4-zk4qd   0/1   CrashLoopBackOff   {d2}   1h
secret/{k} created
secret/default-token-x{d1}k7p unchanged
serviceaccount-token-{l5} mounted at /var/run/secrets/kubernetes.io/serviceaccount
default-token-b7k{d1}x   kubernetes.io/service-account-token   3   {d2}d
{k}   Opaque   {d1}   {d3}d
sh.helm.release.v1.{w}.v{d2}   helm.sh/release.v1   1   5d
NAME   TYPE   DATA   AGE\n{k}-tls   kubernetes.io/tls   2   {d2}d
configmap/{k} configured
Mounts: /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-{l5} (ro)
MountVolume.SetUp failed for volume "token" : secret "{k}" not found
Error: secret "{k}" not found
Error from server (Forbidden): secrets is forbidden: User "system:serviceaccount:{w}:default" cannot list
Normal  Pulled  {d2}s  kubelet  Container image "{w}:1.2" already present on machine
Warning  FailedMount  {d2}s  kubelet  MountVolume.SetUp failed for volume "kube-api-access-{l5}"
ip-10-0-{d2}-{d2}.eu-west-1.compute.internal   Ready   <none>   {d2}d   v1.29.3
gke-prod-default-pool-{h8}-x{d1}zk   Ready
i-0{h16} is unhealthy in target group arn:aws:elasticloadbalancing:eu-west-1:{d12}:targetgroup/{w}/{h16}
vol-0{h16} attached to i-0{h16}
subnet-0{h16} has {d2} free addresses
eni-0{h16} in sg-0{h16}
ami-0{h16}
arn:aws:iam::{d12}:user/{w}
arn:aws:secretsmanager:eu-west-1:{d12}:secret:prod/{w}-a1B2c3
arn:aws:lambda:eu-west-1:{d12}:function:{k}:{d2}
AROA{u17}:{k}
projects/acme-{w}/secrets/{k}/versions/{d1}
projects/acme/serviceAccounts/{w}@acme.iam.gserviceaccount.com
/subscriptions/{uuid}/resourceGroups/{w}/providers/Microsoft.KeyVault/vaults/{w}
https://vault.azure.net/secrets/{k}/{h32}
vault read secret/data/{w}
vault kv get -field=password secret/{w}
vault login -method=oidc role={w}
vault login
vault token lookup
vault status
Unseal Progress    0/3
Key             Value
token_accessor  {a24}
token_policies  ["default" "{w}"]
op read op://{w}/db/password
aws sso login --profile {w}
aws ecr get-login-password --region eu-west-1 | docker login --username AWS --password-stdin {d12}.dkr.ecr.eu-west-1.amazonaws.com
docker login ghcr.io -u {w}
docker login {w}.azurecr.io
az login --use-device-code
az acr login --name {w}
gcloud auth login
gcloud auth print-access-token
gh auth login --web
gh auth status
kubectl config set-credentials {w} --token=$TOKEN
kubectl config use-context {k}
kubectl create token {w}
kubectl -n {w} get secret {k} -o jsonpath='{{.data.password}}' | base64 -d
oc login --token=$TOKEN --server=https://api.example:6443
npm login --registry https://npm.example
heroku login -i
terraform login app.terraform.io
cf login -a https://api.example -o {w} -s dev
argocd login cd.example --sso
argocd account update-password
kubelogin convert-kubeconfig -l azurecli
login from {w}@10.{d2}.{d2}.{d1} failed
login('ops', password)
login(user, os.environ["PASSWORD"])
login(username, getpass.getpass())
client.login(user=user, password=password)
auth=(user, password)
auth=HTTPBasicAuth(user, token)
self.password = password
this.token = token;
this.password = config.getPassword();
self._token: str | None = None
password: str = Field(min_length={d1})
password: Optional[str] = None
token: String!
token := os.Getenv("GITHUB_TOKEN")
token = await self._refresh_token()
token, err := client.GetToken(ctx)
let token = localStorage.getItem('token');
const {{ password }} = req.body;
if token == "" {{ return ErrNoToken }}
if not password: raise ValueError("password required")
func NewToken(secret []byte) *Token
private String password;
@Value("${{spring.datasource.password}}") String password
setPassword(passwordEncoder.encode(raw));
.withPassword(System.getenv("DB_PASSWORD"))
assert token.is_valid()
input type="password" id="password"
getString("password")
config.get("password")
request.form["password"]
params[:password]
validates :password, length: {{ minimum: {d1} }}
secret = Secret.from_name("{w}")
api_key=settings.api_key,
api_key=api_key
apiKey: process.env.{w}_KEY
api_key = "YOUR_API_KEY"
api_key: your-api-key-here
apiKey: "<your api key>"
API key: create one in the console
client_secret={{client_secret}}
--api-key=$API_KEY
--password "$(cat pw.txt)"
--password=${{PASSWORD}}
--password-file=/run/secrets/pw
--token-file token.txt
--secret id=npmrc,src=.npmrc
-e PASSWORD -e TOKEN {w}:1.2
-e POSTGRES_PASSWORD_FILE=/run/secrets/pg {w}
mysql -u root -p
mysql -uroot -p {w}
mysql -p -h db.example {w}
psql -U postgres -p 5433
ssh -p {d4} -l ops {w}.example
docker run -u 1000:1000 -p {d4}:{d4} {w}
docker run -u app -p 127.0.0.1:{d4}:80 {w}
docker exec -u root {w} sh
docker compose -p {k} up
mvn -U -P prod-1 deploy
nmap -u {w} -p 1-{d4} a.example
rsync -avP -e ssh {w}:/data /data
curl -u ops https://a.example/{w}
curl -fsSL https://get.example/install-{d1}.sh | sh
cp -p a b
iptables -p tcp --dport {d4}
useradd -u {d4} -p '*' {w}
ldapsearch -x -D cn=admin -W -b dc=example
sqlcmd -S db -U sa -i x.sql
kafka-configs --alter --add-config 'SCRAM-SHA-512=[iterations=8192]' --entity-name {w}
https://docs.example/how-to/rotate-the-api-token-of-a-service-account
https://github.com/acme/{w}/blob/{h40}/token.go#L{d2}
https://github.com/acme/{w}/pull/{d4}/commits/{h40}
https://docs.google.com/spreadsheets/d/1{a43}/edit
https://drive.google.com/file/d/1{a32}/view
https://www.youtube.com/watch?v={a11}
https://grafana.example/d/{a9}/{w}-overview?orgId=1
https://{w}.example/login?next=/dashboard&session=expired
https://{w}.example/oauth/authorize?client_id={a32}&response_type=code
https://acme.atlassian.net/wiki/spaces/OPS/pages/{d9}/Password+reset
https://cdn.example/static/js/main.{h8}.chunk.js
https://app.example/share/{a22}
/static/app-{a8}.js
/var/lib/docker/overlay2/{h64}/merged
/var/log/pods/{w}_{k}-{h9}-{l5}_{uuid}/{w}/0.log
/home/ci/.cache/pip/{h56}
C:\Users\{w}\AppData\Local\Temp\{uuid}
node_modules/.pnpm/@babel+core@7.2{d1}.0_{h32}/node_modules
data:image/png;base64,iVBORw0KGgoAAAANSUhEUg{b120}=
![logo](data:image/svg+xml;base64,PHN2Zy{b80})
/9j/4AAQSkZJRgABAQ{b120}
at com.acme.{w}.TokenService.refresh(TokenService.java:{d2})
at org.springframework.security.authentication.UsernamePasswordAuthenticationToken.<init>(UsernamePasswordAuthenticationToken.java:{d2})
at com.acme.auth.OAuth2AccessTokenProvider$$EnhancerBySpringCGLIB$$1{h7}.get(<generated>)
at com.acme.Foo$$Lambda$14{d1}/0x0000000800{h6}.apply(Unknown Source)
org.springframework.security.oauth2.core.OAuth2AuthenticationException: [invalid_token]
java.lang.IllegalArgumentException: JWT String argument cannot be null or empty.
io.jsonwebtoken.ExpiredJwtException: JWT expired at 2026-03-04T10:00:00Z
Caused by: javax.net.ssl.SSLHandshakeException: PKIX path building failed
File "/srv/{w}/auth/token.py", line {d2}, in refresh_token
goroutine {d3} [running]: main.(*TokenCache).Get(0xc000{h6}, {{0x0, 0x0}})
thread 'main' panicked at src/auth/token.rs:{d2}:5
#12 0x00007f{h10} in _ZN4base8internal12RunLoopTimer3RunEv () from /lib/{w}.so
_ZNSt6vectorIiSaIiEE9push_backEOiE2v{d1}
core::ptr::drop_in_place::h{h16}
TypeError: Cannot read properties of undefined (reading 'token')
SyntaxError: Unexpected token < in JSON at position 0
KeyError: 'password'
401 Unauthorized: token has expired
403 Forbidden: Invalid API key
error: invalid_client: client secret is wrong
FATAL:  password authentication failed for user "{w}"
ORA-01017: invalid username/password; logon denied
ERROR 1045 (28000): Access denied for user '{w}'@'10.0.0.{d1}' (using password: YES)
Failed password for root from 10.{d2}.{d2}.{d1} port {d5} ssh2
Failed password for invalid user {w} from 10.{d2}.{d1}.{d1} port {d5} ssh2
pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=10.0.0.{d1}
Accepted password for {w} from 10.0.0.{d1} port {d5} ssh2
sudo: {w} : TTY=pts/0 ; PWD=/home/{w} ; USER=root ; COMMAND=/bin/cat /etc/passwd
Mar {d1} 10:00:0{d1} {w}01 sshd[{d5}]: Invalid user oracle from 10.0.0.{d1}
2026-03-0{d1} 10:00:01,{d3} DEBUG [{w}-{d1}] o.s.s.w.a.AnonymousAuthenticationFilter - Set SecurityContextHolder to anonymous
2026-03-0{d1}T10:00:01.{d3}Z INFO token cache: {d3} entries, {d2} evicted
level=warn ts=2026-03-0{d1}T10:00:01Z caller=auth.go:{d2} msg="token about to expire" expires_in={d3}s
time="2026-03-0{d1}T10:00:01Z" level=error msg="failed to refresh token" error="oauth2: \"invalid_grant\""
{{"level":"error","msg":"invalid token","user_id":{d5},"trace_id":"{h32}"}}
{{"ts":{d10}.{d6},"logger":"auth","msg":"password changed","user":"{w}"}}
{{"eventName":"GetSecretValue","requestParameters":{{"secretId":"{k}"}},"requestID":"{uuid}"}}
{{"token_count":{d4},"model":"{w}-{d1}"}}
10.0.0.{d1} - - [0{d1}/Mar/2026:10:00:01 +0000] "POST /oauth/token HTTP/1.1" 200 {d4} "-" "curl/8.5.0"
10.0.0.{d1} - {w} [0{d1}/Mar/2026:10:00:01 +0000] "GET /reset-password?lang=en HTTP/2" 302 0
E0304 10:00:01.{d6}       1 authentication.go:{d2}] Unable to authenticate the request due to an error: invalid bearer token
I0304 10:00:01.{d6} {d4} secret.go:{d2}] Receiving secret {w}/{k}, ({d3}) total bytes
[2026-03-04 10:00:01] production.ERROR: CSRF token mismatch. {{"exception":"[object]"}}
nginx: 2026/03/04 10:00:01 [error] {d2}#{d2}: *{d4} no user/password was provided for basic authentication
<13>1 2026-03-04T10:00:01Z {w} auth {d4} ID{d2} - token revoked
rate(http_requests_total{{code="401",token="none"}}[5m])
sum by (secret) (kube_secret_info{{namespace="{w}"}})
histogram_quantile(0.99, rate(token_refresh_seconds_bucket[5m]))
vault_token_count{{auth_method="kubernetes"}} {d3}
increase(password_resets_total[1h]) > {d3}
{{app="{w}"}} |= "token" | json | status >= 400
index={w} sourcetype=auth action=failure | stats count by user
SELECT token_id, expires_at FROM tokens WHERE user_id = {d5};
ALTER TABLE users ADD COLUMN password_digest varchar({d3});
CREATE INDEX idx_tokens_user ON tokens (user_id);
The access token is valid for {d2} minutes and the refresh token for {d1} days.
Passwords are hashed with bcrypt and never logged.
Store the API key in the secret manager, not in the repository.
Use a strong password with at least 12 characters.
A token is a string that identifies a session.
Enter your password and press Enter.
Your session cookie expires after {d2} hours.
The private key never leaves the HSM.
The secret key must be 32 bytes long.
See "Rotate the client secret" in the {w} runbook.
The bearer token must be sent in the Authorization header.
Password rotation: every {d2} days
Token lifetime: {d2} minutes
Token bucket size: {d3}
Password policy: minimum 12 characters
Password manager: 1Password
Secret store: Vault
Secret scanning: enabled
API key owner: {w}
API key name: {k}
API keys: 3 active
Key rotation: automatic
Signing key algorithm: RS256
Encryption key type: AES-256-GCM
Client secret expiry: 2026-12-01
Token issuer: https://id.example/realms/{w}
Login: see the {w} page
Credentials: in Vault
Credential helper: osxkeychain
Authentication: SAML via Okta
## Password\n\nThe password is in Vault.
## Password\n\nAsk-{w}
## Tokens\n\n- refresh
## API key\n\n`Settings > API keys`
## Secret rotation\n\n1. Open the console
Password\nUsername\nHost
Token\nExpires\n
<b>Password</b><br>See the vault
<b>Token</b><br>Ask {w}
<td>Password</td><td>required</td>
<td>Token</td><td>string</td>
<dt>password</dt><dd>The password of the user.</dd>
<li>Password: ask {w}</li>
<label for="password">Password</label>
<p>Your password was changed on 2026-03-04.</p>
| Password | in 1Password |
| password | `string` | yes |
| token | yes | The token |
| api_key | string | Your API key |
| `--token` | `VAULT_TOKEN` | The token |
| secret | {k} | {w} |
| Key | Value |\n| --- | --- |\n| region | eu-west-1 |
| Token | Used by |\n| --- | --- |\n| {k} | {w} |
| Name | Password |\n| --- | --- |\n| {w} | in the vault |
password<tab>string<tab>required
token<tab>the token of the {w} service
name,password,role\n{w},,admin
username<tab>password<tab>role
set password in the console
set token $TOKEN
config set token_ttl {d3}h
set -o pipefail; export TOKEN
tool config set password-policy strict
AppRole role_id: {uuid}
tenant: {uuid}
client_id={uuid}
client-id: {a32}.apps.googleusercontent.com
app_id: {d6}
account id {d12}
GOOGLE_APPLICATION_CREDENTIALS=/var/secrets/google/key.json
AWS_ACCESS_KEY_ID is missing
AWS_PROFILE={w}
KUBECONFIG=/home/{w}/.kube/config
JWT_ALGORITHM=HS256
JWT_EXPIRES_IN=15m
TOKEN_CACHE_SIZE={d4}
PASSWORD_RESET_TIMEOUT = {d5}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = []
spring.security.oauth2.client.registration.{w}.client-id={k}
management.endpoint.env.keys-to-sanitize=password,secret
requirepass is not set
secretmanager.googleapis.com is enabled
version: 1.{d2}.{d1}-rc.{d1}+build.{h7}
{w}-service v2.{d1}.{d1} ({h7}) built 2026-03-0{d1}T10:00:00Z
chart {w}-{d2}.{d1}.{d1}-alpha.{d1}
release-2026.03.0{d1}-{h7}
uuid: {uuid}
{uuid}
{h40}
{h64}
cluster id MkU3OEVBNTcwNTJENDM2Qk
node {h40} joined the cluster
mac 02:42:ac:11:00:0{d1} on eth0
IPv6 2001:db8:85a3::8a2e:370:73{d2}
2026-03-0{d1}T10:00:01.{d9}+02:00
timestamp={d13} offset={d8}
partition-{d2}-leader-epoch-{d3}
consumer-{w}-{d1}-{uuid}
OptimisticLockException in AbstractAuthenticationProcessingFilter2
MyVeryLongClassNameForOAuth2TokenRelay4Gateway
KafkaAvroDeserializerConfigV2Test3Suite
i18n_l10n_a11y_k8s_token_page
the password is correct
""".strip("\n")
    .replace("<tab>", "\t")
    .splitlines()
)
