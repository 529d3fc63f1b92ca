"""What launchers make of the pods of a job: commands as they run, processes, GPUs, and where they disagree."""

from jobgen.model.features import Feature

FEATURE = Feature(
    parts={
        "file.links": "local_servers:find_hidden_servers",
        "job.launch": "describe:describe_launches",
        "job.launch.faults": "judge:find_faults",
        "container.variables.unset": "references:is_unset",
    },
    needs=("convert",),
)
