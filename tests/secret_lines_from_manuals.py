"""Forms of secrets as manuals of commands and file formats show them, and innocent lines, as a third part of the set.

Written by somebody else than the other two parts, and measured once before any rule was changed for it. See
`tests.secret_lines` on the notation.
"""

from __future__ import annotations

from collections.abc import Sequence

FORMS: Sequence[str] = r"""
MYSQL_PWD=⟦{w}⟧ mysqldump billing
http -a ops:⟦{p}⟧ GET a.example/health
htpasswd -bc /etc/nginx/users ops ⟦{p}⟧
net use \\fs01\share ⟦{p}⟧ /user:ops
sqlplus app/⟦{p}⟧@//db.example:1521/X
REDISCLI_AUTH=⟦{w}⟧ redis-cli ping
127.0.0.1:6379> AUTH ⟦{p}⟧
pass: ⟦{p}⟧
credentials: ops:⟦{p}⟧
Login: ops / ⟦{p}⟧
db_password: |-\n    ⟦{p}⟧\nhost: x
token: >\n  ⟦{t}⟧
[client]\nuser = root\npassword = ⟦{w}⟧\nhost = db
machine ftp.example login ops password ⟦{p}⟧
machine git.example\n  login ops\n  password ⟦{w}⟧
db.example:5432:billing:app:⟦{p}⟧
kubectl create secret generic db --from-literal=admin=⟦{p}⟧
kubectl create secret docker-registry r --docker-username=ops --docker-password=⟦{w}⟧
helm upgrade x ./c --set postgresql.auth.password=⟦{p}⟧ --wait
helm install x c/c --set-string db.pass=⟦{p}⟧
terraform apply -var="db_password=⟦{p}⟧"
TF_VAR_admin_password=⟦{w}⟧ terraform plan
variable "db_password" {{\n  type    = string\n  default = "⟦{p}⟧"\n}}
kind: Secret\ndata:\n  password: ⟦{b22}==⟧
kind: Secret\nmetadata:\n  name: db\ndata:\n  .dockerconfigjson: ⟦{b60}⟧
kind: Secret\nstringData:\n  admin: ⟦{p}⟧
{{"auths": {{"registry.example": {{"auth": "⟦{b32}⟧"}}}}}}
//registry.example/:_authToken=⟦{a36}⟧
_auth = ⟦{b31}=⟧
Username: ops Password: ⟦{p}⟧ (changes weekly)
pwd is ⟦{p}⟧, ask before use
ops@web01's password: ⟦{p}⟧
ansible-playbook x.yml -e "ansible_become_pass=⟦{p}⟧"
ansible_ssh_pass: ⟦{w}⟧
wget --http-user=ops --http-password ⟦{p}⟧ https://a.example/x
lftp -u ops,⟦{p}⟧ sftp.example
mosquitto_pub -h mq.example -u ops -P ⟦{p}⟧ -t x -m y
influx -username ops -password ⟦{w}⟧
psql "host=db user=app password=⟦{w}⟧ dbname=x"
jdbc:oracle:thin:app/⟦{p}⟧@db.example:1521:X
echo '⟦{p}⟧' | sudo -S systemctl restart {w}
echo "⟦{p}⟧" | docker login -u ops --password-stdin
echo ops:⟦{p}⟧ | chpasswd
keytool -list -keystore k.jks -storepass ⟦{w}⟧
ipmitool -I lanplus -H bmc -U admin -P ⟦{p}⟧ power status
snmpwalk -v2c -c ⟦{p}⟧ switch.example
os.environ["API_TOKEN"] = "⟦{t}⟧"
$env:DB_PASSWORD = '⟦{w}⟧'
ConvertTo-SecureString "⟦{p}⟧" -AsPlainText -Force
Set-Cookie: session=⟦{t}⟧; HttpOnly
vault kv put secret/db value=⟦{p}⟧
aws configure set aws_secret_access_key ⟦{b40}⟧
etcdctl --user root:⟦{p}⟧ get x
SET PASSWORD FOR 'ops'@'%' = '⟦{p}⟧';
define('DB_PASSWORD', '⟦{p}⟧');
ENV DB_PASSWORD ⟦{p}⟧
Mot de passe : ⟦{p}⟧
otpauth://totp/x?secret=⟦{u32}⟧&issuer=x
curl -d "grant_type=password&username=ops&password=⟦{p}⟧" https://a.example/token
7z x backup.7z -p⟦{p}⟧
""".strip().splitlines()

