# Autograd Under the Lens. `make` alone lists what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help env book serve look style test test-all check outputs atlas atlas-diff canary colab lab bench bench-pages mutants clean set-repository

PYTHON ?= python3
PIP_ARGS ?=
PYTEST_ARGS ?=
NOTEBOOKS ?=
PORT ?= 8000
# Tests often wait for a browser or a kernel: one more than the cores of a small machine.
WORKERS ?= 3
PART ?=
BASE ?=
URL ?=
PAGES ?=
SITE ?=
TORCH ?=
COLAB ?=
SAMPLE ?= 200
SEED ?= 0
MODULES ?=
OLD ?=
NEW ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.complete

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

env: $(STAMP)  ## create .venv with the pinned packages; install dot and Chromium where possible

# The stamp is written last: an installation that was cut short is done again.
$(STAMP): pyproject.toml constraints.txt colab.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; (3, 11) <= v <= (3, 13) or sys.exit("This book needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is %d.%d. Name another one: make env PYTHON=python3.12" % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check $(or $(PIP_ARGS),$$($(PYTHON) tools/cpu_wheels.py)) -c constraints.txt -e '.[book,test,lab,bench]'
	@bash tools/programs.sh
	@rm -rf $(VENV)/colab
	@grep -vE '^(#|torch=|$$)' colab.txt | $(BIN)/python -m pip install -q --disable-pip-version-check $(PIP_ARGS) --no-deps --target $(VENV)/colab -r /dev/stdin || { rm -rf $(VENV)/colab; echo "The packages of colab.txt could not be installed; the tests that need them are skipped"; }
	@touch $@

# From nothing each time: a page that is gone from the book would stay otherwise.
book: $(STAMP)  ## build the book into _build/html, running every chapter; a warning is an error
	rm -rf _build/html _build/.doctrees
	AUTOGRAD_LENS_LIVE=0 $(BIN)/jupyter-book build . -n -W --keep-going

serve: book  ## build the book and show it on this machine (PORT=8000)
	@echo 'The book is at http://localhost:$(PORT)/ (stop with Ctrl-C)'
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

# SITE=_build/html looks at a book that is built already. Make itself exits with 2 whenever anything
# failed; `python -m tools.look` tells them apart.
look: export SITE := $(value SITE)
look: $(if $(SITE),$(STAMP),book)  ## draw every figure and page on contact sheets; what is wrong? (PAGES=book/01_tape)
	@$(BIN)/python -m tools.look $(PAGES) $(if $(SITE),--site "$$SITE")

# One run of pytest, so that its closing line counts everything. It builds the book, as `make book`
# does, while other tests run. Cells of one notebook share a kernel, so they go to one worker:
# loadscope (tools/testing/order.py says in which units and order).
PYTEST = LENS_SITE='$(CURDIR)/_build/html' $(BIN)/python -m pytest --nbval --nbval-current-env \
	--nbval-cell-timeout=300 --nbval-kernel-startup-timeout=300 -n $(WORKERS) --dist loadscope --durations=20

style: $(STAMP)  ## check the style of all Python files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

test: style  ## compare all notebook outputs, test the package, build the book and open its pages
	rm -rf _build/html _build/.doctrees
	$(PYTEST) --small --executed=_build/executed $(PYTEST_ARGS)

# A part is a folder of tests; the notebooks themselves go with theirs.
PARTS := lens notebooks site jupyter project
test-all: style  ## the same and all that is slow: JupyterLab, Colab's packages, … (PART=site)
	$(if $(filter-out $(PARTS),$(PART)),$(error PART=$(PART): the parts are $(PARTS)))
	rm -rf _build/html _build/.doctrees
	$(PYTEST) $(if $(PART),tests/$(PART) $(if $(filter notebooks,$(PART)),$(wildcard book labs/solutions))) $(PYTEST_ARGS)

check: export BASE := $(value BASE)
check: $(STAMP)  ## style, gates, tests and notebooks of what has changed (BASE=main: since then)
	@$(BIN)/python -m tools.check $(if $(BASE),--base="$$BASE")

outputs: $(STAMP)  ## run the notebooks and store what they print (NOTEBOOKS=book/01_tape.ipynb)
	$(BIN)/python -m tools.notebooks $(NOTEBOOKS)
	$(BIN)/python -m tools.gates $(NOTEBOOKS)

atlas: $(STAMP)  ## run PyTorch's op database and store what each op saves (autograd_lens/atlas/atlas.json)
	$(BIN)/python -m tools.atlas write

# As for the canary, make turns an exit status of 1 into its own 2.
atlas-diff: export OLD := $(value OLD)
atlas-diff: export NEW := $(value NEW)
atlas-diff: $(STAMP)  ## what do ops save elsewhere? (OLD=2.11.0 NEW=2.14.1; versions, Pythons or files)
	@$(BIN)/python -m tools.atlas diff "$$OLD" "$$NEW" $(if $(filter file,$(origin PYTHON)),,--python='$(PYTHON)') --pip-args='$(PIP_ARGS)'

# Make itself exits with 2 whenever anything failed; `python -m tools.canary` tells them apart.
canary: export TORCH := $(value TORCH)
canary: $(STAMP)  ## re-run the notebooks elsewhere: what changes? (TORCH=2.15.0, TORCH=newest, COLAB=1)
	@$(BIN)/python -m tools.canary $(if $(filter-out 0,$(COLAB)),--colab,--torch="$$TORCH") $(if $(filter file,$(origin PYTHON)),,--python='$(PYTHON)') --pip-args='$(PIP_ARGS)' $(NOTEBOOKS)

colab:  ## the same with the versions that Colab has
	@$(MAKE) --no-print-directory canary COLAB=1

lab: $(STAMP)  ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab book $(if $(filter 0,$(shell id -u)),--allow-root)

bench: $(STAMP)  ## measure the lens against torchviz and plain runs
	$(BIN)/python -m benchmarks

bench-pages: book  ## weigh the pages and run Lighthouse on them, against a plain Jupyter Book (needs npm)
	$(BIN)/python -m benchmarks.pages

# As for the canary, make turns an exit status of 1 into its own 2.
mutants: $(STAMP)  ## change the lens a little, many times: do its tests notice? (SAMPLE=200 SEED=0 MODULES=…)
	@$(BIN)/python -m tools.mutants --sample='$(SAMPLE)' --seed='$(SEED)' $(MODULES)

clean:  ## remove what was built; .venv stays
	rm -rf _build .ruff_cache .hypothesis *.egg-info
	find autograd_lens benchmarks book labs tests tools _ext \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} + 2>/dev/null || true

# Through the environment: an address is data, and a quote in it must not become shell code.
set-repository: export URL := $(value URL)
set-repository:  ## write the repository's address wherever it stands (URL=https://github.com/OWNER/NAME)
	@$(PYTHON) -m tools.set_repository "$$URL"
