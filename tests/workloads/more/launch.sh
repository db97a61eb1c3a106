#!/bin/bash
# A launcher of the kind that tools ship: activates the environment, sets variables, runs.
set -e
source "${VENV:-.venv}/bin/activate"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export OMP_NUM_THREADS=1
python "$(dirname "$0")/gen.py" "$@"
