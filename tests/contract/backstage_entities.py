"""Files of entities, as Backstage documents them."""

CATALOGUE = """\
apiVersion: backstage.io/v1alpha1
kind: Location
metadata: {name: root}
spec:
  targets: [./teams/org.yaml, ../../etc/passwd, https://elsewhere.example/catalog-info.yaml]
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: till}
spec:
  type: service
  owner: group:default/payments
  dependsOn: ["resource:default/pg-till", "component:shelf"]
  consumesApis: [stock]
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: stock-keeper}
spec: {type: service, owner: fleet, providesApis: [stock]}
---
apiVersion: backstage.io/v1alpha1
kind: Resource
metadata: {name: pg-till}
spec: {type: database, owner: payments}
---
apiVersion: backstage.io/v1alpha1
kind: Domain
metadata: {name: checkout}
spec: {owner: payments}
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: toy}
spec: {type: website, owner: "User:default/ana"}
"""
GROUPS = """\
apiVersion: backstage.io/v1alpha1
kind: Group
metadata:
  name: payments
  title: Payments
  description: Charges and refunds.
  annotations:
    plumbline/channel: pay
    plumbline/slack-user-group: S0PAY
    plumbline/teams-tag: MjQzMmI1N2I=
    other: {nested: [1]}
spec:
  type: team
  profile: {displayName: Payments}
  members: [ana, "user:default/bo"]
  children: []
"""
