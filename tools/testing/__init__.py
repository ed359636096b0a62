"""How pytest works in this repository: one plugin for each thing it does otherwise.

- `programs`: a test that needs a program which is missing is skipped by name, and fails in CI
- `sizes`: which tests only the large run (`make test-all`) has
- `order`: what goes to one worker, and in which order
- `notebooks`: what nbval compares, and what a notebook shows while it is compared
- `costs`: what each part of a run took

`conftest.py` at the root names them.
"""
