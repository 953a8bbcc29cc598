{{- define "plumbline.labels" -}}
app.kubernetes.io/name: plumbline
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "plumbline.bot" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: bot
{{- end }}

{{- define "plumbline.llm" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: llm
{{- end }}

{{- /* An image (the list's second part) that is named with its digest, unless the root (its first) does without. */ -}}
{{- define "plumbline.pinned" -}}
{{- $root := index . 0 }}
{{- $image := index . 1 }}
{{- if and $root.Values.requireDigests (not (regexMatch "@sha256:[0-9a-f]{64}$" $image)) }}
{{- fail (printf "%s has no digest: set image.digest, or add @sha256:... to llm.image (see requireDigests in values.yaml)" $image) }}
{{- end }}
{{- $image }}
{{- end }}

{{- define "plumbline.image" -}}
{{- $tagged := printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- include "plumbline.pinned" (list . (empty .Values.image.digest | ternary $tagged (printf "%s@%s" $tagged .Values.image.digest))) }}
{{- end }}

{{- /* The peers (the list's second part) of the value that the first part names: not everybody. */ -}}
{{- define "plumbline.peers" -}}
{{- $name := index . 0 }}
{{- $peers := index . 1 }}
{{- if not $peers }}
{{- fail (printf "%s names no peer, which would stand for everybody" $name) }}
{{- end }}
{{- range $peers }}
{{- if not (or .ipBlock .podSelector .namespaceSelector) }}
{{- fail (printf "%s holds a peer without a selector, which would stand for everybody" $name) }}
{{- end }}
{{- end }}
{{- toYaml $peers }}
{{- end }}

{{- /* Rules of egress that the bot and the llama.cpp servers share. */ -}}
{{- define "plumbline.egress" -}}
- to: {{- include "plumbline.peers" (list "network.dns" .Values.network.dns) | nindent 4 }}
  ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- if .Values.network.https }}
- to: {{- include "plumbline.peers" (list "network.https" .Values.network.https) | nindent 4 }}
  ports:
    - port: 443
{{- end }}
{{- end }}

{{- define "plumbline.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "plumbline.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
