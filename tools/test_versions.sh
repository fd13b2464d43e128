#!/bin/sh
# Run a quick part of the tests with the oldest and the newest supported versions, on each Python that is there.
# Usage: test_versions.sh [NAME …]; environments are kept in build/versions. PYTHON3_12=/path names an interpreter.
set -u
cd "$(dirname "$0")/.."

# name, Python, versions; those of `oldest` are the bounds of pyproject.toml (a test compares them).
OLDEST="numpy==2.0.0 scipy==1.13.0 casadi==3.8.0 control==0.10.1 matplotlib==3.9.0"
TABLE="oldest-3.11|3.11|$OLDEST
newest-3.11|3.11|
newest-3.12|3.12|
newest-3.13|3.13|"
TESTS="tests/groups/test_axioms.py tests/groups/test_values.py tests/codegen/test_calls.py
tests/systems/test_linearize.py tests/systems/test_rollout.py tests/systems/test_control.py
tests/multibody/test_structure.py tests/optimal/test_sqp.py tests/controllers/test_lqr.py
tests/estimation/test_filters.py tests/simulation/test_failures.py tests/simulation/test_storage.py
tests/plotting/test_plot_run.py tests/io/test_urdf_reader.py tests/project/test_versions.py"

interpreter() {
    given=$(eval "echo \${PYTHON$(echo "$1" | tr . _):-}")
    # Those of pyenv stand in folders of their own: its python3.12 on PATH fails unless it is chosen.
    for candidate in $given "python$1" "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/$1".*/bin/python; do
        "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1 && { echo "$candidate"; return; }
    done
    command -v uv >/dev/null && uv python find "$1" 2>/dev/null
}

run() {
    name=$1 version=$2 versions=$3 folder=build/versions/$1
    python=$(interpreter "$version")
    if [ -z "$python" ]; then
        echo "$name: no Python $version, left out"
        return 0
    fi
    [ -x "$folder/bin/python" ] || "$python" -m venv "$folder" || return 1
    # Unquoted: a list of requirements.
    # shellcheck disable=SC2086
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade \
        pytest pytest-xdist mpmath setuptools $versions -e . || return 1
    echo "$name: $("$folder/bin/python" - <<'PY'
import sys
from importlib.metadata import version
names = ("numpy", "scipy", "casadi", "control", "matplotlib")
print("Python", sys.version.split()[0], *(f"{name} {version(name)}" for name in names))
PY
    )"
    # shellcheck disable=SC2086
    "$folder/bin/python" -m pytest -q -n auto -p no:cacheprovider $TESTS
}

failed=""
for row in $(echo "$TABLE" | tr ' \n' '~ '); do
    name=$(echo "$row" | cut -d'|' -f1)
    case " ${*:-$name} " in *" $name "*) ;; *) continue ;; esac
    run "$name" "$(echo "$row" | cut -d'|' -f2)" "$(echo "$row" | cut -d'|' -f3 | tr '~' ' ')" ||
        failed="$failed $name"
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
