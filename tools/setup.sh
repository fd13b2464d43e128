#!/bin/sh
# Make or update .venv for development: uv when it is there, else venv and pip, with the same versions.
# `make` calls it when pyproject.toml, constraints.txt or this file changed. Usage: setup.sh EXTRA
set -eu
cd "$(dirname "$0")/.."
extra=$1
venv=.venv

fail() {
    echo "$1" >&2
    echo "On Debian or Ubuntu, this provides it:" >&2
    echo "    $(if [ "$(id -u)" = 0 ]; then echo; else echo 'sudo '; fi)apt-get install -y python3 python3-venv" >&2
    exit 1
}

is_suitable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if is_suitable "$candidate"; then
            echo "$candidate"
            return
        fi
    done
}

# An environment is made anew when its interpreter has gone (a system upgrade) or when it was copied or
# moved here with the folder: its scripts and its editable install still name the old place.
made_in=$(cat $venv/ready 2>/dev/null || echo "$PWD")
if [ "$made_in" != "$PWD" ] || ! is_suitable $venv/bin/python; then
    rm -rf $venv
    python=$(find_python)
    [ -n "$python" ] || fail "lgcontrol needs Python 3.11 or newer; found none${PYTHON:+ at PYTHON=$PYTHON}."
    echo "making $venv with $python ($("$python" -V 2>&1))"
    if command -v uv >/dev/null; then
        uv venv --quiet --python "$(command -v "$python")" $venv
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null || ! "$python" -m venv $venv; then
        rm -rf $venv
        fail "$python cannot make virtual environments: its venv or ensurepip module is missing."
    fi
fi

if command -v uv >/dev/null; then
    install="uv pip install --quiet --python $venv/bin/python"
else
    install="$venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile"
fi
# Build requirements first, so that --no-build-isolation gives them their pinned versions too.
$install -c constraints.txt setuptools
$install -c constraints.txt --no-build-isolation -e ".[$extra]"
# On all cores, where pip would take one; a file for another version of Python does no harm.
$venv/bin/python -m compileall -q -j 0 -x '/tests?/' $venv/lib >/dev/null 2>&1 || true
