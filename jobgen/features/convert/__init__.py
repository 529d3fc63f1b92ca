"""Convert manifests to job specs, and jobs from one kind to another."""

from jobgen.model.features import Feature

FEATURE = Feature(
    parts={
        "init.import": "commands.import_:convert_folder",
        "operators.train_job": "operators.trainer:expand_train_job",
    },
)
