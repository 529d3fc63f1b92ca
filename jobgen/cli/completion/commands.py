"""The table of commands, for completion; `tools/build_completion.py` writes it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TABLE: dict[str, Any] = {
 "help": "Write training jobs once; render them for each environment and operator.",
 "options": {
  "-C": {
   "takes": [
    "folder"
   ],
   "help": "Run in this folder",
   "count": 1
  },
  "--directory": {
   "takes": [
    "folder"
   ],
   "help": "Run in this folder",
   "count": 1
  },
  "--no-cache": {
   "help": "Ignore the cache"
  },
  "--traceback": {
   "help": "Show the traceback of an internal error"
  },
  "--version": {
   "help": "Show the version and exit"
  },
  "-h": {
   "help": "Show this message and exit"
  },
  "--help": {
   "help": "Show this message and exit"
  }
 },
 "arguments": [],
 "commands": {
  "cmp": {
   "help": "Run as a config management plugin of Argo CD.",
   "options": {
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [],
   "commands": {
    "generate": {
     "help": "Print the manifests of the Application that ARGOCD_* variables describe.",
     "options": {
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": []
    },
    "parameters": {
     "help": "Print the parameters of an Application, as JSON.",
     "options": {
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": []
    }
   }
  },
  "codeowners": {
   "help": "Write the owners of the folders of teams to CODEOWNERS.",
   "options": {
    "--check": {
     "help": "Write nothing"
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": []
  },
  "completion": {
   "help": "Print the script that completes command lines in a shell.",
   "options": {
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "words": [
      "bash",
      "zsh",
      "fish"
     ]
    }
   ]
  },
  "diff": {
   "help": "Show what a change does: which jobs start, stop or restart, and how many GPUs they use.",
   "options": {
    "-e": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--env": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--format": {
     "words": [
      "delta",
      "html",
      "json",
      "markdown",
      "text"
     ],
     "help": "",
     "count": 1
    },
    "-o": {
     "help": "Also write a format to a file",
     "count": 1
    },
    "--output": {
     "help": "Also write a format to a file",
     "count": 1
    },
    "--folders": {
     "takes": [
      "folder"
     ],
     "help": "Compare two folders instead of revisions",
     "count": 2
    },
    "--exit-code": {
     "help": "Exit 1 if anything changes"
    },
    "--repo-url": {
     "help": "Where to browse the repository, for html (default: by the remote origin)",
     "count": 1
    },
    "--no-cache": {
     "help": "Ignore the cache"
    },
    "--today": {
     "help": "Date by which jobs and suppressions expire",
     "count": 1
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "takes": [
      "revision"
     ]
    }
   ]
  },
  "doctor": {
   "help": "Show what jobgen finds on this machine and in this repository, and what to do next.",
   "options": {
    "--format": {
     "words": [
      "text",
      "json"
     ],
     "help": "",
     "count": 1
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": []
  },
  "exceptions": {
   "help": "List the exceptions in jobgen.yaml: what is accepted, where, why, by whom and until when.",
   "options": {
    "--expired": {
     "help": "List only those that have expired"
    },
    "--format": {
     "words": [
      "text",
      "json",
      "markdown"
     ],
     "help": "",
     "count": 1
    },
    "--today": {
     "help": "Date by which jobs and suppressions expire",
     "count": 1
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": []
  },
  "explain": {
   "help": "Show where the values of a job come from, or what a rule checks.",
   "options": {
    "-e": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--env": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--format": {
     "words": [
      "text",
      "json"
     ],
     "help": "",
     "count": 1
    },
    "--no-pager": {
     "help": "Print long output at once, also on a terminal"
    },
    "--today": {
     "help": "Date by which jobs and suppressions expire",
     "count": 1
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "takes": [
      "job",
      "rule"
     ]
    },
    {
     "takes": [
      "field"
     ]
    }
   ]
  },
  "fn": {
   "help": "Run as a KRM function (stdin to stdout).",
   "options": {
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "words": [
      "generate",
      "transform",
      "validate"
     ]
    }
   ]
  },
  "gitops": {
   "help": "Print configuration for Argo CD and Flux.",
   "options": {
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [],
   "commands": {
    "argocd": {
     "help": "Print settings for Argo CD, and an ApplicationSet for the rendered tree.",
     "options": {
      "-e": {
       "takes": [
        "environment"
       ],
       "help": "Environment",
       "count": 1
      },
      "--env": {
       "takes": [
        "environment"
       ],
       "help": "Environment",
       "count": 1
      },
      "--only": {
       "words": [
        "health",
        "differences",
        "types",
        "appset",
        "paths"
       ],
       "help": "Print one part",
       "count": 1
      },
      "--repo": {
       "help": "",
       "count": 1
      },
      "--revision": {
       "takes": [
        "revision"
       ],
       "help": "",
       "count": 1
      },
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": []
    },
    "flux": {
     "help": "Print a Flux Kustomization for each environment of the rendered tree.",
     "options": {
      "-e": {
       "takes": [
        "environment"
       ],
       "help": "Environment",
       "count": 1
      },
      "--env": {
       "takes": [
        "environment"
       ],
       "help": "Environment",
       "count": 1
      },
      "--source": {
       "help": "The GitRepository to read",
       "count": 1
      },
      "--wait": {
       "help": "Wait for the jobs to finish, at most this long",
       "count": 1
      },
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": []
    }
   }
  },
  "import": {
   "help": "Convert manifests to job specs that render to the same manifests.",
   "options": {
    "-o": {
     "takes": [
      "folder"
     ],
     "help": "Write DIR/<name>.yaml for each job",
     "count": 1
    },
    "--output": {
     "takes": [
      "folder"
     ],
     "help": "Write DIR/<name>.yaml for each job",
     "count": 1
    },
    "--environment": {
     "help": "Import a folder as an environment",
     "count": 1
    },
    "--factor": {
     "help": "Move what all jobs have in common to an overlay"
    },
    "--force": {
     "help": "Replace existing files"
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "takes": [
      "file"
     ],
     "many": True
    }
   ]
  },
  "init": {
   "help": "Create a jobs repository.",
   "options": {
    "--framework": {
     "words": [
      "colossalai",
      "deepspeed",
      "generic",
      "jax",
      "mpi",
      "mxnet",
      "paddle",
      "pytorch",
      "ray",
      "tensorflow",
      "xgboost"
     ],
     "help": "Add an example job for this framework",
     "count": 1
    },
    "--platform": {
     "words": [
      "kubeflow",
      "daocloud",
      "trainer",
      "tensorstack",
      "kubernetes",
      "jobset",
      "ray",
      "volcano",
      "mpi-operator"
     ],
     "help": "The platform of the cluster",
     "count": 1
    },
    "--from": {
     "takes": [
      "folder"
     ],
     "help": "Import the manifests of a folder as the jobs",
     "count": 1
    },
    "--gitops": {
     "words": [
      "argocd",
      "flux"
     ],
     "help": "Write the settings of this engine, too",
     "count": 1
    },
    "--ci": {
     "words": [
      "github",
      "gitlab",
      "none"
     ],
     "help": "CI to set up",
     "count": 1
    },
    "--force": {
     "help": "Overwrite existing files"
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "takes": [
      "folder"
     ]
    }
   ]
  },
  "lint": {
   "help": "Check jobs, overlays, rendered objects and manifests for what the cluster would reject.",
   "options": {
    "-e": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--env": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--format": {
     "words": [
      "concise",
      "github",
      "gitlab",
      "json",
      "junit",
      "policyreport",
      "sarif",
      "tap",
      "text",
      "auto"
     ],
     "help": "",
     "count": 1
    },
    "--since": {
     "takes": [
      "revision"
     ],
     "help": "Report only findings that are new since a Git revision",
     "count": 1
    },
    "--fix": {
     "help": "Apply fixes that do not change the meaning"
    },
    "--fix-unsafe": {
     "help": "Apply all fixes"
    },
    "--diff": {
     "help": "Show what --fix would change"
    },
    "--baseline": {
     "takes": [
      "file"
     ],
     "help": "Report only findings that this file does not list, such as jobgen-baseline.json",
     "count": 1
    },
    "--write-baseline": {
     "help": "Write all findings to the baseline"
    },
    "--fail-on": {
     "words": [
      "error",
      "warning",
      "info"
     ],
     "help": "Exit with 1 if there is a finding of this severity, or a worse one",
     "count": 1
    },
    "--statistics": {
     "help": "Count the findings of each rule"
    },
    "--show-suppressed": {
     "help": "Show findings that comments and the baseline suppress"
    },
    "--explain-files": {
     "help": "Say what each file was taken for, and why"
    },
    "--strict-files": {
     "help": "Report a file whose objects are not judged, such as a template"
    },
    "--shard": {
     "help": "Process one of N shares of the files",
     "count": 1
    },
    "--kubeconform": {
     "help": "Run kubeconform too"
    },
    "--second-opinion": {
     "help": "Run jsonschema too, and kubeconform if installed"
    },
    "--no-cache": {
     "help": "Ignore the cache"
    },
    "--no-fsync": {
     "help": "Do not wait until files are on the disk"
    },
    "--today": {
     "help": "Date by which jobs and suppressions expire",
     "count": 1
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "takes": [
      "file"
     ],
     "many": True
    }
   ]
  },
  "lsp": {
   "help": "Start the language server for editors.",
   "options": {
    "--stdio": {
     "help": "Use standard input and output, which is the only way"
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": []
  },
  "mcp": {
   "help": "Serve lint, explain, render, diff, rules, queues and teams to an assistant.",
   "options": {
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": []
  },
  "merge-reports": {
   "help": "Merge the reports of all shards of `lint` or `test` into that of one run.",
   "options": {
    "--format": {
     "words": [
      "json",
      "junit",
      "sarif"
     ],
     "help": "Default: the format of the reports",
     "count": 1
    },
    "-o": {
     "takes": [
      "file"
     ],
     "help": "Write the report to a file",
     "count": 1
    },
    "--output": {
     "takes": [
      "file"
     ],
     "help": "Write the report to a file",
     "count": 1
    },
    "--no-cache": {
     "help": "Ignore the cache"
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "takes": [
      "file"
     ],
     "many": True
    }
   ]
  },
  "migrate": {
   "help": "Convert jobs to another kind or platform, and report what cannot be converted.",
   "options": {
    "--to": {
     "words": [
      "ColossalAIJob",
      "DeepSpeedJob",
      "GenericJob",
      "JAXJob",
      "Job",
      "JobSet",
      "MPIJob",
      "MXJob",
      "PaddleJob",
      "PyTorchJob",
      "PyTorchTrainingJob",
      "RayJob",
      "TFJob",
      "TensorFlowTrainingJob",
      "TrainJob",
      "XGBoostJob",
      "XGBoostTrainingJob",
      "jobset",
      "kubeflow",
      "kubernetes",
      "mpi-operator",
      "ray",
      "tensorstack",
      "trainer",
      "volcano"
     ],
     "help": "The kind or platform to convert to",
     "count": 1
    },
    "--all": {
     "help": "Convert the whole repository, with overlays and runtimes"
    },
    "--runtimes": {
     "help": "Write runtimes for what a TrainJob cannot have"
    },
    "--no-runtimes": {
     "help": "Write runtimes for what a TrainJob cannot have"
    },
    "--write": {
     "help": "With --all: change the files instead of printing the difference"
    },
    "--dry-run": {
     "help": "With --all: print the difference and write nothing, as without --write"
    },
    "-e": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--env": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "-o": {
     "takes": [
      "folder"
     ],
     "help": "Write DIR/<name>.yaml for each job",
     "count": 1
    },
    "--output": {
     "takes": [
      "folder"
     ],
     "help": "Write DIR/<name>.yaml for each job",
     "count": 1
    },
    "--force": {
     "help": "Replace existing files"
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "takes": [
      "job",
      "file"
     ],
     "many": True
    }
   ]
  },
  "policy": {
   "help": "Check, test, list and describe policies.",
   "options": {
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [],
   "commands": {
    "check": {
     "help": "Report mistakes in policies, and expressions that do not fit the kinds they match.",
     "options": {
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": []
    },
    "docs": {
     "help": "Print a page in Markdown about what the policies enforce, and where.",
     "options": {
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": []
    },
    "list": {
     "help": "List the policies with their actions and resources, and the packs that can be turned on.",
     "options": {
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": []
    },
    "test": {
     "help": "Run the test cases of the policies, in policies/tests/ or in DIR.",
     "options": {
      "--format": {
       "words": [
        "text",
        "junit"
       ],
       "help": "",
       "count": 1
      },
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": [
      {
       "takes": [
        "folder"
       ]
      }
     ]
    }
   }
  },
  "queue": {
   "help": "Show which jobs Kueue admits, which wait and for what, and which can never be admitted.",
   "options": {
    "-e": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--env": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--assume": {
     "words": [
      "running=all",
      "running=none"
     ],
     "help": "Jobs that run from the start, separated by commas",
     "count": 1
    },
    "--format": {
     "words": [
      "json",
      "markdown",
      "text"
     ],
     "help": "",
     "count": 1
    },
    "--exit-code": {
     "help": "Exit 1 if a job is never admitted"
    },
    "--today": {
     "help": "Date by which jobs and suppressions expire",
     "count": 1
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "takes": [
      "job"
     ],
     "many": True
    }
   ]
  },
  "render": {
   "help": "Print manifests, or write them as a tree of files.",
   "options": {
    "-e": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--env": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "-o": {
     "takes": [
      "folder"
     ],
     "help": "Write a tree: DIR/<env>/<namespace>/<kind>-<name>.yaml",
     "count": 1
    },
    "--output": {
     "takes": [
      "folder"
     ],
     "help": "Write a tree: DIR/<env>/<namespace>/<kind>-<name>.yaml",
     "count": 1
    },
    "--check": {
     "help": "Write nothing"
    },
    "--allow-empty": {
     "help": "Allow an environment without objects"
    },
    "--allow-mass-delete": {
     "help": "Allow deleting most files of an environment"
    },
    "--shard": {
     "help": "Process one of N shares of the files",
     "count": 1
    },
    "--no-cache": {
     "help": "Ignore the cache"
    },
    "--no-fsync": {
     "help": "Do not wait until files are on the disk"
    },
    "--today": {
     "help": "Date by which jobs and suppressions expire",
     "count": 1
    },
    "--format": {
     "words": [
      "yaml",
      "json"
     ],
     "help": "",
     "count": 1
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "takes": [
      "job"
     ],
     "many": True
    }
   ]
  },
  "report": {
   "help": "Write one HTML page about all jobs in all environments.",
   "options": {
    "-o": {
     "takes": [
      "folder"
     ],
     "help": "Write DIR/index.html",
     "count": 1
    },
    "--output": {
     "takes": [
      "folder"
     ],
     "help": "Write DIR/index.html",
     "count": 1
    },
    "-e": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--env": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--since": {
     "takes": [
      "revision"
     ],
     "help": "Mark findings that are new since a revision",
     "count": 1
    },
    "--repo-url": {
     "help": "Where to browse the repository (default: by the remote origin)",
     "count": 1
    },
    "--prices": {
     "takes": [
      "file"
     ],
     "help": "What an hour of a GPU costs",
     "count": 1
    },
    "--no-cache": {
     "help": "Ignore the cache"
    },
    "--today": {
     "help": "Date by which jobs and suppressions expire",
     "count": 1
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": []
  },
  "schema": {
   "help": "Build, import and print the schemas that objects are checked against.",
   "options": {
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [],
   "commands": {
    "build": {
     "help": "Write the schema of every kind that this repository describes.",
     "options": {
      "--check": {
       "help": "Write nothing"
      },
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": []
    },
    "editor": {
     "help": "Write the schemas of jobs and overlays, and settings for completion in editors.",
     "options": {
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": []
    },
    "export": {
     "help": "Write the JSON Schemas of all kinds to a folder, as kubeconform reads them.",
     "options": {
      "-e": {
       "takes": [
        "environment"
       ],
       "help": "The environment whose cluster decides the releases",
       "count": 1
      },
      "--env": {
       "takes": [
        "environment"
       ],
       "help": "The environment whose cluster decides the releases",
       "count": 1
      },
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": [
      {
       "takes": [
        "folder"
       ]
      }
     ]
    },
    "import": {
     "help": "Add the schemas of CustomResourceDefinitions to this repository.",
     "options": {
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": [
      {
       "takes": [
        "file"
       ],
       "many": True
      }
     ]
    },
    "list": {
     "help": "List the known kinds.",
     "options": {
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": []
    },
    "print": {
     "help": "Print the JSON Schema of a kind.",
     "options": {
      "-e": {
       "takes": [
        "environment"
       ],
       "help": "The environment whose cluster decides the releases",
       "count": 1
      },
      "--env": {
       "takes": [
        "environment"
       ],
       "help": "The environment whose cluster decides the releases",
       "count": 1
      },
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": [
      {
       "words": [
        "ClusterTrainingRuntime",
        "ColossalAIJob",
        "DeepSpeedJob",
        "GenericJob",
        "JAXJob",
        "Job",
        "JobSet",
        "MPIJob",
        "MXJob",
        "PaddleJob",
        "PyTorchJob",
        "PyTorchTrainingJob",
        "RayJob",
        "TFJob",
        "TensorFlowTrainingJob",
        "TrainJob",
        "TrainingRuntime",
        "XGBoostJob",
        "XGBoostTrainingJob"
       ]
      }
     ]
    },
    "update": {
     "help": "Rebuild the imported schemas from folders of CustomResourceDefinitions.",
     "options": {
      "--check": {
       "help": "Write nothing"
      },
      "-h": {
       "help": "Show this message and exit"
      },
      "--help": {
       "help": "Show this message and exit"
      }
     },
     "arguments": [
      {
       "takes": [
        "folder"
       ],
       "many": True
      }
     ]
    }
   }
  },
  "teams": {
   "help": "Show who owns what, what each team may use, and what is used of each budget.",
   "options": {
    "-e": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--env": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--format": {
     "words": [
      "json",
      "markdown",
      "text"
     ],
     "help": "",
     "count": 1
    },
    "--today": {
     "help": "Date by which jobs and suppressions expire",
     "count": 1
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "takes": [
      "team"
     ],
     "many": True
    }
   ]
  },
  "test": {
   "help": "Run the tests of jobs, in tests/*.yaml: values, expressions, findings, effects of a change, and...",
   "options": {
    "-e": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--env": {
     "takes": [
      "environment"
     ],
     "help": "Environment",
     "count": 1
    },
    "--update": {
     "help": "Write the snapshots that differ"
    },
    "--format": {
     "words": [
      "json",
      "junit",
      "text"
     ],
     "help": "",
     "count": 1
    },
    "--shard": {
     "help": "Process one of N shares of the files",
     "count": 1
    },
    "--today": {
     "help": "Date by which jobs and suppressions expire",
     "count": 1
    },
    "-h": {
     "help": "Show this message and exit"
    },
    "--help": {
     "help": "Show this message and exit"
    }
   },
   "arguments": [
    {
     "takes": [
      "file"
     ],
     "many": True
    }
   ]
  }
 },
 "rules": [
  "admits-nothing",
  "ambiguous-scalar",
  "argocd-typo",
  "attempt-without-hash",
  "backoff-without-restarts",
  "bad-job-name",
  "bad-max-exec-time",
  "bad-patch-manager",
  "bad-queue-name",
  "bad-sync-wave",
  "bad-topology-request",
  "binding-without-policy",
  "broken-schema",
  "change-not-analyzed",
  "chief-and-master",
  "cohort-cycle",
  "command-in-one-string",
  "conflicting-copies",
  "conflicting-env",
  "conflicting-mount",
  "conflicting-port",
  "conflicting-security-context",
  "conflicting-volume",
  "conflicting-volume-source",
  "cpu-image-on-gpus",
  "cpu-too-large",
  "crd-copies-differ",
  "crd-rule-violated",
  "curly-quote",
  "dangerous-capability",
  "deletes-nothing",
  "deprecated-nproc-per-node",
  "duplicate-container-name",
  "duplicate-env",
  "duplicate-identity",
  "duplicate-item",
  "duplicate-key",
  "duplicate-member",
  "duplicate-mount-path",
  "duplicate-port",
  "duplicate-role",
  "duplicate-rule",
  "duplicate-team",
  "duplicate-volume",
  "edit-without-effect",
  "edited-rendered-file",
  "elastic-bounds",
  "elastic-job-unsupported",
  "elastic-without-worker",
  "empty-environment",
  "empty-file",
  "empty-patch",
  "env-in-runtime-patch",
  "ephemeral-container-in-template",
  "exceeds-limit-range",
  "exceeds-quota",
  "excessive-aliases",
  "exclude-matches-nothing",
  "expired-exception",
  "expired-suppression",
  "feature-gate-off",
  "field-newer-than-operator",
  "file-name-too-long",
  "file-too-large",
  "finalizer-in-git",
  "flavor-without-nodes",
  "flux-substitution",
  "flux-substitution-fails",
  "forbidden-change",
  "forced-sync",
  "foreign-namespace",
  "foreign-priority-class",
  "foreign-queue",
  "foreign-service-account",
  "foreign-team-label",
  "fractional-device",
  "generated-name",
  "gpu-budget-exceeded",
  "gpu-image-without-gpus",
  "gpu-limits-match-requests",
  "gpu-request-limit-mismatch",
  "gpu-share-range",
  "gpu-share-without-count",
  "gpu-typo",
  "hook-without-health",
  "host-namespaces",
  "host-network-dns",
  "host-path",
  "host-port-mismatch",
  "identical-members",
  "idle-gpus",
  "ignored-document",
  "ignored-schema-keyword",
  "image-name-whitespace",
  "immutable-field-changed",
  "inadmissible-job",
  "inconsistent-pod-resources",
  "ineffective-queue-label",
  "ineffective-quota",
  "install-at-start",
  "instance-label-on-pods",
  "internal-error",
  "invalid-annotation",
  "invalid-config-key",
  "invalid-container-name",
  "invalid-container-policy",
  "invalid-dns-config",
  "invalid-encoding",
  "invalid-env-name",
  "invalid-env-source",
  "invalid-finalizer",
  "invalid-form",
  "invalid-gate",
  "invalid-host-name",
  "invalid-hugepages",
  "invalid-key",
  "invalid-kustomization",
  "invalid-label",
  "invalid-merge-key",
  "invalid-name",
  "invalid-object-name",
  "invalid-os-option",
  "invalid-patch",
  "invalid-policy",
  "invalid-port",
  "invalid-port-name",
  "invalid-probe",
  "invalid-quantity",
  "invalid-replica-count",
  "invalid-resource-claim",
  "invalid-security-profile",
  "invalid-selector",
  "invalid-separator",
  "invalid-sysctl",
  "invalid-toleration",
  "invalid-topology-spread",
  "invalid-value",
  "invalid-volume-name",
  "invalid-volume-path",
  "invalid-volume-source",
  "job-without-environment",
  "job-without-team",
  "json-patch-failed",
  "jsonschema-disagrees",
  "jsonschema-failed",
  "kind-changed",
  "kind-not-allowed",
  "kind-not-served",
  "kind-without-crd",
  "kubeconform-disagrees",
  "kubeconform-failed",
  "kueue-and-volcano-queues",
  "kueue-label-as-annotation",
  "kustomization-cycle",
  "kustomization-file-missing",
  "kustomization-id-conflict",
  "kustomization-load-restricted",
  "kustomize-build-fails",
  "launcher-command-on-workers",
  "launcher-on-one-pod",
  "link-out-of-repository",
  "linked-folder",
  "locked-field",
  "long-job-name",
  "malformed-image",
  "malformed-suppression",
  "mandatory-suppressed",
  "master-worker-gpu-mismatch",
  "memory-too-small",
  "min-available-too-high",
  "min-available-too-low",
  "misplaced-document",
  "misplaced-job",
  "misplaced-matrix",
  "misplaced-overlay",
  "missing-field",
  "missing-initializer",
  "missing-main-container",
  "missing-memory",
  "missing-namespace",
  "missing-pod-field",
  "missing-queue",
  "missing-replicas",
  "missing-requests",
  "missing-resource-limit",
  "missing-role",
  "missing-schema",
  "missing-shm",
  "misspelled-kind",
  "mixed-gpu-resources",
  "mixed-image-versions",
  "mixed-mpi-versions",
  "mixed-schedulers",
  "mpi-slots-mismatch",
  "mutable-image-tag",
  "mxjob-deprecated",
  "name-too-long-for-hash",
  "negative-quantity",
  "nesting-too-deep",
  "never-completes",
  "never-starts",
  "nnodes-mismatch",
  "node-agent",
  "non-canonical-quantity",
  "non-finite-number",
  "not-a-mapping",
  "not-a-policy",
  "nproc-gpu-mismatch",
  "nproc-per-node-twice",
  "number-out-of-bounds",
  "object-too-large",
  "old-api-version",
  "out-of-range",
  "overlay-cycle",
  "overlay-name-mismatch",
  "overwritten-env",
  "overwritten-restart-policy",
  "owner-references-in-git",
  "patch-matches-nothing",
  "plain-secret",
  "platform-not-allowed",
  "pod-name-collision",
  "pod-security-label-typo",
  "pod-security-violation",
  "policy-matches-nothing",
  "policy-not-evaluated",
  "policy-without-binding",
  "privileged-container",
  "probe-of-init-container",
  "queue-changed",
  "queue-label-on-pods",
  "queue-label-typo",
  "queue-quota-exceeded",
  "queue-support-ending",
  "queued-tolerations",
  "reapply-refused",
  "rejected-by-operator",
  "rejected-child",
  "replica-totals",
  "request-exceeds-limit",
  "reserved-runtime-env",
  "restart-policy-risk",
  "restart-policy-sanity",
  "role-without-template",
  "running-job-deleted",
  "runtime-patch-time",
  "runtime-socket",
  "selector-matches-nothing",
  "server-managed-field",
  "service-port-clash",
  "service-selects-nothing",
  "shared-file-name",
  "shared-output",
  "shared-single-node-claim",
  "shell-syntax-without-shell",
  "shm-over-memory",
  "slots-gpu-mismatch",
  "stale-baseline",
  "stale-image",
  "suspend-in-git",
  "sweep-too-large",
  "team-budget-exceeded",
  "team-name-mismatch",
  "template-text",
  "too-many-errors",
  "too-many-files",
  "too-many-members",
  "too-many-nodes",
  "topology-on-job",
  "ttl-in-runtime",
  "ttl-reruns-job",
  "unbuilt-kustomization",
  "uncounted-devices",
  "uneven-priority",
  "unexpanded-variable",
  "unfilled-placeholder",
  "unjudged-file",
  "unjudged-variable",
  "unknown-anchor",
  "unknown-cohort",
  "unknown-current-date",
  "unknown-enum-value",
  "unknown-field",
  "unknown-kind",
  "unknown-nproc-per-node",
  "unknown-overlay",
  "unknown-queue",
  "unknown-reference",
  "unknown-resource",
  "unknown-role",
  "unknown-rule",
  "unknown-runtime",
  "unknown-storage-scheme",
  "unknown-suppression",
  "unknown-tag",
  "unknown-variable",
  "unknown-volume",
  "unlisted-overlay",
  "unlisted-rendered-file",
  "unmounted-volume",
  "unnecessary-image-pull",
  "unreachable-quota",
  "unread-file",
  "unreadable-file",
  "unreadable-tag",
  "unsupported-by-kind",
  "unsupported-field-ref",
  "unsupported-restart-policy",
  "unsupported-value",
  "untagged-image",
  "unused-exception",
  "unused-runtime",
  "unused-suppression",
  "unused-variable",
  "wave-without-health",
  "wrong-jobgen-version",
  "wrong-type",
  "yaml-syntax"
 ]
}
