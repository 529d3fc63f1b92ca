"""What Argo CD or Flux would rerun, fight over, drop or never apply."""