QUIET: Sequence[str] = r"""
AUTH failed for client 10.{d2}.{d2}.{d1}:{d5}
MYSQL_PWD is deprecated, use a file with --defaults-extra-file
http GET {w}.example/health
htpasswd -c /etc/nginx/users {w}
net use Z: /delete
sqlplus / as sysdba
REDISCLI_AUTH=$REDIS_PASSWORD redis-cli ping
pass: yes
pass rate: 98.{d1} %
credentials: see the runbook of {w}
credentials: {w}-service-account
Login: https://{w}.example/sso
Login: {w} / {w}
login failed for {w} / retry {d1}
token: |\n  The token that {w} sends.
description: |-\n  Rotates the password of {w}.
[client]\nuser = root\nhost = {w}.example
machine type n2-standard-{d1} in europe-west{d1}
machine {w}.example login page is down
{w}.example:5432:billing
10.{d2}.{d2}.{d1}:{d4}:up
kubectl create secret tls {k} --cert=a.crt --key=a.key
kubectl create configmap {k} --from-literal=level=debug
helm upgrade {k} ./c --set replicas={d1} --set image.repository={w}/{k}
helm upgrade {k} ./c --set auth.existingSecret={k}
terraform apply -var="region=eu-west-{d1}"
terraform apply -var-file={w}.tfvars
variable "region" {{\n  default = "eu-west-1"\n}}
kind: Secret\nmetadata:\n  name: {k}\n  namespace: {w}
kind: ConfigMap\ndata:\n  level: debug-{d1}
kind: ConfigMap\ndata:\n  host: {w}-{d3}.example
{{"auths": {{}}}}
registry=https://registry.{w}.example/
always-auth = true
Username: {w} Email: see profile
the pwd is the working directory
pwd: /var/lib/{w}
Enter the password for {w}:
ansible-playbook site.yml -e "version=1.{d1}.{d1}" --ask-become-pass
wget -P /tmp https://{w}.example/a.tgz
lftp sftp.{w}.example
mosquitto_sub -h mq.{w}.example -p {d4} -t 'a/#'
influx -host {w}.example -port {d4}
psql -h {w}.example -p {d4} -U app -d {w}
jdbc:postgresql://{w}.example:5432/{w}
jdbc:oracle:thin:@{w}.example:1521:X
echo "{w} is up" | mail -s {w} ops
echo $PASSWORD | docker login -u ops --password-stdin
echo '{{"a": {d1}}}' | jq .a
echo done | sudo tee /tmp/{w}
keytool -list -keystore {w}.jks
ipmitool -I lanplus -H {w} -U admin power status
snmpwalk -v3 -u {w} switch.example
snmpget -v2c -c $COMMUNITY switch.{w}.example
os.environ["REGION"] = "eu-west-{d1}"
token = os.environ["API_TOKEN"]
$env:PATH = "C:\tools\{w}"
ConvertTo-SecureString $value -AsPlainText -Force
Set-Cookie: theme=dark; Path=/
vault kv get secret/{w}
vault kv put secret/{w} @{w}.json
aws configure set region eu-west-{d1}
etcdctl --endpoints={w}.example:2379 get /{w}
GRANT SELECT ON {w}.* TO 'app'@'%';
SET GLOBAL max_connections = {d4};
define('WP_DEBUG', false);
ENV TOKEN_FILE /run/secrets/{w}
ENV PATH /opt/{w}/bin
ARG VERSION=1.{d2}.{d1}
Mot de passe oublié : voir {w}
otpauth migration of {w} done
curl -d "state=down&service={w}" https://{w}.example/hook
curl -X POST -d '{{"user": "{w}"}}' https://a.example
7z x {w}.7z -p
7z a -pipe {w}.7z
tar -xzf {w}-1.{d1}.tgz -C /opt
ssh -i ~/.ssh/{w} ops@{w}.example
scp -P {d4} {w}.tgz ops@{w}.example:/tmp
openssl s_client -connect {w}.example:443
docker run -e LEVEL=debug -p {d4}:80 {k}
docker exec -u {w} {k} bash
java -Xmx{d1}g -Dspring.profiles.active={w} -jar {w}.jar
journalctl -u {k} --since "{d2} minutes ago"
sudo -u {w} -H bash -c 'id'
kafka-topics --bootstrap-server {w}.example:9092 --describe
git push origin {k}:main
gpg --keyserver keys.example --recv-keys {u16}
Refresh token grant is used by {w}; see RFC 6749.
The {w} job authenticates with a short-lived token.
Anyone with the password vault role may rotate {k}.
We rotated the secret yesterday at 1{d1}:{d2}.
User / password / host must be set.
password -> vault, token -> vault, host -> DNS
secret={k} namespace={w} reason=NotFound
401 Unauthorized: bad credentials for user {w}
client secret expires on 2026-0{d1}-1{d1}
2026-03-1{d1} 10:00:0{d1} [notice] auth: user {w} logged in via sso
I0314 10:00:0{d1}.{d6} 1 token_manager.go:{d3}] refreshed token for {k}
{{"level":"info","msg":"token ok","token_type":"bearer","expires_in":{d4}}}
{{"auth":{{"method":"oidc","role":"{w}"}}}}
""".strip().splitlines()
