#!/usr/bin/env bash
# A loop as in webui.sh of other tools, with a PYTHONPATH of its own.
export PYTHONPATH=$PWD/lib
source "${VENV:-.venv}/bin/activate"
KEEP_GOING=1
while [[ "$KEEP_GOING" -eq "1" ]]; do
  python -u "$(dirname "$0")/gen.py" "$@"
  KEEP_GOING=0
done
