#!/usr/bin/env bash
# Makes .venv with the pinned versions, from nothing but Python 3.11 or newer. `make` calls it when needed;
# `set-up.sh bench` adds the benchmarks.
set -euo pipefail
cd "$(dirname "$0")/.."

recent() { "$1" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null; }

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then # missing, or half made
  python=""
  for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
    if [ -n "$candidate" ] && recent "$candidate"; then python=$candidate && break; fi
  done
  : "${python:?Expected Python 3.11 or newer on the PATH. Install it, or set PYTHON to its path.}"
  echo "Making .venv with $("$python" --version) ..."
  "$python" -m venv --clear .venv
fi

install() { .venv/bin/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt "$@"; }

if [ "${1:-}" = bench ]; then
  install --editable '.[all]' --editable ./bench
  touch .venv/bench-ready
  exit
fi
echo "Installing the pinned versions (a few minutes the first time) ..."
install --editable '.[dev,all]'
install --no-deps --editable ./bench # the audits with canaries; `set-up.sh bench` adds what the benchmarks need
touch .venv/ready
