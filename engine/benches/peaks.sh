#!/usr/bin/env bash
# Predicted and measured peaks of decodes on the processor, with autoencoders of real width and random weights: the
# tables of docs/benchmarks.
#
#   engine/benches/peaks.sh WORK_FOLDER     PYTHON=… has torch and diffusers
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=${1:?a folder for the models}
python=${PYTHON:-python3}
cargo=${CARGO:-cargo}
table() {
    local kind=$1
    shift
    [ -f "$work/$kind/config.json" ] || "$python" engine/benches/random_model.py "$kind" "$work/$kind"
    printf '## %s\n\n' "$kind"
    "$cargo" run -q -p framepack-engine --example peaks -- "$work/$kind" "$@"
    printf '\n'
}
table hunyuan 1x32x32 1x24x32 3x16x16 5x12x16 9x8x8,frames=16/12 4x24x32,tile=192/144 3x12x12,exact=5 3x12x12,exact=120 3x12x12,exact=140
table wan21 3x12x12 3x12x12,frames=8/8 3x16x12,tile=96/64
table wan22 3x5x6 3x5x6,frames=8/8 3x8x6,tile=96/64
