{{- define "slipway.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "slipway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "slipway.labels" -}}
{{ include "slipway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* The secret with root's keys; empty if the volume has them. */ -}}
{{- define "slipway.secret" -}}
{{- if .Values.rootKeys.existingSecret -}}
{{- .Values.rootKeys.existingSecret -}}
{{- else if .Values.rootKeys.accessKey -}}
{{- include "slipway.name" . }}-root-keys
{{- end -}}
{{- end -}}

{{- /* Whether the claim is one that two pods on different nodes can't have. */ -}}
{{- define "slipway.exclusive" -}}
{{- if and (not .Values.data.existingClaim) (not .Values.data.volume) (not (has "ReadWriteMany" .Values.data.claim.accessModes)) -}}
true
{{- end -}}
{{- end -}}

{{- /* What can't work, in words. */ -}}
{{- define "slipway.check" -}}
{{- if and .Values.data.existingClaim .Values.data.volume -}}
{{- fail "data.existingClaim and data.volume: give one of them" -}}
{{- end -}}
{{- if and (include "slipway.exclusive" .) (gt (int .Values.replicas) 1) -}}
{{- fail "data.claim.accessModes: several gateways need ReadWriteMany; with ReadWriteOnce set replicas to 1" -}}
{{- end -}}
{{- if ne (empty .Values.rootKeys.accessKey) (empty .Values.rootKeys.secretKey) -}}
{{- fail "rootKeys: accessKey and secretKey go together" -}}
{{- end -}}
{{- if and .Values.rootKeys.existingSecret .Values.rootKeys.accessKey -}}
{{- fail "rootKeys: give existingSecret or the keys" -}}
{{- end -}}
{{- if and (include "slipway.secret" .) (not .Values.podSecurityContext.fsGroup) (ne (toString .Values.podSecurityContext.runAsUser) "0") -}}
{{- fail "rootKeys: a secret is read by the group that podSecurityContext.fsGroup names; without it, leave the keys to the volume" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress.hosts: it has none" -}}
{{- end -}}
{{- end -}}

{{- /* Options as flags: lists are repeated, switches stand alone. What chooses by "on" and "off" is no switch, but YAML reads
       these words as true and false unless they are quoted. */ -}}
{{- define "slipway.arguments" -}}
- serve
{{- range $name, $value := .Values.options }}
{{- if kindIs "slice" $value }}
{{- range $value }}
- {{ printf "--%s=%v" $name . | quote }}
{{- end }}
{{- else if and (kindIs "bool" $value) (has $name (list "log" "sendfile" "sigv2")) }}
- {{ printf "--%s=%s" $name (ternary "on" "off" $value) | quote }}
{{- else if kindIs "bool" $value }}
{{- if $value }}
- {{ printf "--%s" $name | quote }}
{{- end }}
{{- else if kindIs "string" $value }}
- {{ printf "--%s=%s" $name $value | quote }}
{{- else }}
- {{ printf "--%s=%s" $name ($value | toJson) | quote }}
{{- end }}
{{- end }}
{{- end -}}
