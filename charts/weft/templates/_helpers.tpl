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
imagePullPolicy: {{ (index . 0).Values.image.pullPolicy | default "IfNotPresent" }}
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

{{/* What the values say of a part's pods: include "weft.pod" (list . "relay"). Values that an older release
     did not have are absent after an upgrade with --reuse-values. */}}
{{- define "weft.pod" -}}
{{- $values := index (index . 0).Values (index . 1) | default dict }}
{{- with ((index . 0).Values.image).pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if has (index . 1) (list "controller" "webhook") }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "weft.selector" . | nindent 8 }}
{{- end }}
{{- end }}

{{/* include "weft.annotations" . */}}
{{- define "weft.annotations" -}}
{{- if (.Values.metrics).scrapeAnnotations }}
annotations: {prometheus.io/scrape: "true", prometheus.io/port: "8080", prometheus.io/path: /metrics}
{{- end }}
{{- end }}

{{/* include "weft.resources" (list . "relay") */}}
{{- define "weft.resources" -}}
{{- with (index (index . 0).Values (index . 1) | default dict).resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "weft.controller.arguments" -}}
{{- range $architecture, $file := .Values.library }}
- --library={{ $architecture }}={{ $file }}
{{- end }}
- --traces-per-namespace={{ (.Values.traces).perNamespace | default 100 | int64 }}
- --relay=weft-relay-0
- --relay-control={{ include "weft.relay.address" . }}:4460
- --relay-data={{ include "weft.relay.address" . }}:4461
{{- with (.Values.webhook).namespaceSelector }}
- {{ printf "--namespace-selector=%s" (dict "matchExpressions" . | toJson) | quote }}
{{- end }}
{{- end }}

{{/* As the API server names the controller. */}}
{{- define "weft.controller.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:weft-controller
{{- end }}

{{/* Agents connect to hosts of this Service only: WhyRefused of lib/api/session.h. */}}
{{- define "weft.relay.address" -}}
weft-relay-0.weft-relay.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "weft.kubelet" -}}
{{ (.Values.agent).kubeletFolder | default "/var/lib/kubelet" }}
{{- end }}

{{- define "weft.state" -}}
{{ (.Values.agent).stateFolder | default "/var/lib/weft" }}
{{- end }}

{{/* Never injected, and what the values say. */}}
{{- define "weft.untouched" -}}
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: [kube-system, {{ .Release.Namespace }}]
{{- with (.Values.webhook).namespaceSelector }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Fails where a cluster is asked and too old; `helm template` asks none. */}}
{{- define "weft.check" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" }}
{{- if semverCompare "<1.32.0-0" .Capabilities.KubeVersion.Version }}
{{- fail (printf "weft needs Kubernetes 1.32 or newer: it uses selectable fields of custom resources, and the node's name in the tokens of agents. This cluster has %s." .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- end }}
{{- end }}
