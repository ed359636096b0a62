#!/usr/bin/env bash
# Installs what pip can't, where that needs no question: as root on a system with apt-get.
# Elsewhere it says in one line what to install. It never fails: without `dot` figures
# are text, and tests that need a missing program are skipped by name.
set -u

have() {
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null 2>&1 && return 0
    done
    return 1
}

missing() {
    have dot || echo graphviz
    have chromium chromium-browser google-chrome google-chrome-stable || echo chromium
}

wanted=$(missing | xargs)
if [ -n "$wanted" ] && [ "$(id -u)" = 0 ] && have apt-get; then
    echo "Installing $wanted with apt-get"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086  # one word per package
    apt-get update -qq >/dev/null 2>&1 &&
        apt-get install -y -qq --no-install-recommends $wanted fonts-dejavu-core >/dev/null 2>&1
    wanted=$(missing | xargs)
fi

if [ -n "$wanted" ]; then
    if [ "$(uname -s)" = Darwin ]; then
        how="brew install $wanted"
    elif have apt-get; then
        how="sudo apt-get install $wanted"
    elif have dnf; then
        how="sudo dnf install $wanted"
    elif have pacman; then
        how="sudo pacman -S $wanted"
    else
        how="use your system's packages named: $wanted"
    fi
    echo "Not found, and good to have (graphviz draws the figures, chromium tests the pages): $how"
fi
exit 0
