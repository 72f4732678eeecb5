{{- define "postrider.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}{{ end }}{{ end }}
{{- end }}

{{- define "postrider.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "postrider.labels" -}}
{{ include "postrider.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* What the rules and the dashboard take for a deployment: releases in two namespaces may have one name. */}}
{{- define "postrider.job" -}}
{{- default (printf "%s/%s" .Release.Namespace .Release.Name) .Values.serviceMonitor.job }}
{{- end }}

{{/* A number as it was written: Helm reads those of a file as floats, and 1000000 would come out as 1e+06. */}}
{{- define "postrider.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{- define "postrider.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ $tag }}{{ end }}
{{- end }}

{{- define "postrider.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "postrider.fullname" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{/* The secrets of a part, as a list of {variable, path, name, key}. Takes {root, part}. */}}
{{- define "postrider.secretFiles" -}}
{{- $all := .root.Values.secrets -}}
{{- $files := list -}}
{{- if has .part (list "forwarder" "console") }}{{ $files = append $files (dict "variable" "SECRETS_KEY_FILE" "path" "secrets-key" "ref" $all.secretsKey) }}{{ end -}}
{{- if has .part (list "forwarder" "console") }}{{ $files = append $files (dict "variable" "WEBHOOK_PROXY_FILE" "path" "webhook-proxy" "ref" $all.webhookProxy) }}{{ end -}}
{{- if eq .part "console" }}{{ $files = append $files (dict "variable" "ADMIN_TOKEN_FILE" "path" "admin-token" "ref" $all.adminToken) }}{{ end -}}
{{- if eq .part "console" }}{{ $files = append $files (dict "variable" "CONSOLE_OIDC_CLIENT_SECRET_FILE" "path" "console-oidc-client-secret" "ref" $all.consoleOidcClientSecret) }}{{ end -}}
{{- if eq .part "console" }}{{ $files = append $files (dict "variable" "MAIL_SMTP_URL_FILE" "path" "mail-smtp-url" "ref" $all.mailSmtpUrl) }}{{ end -}}
{{- $files = append $files (dict "variable" "KAFKA_SASL_PASSWORD_FILE" "path" "kafka-password" "ref" $all.kafkaPassword) -}}
{{- $files = append $files (dict "variable" "KAFKA_SASL_OAUTH_CLIENT_SECRET_FILE" "path" "kafka-oauth-client-secret" "ref" $all.kafkaOauthClientSecret) -}}
{{- $files = append $files (dict "variable" "SCHEMA_REGISTRY_PASSWORD_FILE" "path" "registry-password" "ref" $all.registryPassword) -}}
{{- $tls := $all.kafkaTls.name -}}
{{- $files = append $files (dict "variable" "KAFKA_SSL_CA_FILE" "path" "ca.crt" "ref" (dict "name" $tls "key" "ca.crt")) -}}
{{- if $all.kafkaTls.hasClientCertificate }}
{{- $files = append $files (dict "variable" "KAFKA_SSL_CERT_FILE" "path" "tls.crt" "ref" (dict "name" $tls "key" "tls.crt")) -}}
{{- $files = append $files (dict "variable" "KAFKA_SSL_KEY_FILE" "path" "tls.key" "ref" (dict "name" $tls "key" "tls.key")) -}}
{{- end -}}
{{- $named := list -}}
{{- range $files }}{{ if .ref.name }}{{ $named = append $named . }}{{ end }}{{ end -}}
{{- toJson $named -}}
{{- end }}

{{/* The pod of a part. Takes {root, part, values, command}. */}}
{{- define "postrider.podSpec" -}}
{{- $root := .root -}}
{{- $secrets := fromJsonArray (include "postrider.secretFiles" .) -}}
{{- $isServing := ne .part "setup" -}}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- if $isServing }}
serviceAccountName: {{ include "postrider.serviceAccount" $root }}
terminationGracePeriodSeconds: {{ $root.Values.terminationGracePeriodSeconds }}
{{- else }}
restartPolicy: Never
{{- end }}
# Nothing here talks to Kubernetes.
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and $isServing $root.Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range $root.Values.topologySpreadConstraints }}
  - {{- toYaml . | nindent 4 }}
    labelSelector:
      matchLabels: {{- include "postrider.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $.part }}
  {{- end }}
{{- end }}
containers:
  - name: {{ .part }}
    image: {{ include "postrider.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args: [{{ .part }}]
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: { drop: [ALL] }
    env:
      {{- $config := mergeOverwrite (deepCopy $root.Values.config) .values.config }}
      {{- if eq .part "console" }}{{ $config = mergeOverwrite (dict "CONSOLE_HOST" "::") $config }}{{ end }}
      {{- range $name, $value := $config }}
      - name: {{ $name }}
        value: {{ include "postrider.text" $value | quote }}
      {{- end }}
      {{- range $secrets }}
      - name: {{ .variable }}
        value: /run/secrets/postrider/{{ .path }}
      {{- end }}
    {{- if $isServing }}
    ports:
      - { name: metrics, containerPort: 9464 }
      {{- if eq .part "collector" }}
      - { name: http, containerPort: 8080 }
      {{- else if eq .part "console" }}
      - { name: http, containerPort: 8090 }
      {{- end }}
    # It may wait for Kafka for as long as it takes: that is no reason to start it again.
    livenessProbe:
      httpGet: { path: /healthz, port: metrics }
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet: { path: /readyz, port: metrics }
      periodSeconds: 5
      timeoutSeconds: 5
    {{- if ne .part "forwarder" }}
    lifecycle:
      # Until no proxy sends anything any more.
      preStop: { exec: { command: [sleep, '5'] } }
    {{- end }}
    {{- end }}
    resources: {{- toYaml .values.resources | nindent 6 }}
    volumeMounts:
      - { name: tmp, mountPath: /tmp }
      - { name: store, mountPath: /var/lib/postrider }
      {{- if $secrets }}
      - { name: secrets, mountPath: /run/secrets/postrider, readOnly: true }
      {{- end }}
volumes:
  - name: tmp
    emptyDir: { sizeLimit: 64Mi }
  - name: store
    {{- if .values.existingClaim }}
    persistentVolumeClaim: { claimName: {{ .values.existingClaim }} }
    {{- else }}
    emptyDir: { sizeLimit: {{ default "256Mi" .values.storeSize }} }
    {{- end }}
  {{- if $secrets }}
  - name: secrets
    projected:
      defaultMode: 0440
      sources:
        {{- range $secrets }}
        - secret:
            name: {{ .ref.name }}
            items: [{ key: {{ .ref.key }}, path: {{ .path }} }]
        {{- end }}
  {{- end }}
{{- end }}
