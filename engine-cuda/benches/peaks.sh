#!/usr/bin/env bash
# Predicted and measured peaks of decodes on the card, with autoencoders of real width and random weights in half
# precision: the tables of docs/benchmarks.
#
#   engine-cuda/benches/peaks.sh WORK_FOLDER MEASURE     PYTHON=… has torch and diffusers
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=${1:?a folder for the models}
measure=${2:?the program measure}
python=${PYTHON:-python3}
table() {
    local kind=$1
    shift
    [ -f "$work/$kind/config.json" ] || "$python" engine/benches/random_model.py "$kind" "$work/$kind"
    printf '## %s\n\n' "$kind"
    "$measure" peaks "$work/$kind" "$@"
    printf '\n'
}
table hunyuan 1x32x32 3x32x32 9x40x64 9x68x90 18x32x32,frames=16/12 9x68x90,tile=256/192 9x68x90,exact=6144 18x90x160,exact=19456 18x90x160,frames=16/12
table wan21 5x40x40 5x60x104 5x60x104,frames=8/8 21x60x104,frames=4/4 5x60x104,tile=256/192
table wan22 3x30x52,frames=4/4 3x44x80,frames=8/8
