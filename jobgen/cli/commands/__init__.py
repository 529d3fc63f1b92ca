"""The commands: one module each, named after its command and found by listing this folder, and those of features.

A module has `command`, a click command or group that returns a `Result`.
"""

from __future__ import annotations

SHIPPED = {
    "": {
        "completion": "Print the completion script of a shell.",
        "diff": "Show what a change does to jobs and GPUs.",
        "doctor": "Show what is set up, and what to do next.",
        "exceptions": "List the findings that jobgen.yaml accepts.",
        "explain": "Show where values come from, or explain a rule.",
        "init": "Create a jobs repository.",
        "lint": "Check for what the cluster would reject.",
        "new": "Write a new job, and check it.",
        "policy": "Check, test, list and describe policies.",
        "render": "Print manifests, or write them as a tree.",
        "rules": "List the rules, and their state here.",
        "schema": "Build, import and print schemas.",
    },
    "convert": {
        "import": "Convert manifests to job specs.",
        "migrate": "Convert jobs to another kind or platform.",
    },
    "editor": {"lsp": "Start the language server for editors."},
    "gitops": {
        "cmp": "Run as an Argo CD config management plugin.",
        "fn": "Run as a KRM function (stdin to stdout).",
        "gitops": "Print configuration for Argo CD and Flux.",
    },
    "kueue": {"queue": "Show which jobs Kueue admits, and why."},
    "live": {
        "capture": "Write the state of a cluster into the repository.",
        "drift": "Compare what is rendered with what runs.",
    },
    "model_context": {"mcp": "Serve jobgen's answers to an assistant."},
    "page": {"report": "Write one HTML page about all jobs."},
    "teams": {
        "codeowners": "Write the owners of folders to CODEOWNERS.",
        "teams": "Show what teams own, can use and use.",
    },
    "testing": {"test": "Run the job tests in tests/*.yaml."},
    "upgrade": {"upgrade": "Show what other versions would do to the jobs."},
}
"""The first sentence of the help of each command that jobgen ships, by its feature.

So a list of all commands imports none of them, and the command of a feature that is not installed names the feature.
"""
GROUPS = {
    "Write": ("init", "new", "import", "migrate", "render"),
    "Check": ("lint", "test", "policy", "rules", "schema"),
    "Review": ("diff", "report", "explain", "exceptions"),
    "Cluster": ("queue", "upgrade", "capture", "drift", "gitops"),
    "Setup": ("doctor", "teams", "codeowners", "completion"),
}
"""The commands by what users want to do."""
MACHINERY = ("cmp", "fn", "lsp", "mcp")
"""Commands that other programs run. The help names them below the others."""
