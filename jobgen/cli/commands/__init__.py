"""The commands: one module each, named after its command and found by listing this folder, and those of features.

A module has `command`, a click command or group that returns a `Result`.
"""

from __future__ import annotations

SHIPPED = {
    "": {
        "completion": "Print the script that completes command lines in a shell.",
        "diff": "Show what a change does: which jobs start, stop or restart, and how many GPUs they use.",
        "doctor": "Show what jobgen finds on this machine and in this repository, and what to do next.",
        "exceptions": "List the exceptions in jobgen.yaml: what is accepted, where, why, by whom and until when.",
        "explain": "Show where the values of a job come from, or what a rule checks.",
        "init": "Create a jobs repository.",
        "lint": "Check jobs, overlays, rendered objects and manifests for what the cluster would reject.",
        "new": "Write a new job for the platform of this repository, and check it in every environment.",
        "policy": "Check, test, list and describe policies.",
        "render": "Print manifests, or write them as a tree of files.",
        "schema": "Build, import and print the schemas that objects are checked against.",
    },
    "convert": {
        "import": "Convert manifests to job specs that render to the same manifests.",
        "migrate": "Convert jobs to another kind or platform, and report what cannot be converted.",
    },
    "editor": {"lsp": "Start the language server for editors."},
    "gitops": {
        "cmp": "Run as an Argo CD config management plugin.",
        "fn": "Run as a KRM function (stdin to stdout).",
        "gitops": "Print configuration for Argo CD and Flux.",
    },
    "kueue": {"queue": "Show which jobs Kueue admits, which wait and for what, and which can never be admitted."},
    "live": {
        "capture": "Write the state of a cluster into the folder that `cluster.state` names, to commit and review.",
        "drift": "Compare what the repository renders with what runs: missing, changed, stale and extra objects.",
    },
    "model_context": {"mcp": "Serve lint, explain, render, diff, rules, queues and teams to an assistant."},
    "page": {"report": "Write one HTML page about all jobs in all environments."},
    "teams": {
        "codeowners": "Write the owners of each team's folders to CODEOWNERS.",
        "teams": "Show what each team owns, what it can use, and how much of its budget it uses.",
    },
    "testing": {
        "test": (
            "Run the job tests in tests/*.yaml: values, expressions, findings, effects of a change, and snapshots."
        )
    },
    "upgrade": {
        "upgrade": (
            "Show what other versions of Kubernetes, Kueue and operators would do to the jobs of each environment."
        )
    },
}
"""The first sentence of the help of each command that jobgen ships, by its feature.

So a list of all commands imports none of them, and the command of a feature that is not installed names the feature.
"""
