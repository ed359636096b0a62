"""Make the atlas anew, and compare two: `python -m tools.atlas write`, `… diff OLD NEW`."""
