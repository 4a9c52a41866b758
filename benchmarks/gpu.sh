#!/usr/bin/env bash
# What needs a GPU, in at most 8 minutes: the card, the tests on it, the recipes' heads trained on it, the losses timed.
# It takes the Python that is there: PYTHON=python3.12 bash benchmarks/gpu.sh
# All output also goes to a file in benchmarks/results/, or in the folder that RESULTS names.
# A trial of the script itself on a machine without a GPU: bash benchmarks/gpu.sh --cpu
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
device=cuda
case "${1:-}" in
  "") ;;
  --cpu) device=cpu ;;
  *) echo "gpu.sh: got '$1'; accepted is --cpu or nothing" >&2; exit 2 ;;
esac

"$python" -c "import torch" 2>/dev/null || { echo "gpu.sh: $python has no torch; name another by PYTHON=" >&2; exit 2; }
if [ "$device" = cuda ] && ! "$python" -c "import sys, torch; sys.exit(not torch.cuda.is_available())"; then
  echo "gpu.sh: there is no GPU that $python's torch can use; --cpu tries the script without one" >&2
  exit 2
fi

workers=$("$python" -c "import importlib.util as u; print('-n 6' if u.find_spec('xdist') else '')")

results=${RESULTS:-benchmarks/results}
mkdir -p "$results"
output="$results/$device.txt"
failed=0

section() {  # section TITLE SECONDS COMMAND...
  local title=$1 limit=$2 start=$SECONDS code
  shift 2
  printf '\n== %s\n' "$title"
  timeout --kill-after=5 "$limit" "$@"
  code=$?
  case $code in
    0) printf -- '-- %s s\n' $((SECONDS - start)) ;;
    124 | 137) printf -- '-- stopped: over its %s s\n' "$limit"; failed=1 ;;
    *) printf -- '-- failed with status %s after %s s\n' "$code" $((SECONDS - start)); failed=1 ;;
  esac
}

run_all() {
  section "card" 30 "$python" -m benchmarks.card --device "$device"
  section "recipes: heads on the digits" 70 "$python" -m benchmarks.heads --device "$device"
  section "losses" 40 "$python" -m benchmarks.losses --device "$device"
  section "codes" 40 "$python" -m benchmarks.codes --device "$device"
  section "chains" 80 "$python" -m benchmarks.chains --device "$device" --repeats 3 --scale 0.1
  section "losses of sequences" 40 "$python" -m benchmarks.sequence_losses --device "$device"
  # Warnings of other versions than the pinned ones are shown, not counted as failures.
  section "tests" 180 "$python" -m pytest tests --device "$device" $workers -q -W default -p no:cacheprovider
  return $failed
}

run_all 2>&1 | tee "$output"
exit "${PIPESTATUS[0]}"
