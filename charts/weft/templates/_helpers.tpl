{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* Names are fixed: there is one weft in a cluster, and its parts find each other by name. */}}

{{/* include "weft.labels" (list . "controller") */}}
{{- define "weft.labels" -}}
{{ include "weft.selector" . }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end }}

{{- define "weft.selector" -}}
app.kubernetes.io/name: weft
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* include "weft.image" (list . "controller") */}}
{{- define "weft.image" -}}
image: {{ printf "%s/weft-%s:%s" (index . 0).Values.image.registry (index . 1) (index . 0).Values.image.tag }}
imagePullPolicy: {{ (index . 0).Values.image.pullPolicy }}
{{- end }}

{{/* What the Pod Security level "restricted" asks of a container. */}}
{{- define "weft.restricted" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "weft.probes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 1
  timeoutSeconds: 5
{{- end }}

{{- define "weft.relay.address" -}}
weft-relay-0.weft-relay.{{ .Release.Namespace }}.svc
{{- end }}

{{/* Never injected. */}}
{{- define "weft.untouched" -}}
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: [kube-system, {{ .Release.Namespace }}]
{{- end }}
