"""How pytest works in this repository: see `tools/testing/`."""

pytest_plugins = (
    "tools.testing.programs",
    "tools.testing.sizes",
    "tools.testing.order",
    "tools.testing.notebooks",
    "tools.testing.costs",
)
