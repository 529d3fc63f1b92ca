"""Values of YAML files, whatever their kind."""
