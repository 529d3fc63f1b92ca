"""GitOps integrations: settings for Argo CD and Flux, the Argo CD plugin protocol, and KRM functions."""

from jobgen.model.features import Feature

FEATURE = Feature(
    parts={"init.argocd": "commands.gitops:argocd", "init.flux": "commands.gitops:flux"},
)
