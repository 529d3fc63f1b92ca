"""Job specs and overlays."""
