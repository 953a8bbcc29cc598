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

{{- /* Every llama.cpp server by its own name, so that the bot can choose the one that has a prompt in its cache. */ -}}
{{- define "plumbline.llmUrls" -}}
{{- $urls := list }}
{{- range $number := until (int .Values.llm.replicas) }}
{{- $urls = append $urls (printf "http://%s-llm-%d.%s-llm:%d" $.Release.Name $number $.Release.Name (int $.Values.llm.port)) }}
{{- end }}
{{- join "," $urls }}
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
