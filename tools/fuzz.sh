#!/usr/bin/env bash
# tools/fuzz.sh SECONDS [SEED]: runs each program of the fuzz preset for SECONDS, then prints what of the decoders was reached.
# With a SEED the inputs come in the same order every time; without one, every run tries others.
# Corpora live in build/fuzz/corpus; seeds come from tests/fuzz/seeds/NAME, words from tests/fuzz/NAME.dict.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: tools/fuzz.sh SECONDS [SEED]}
seed=${2:-0}  # 0: libFuzzer draws one
shopt -s nullglob
programs=(build/fuzz/bin/*_fuzz)
((${#programs[@]})) || { echo "fuzz: no programs in build/fuzz/bin; run make fuzz" >&2; exit 1; }

mkdir -p build/fuzz/findings
for program in "${programs[@]}"; do
  name=$(basename "$program" _fuzz)
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  words=(tests/fuzz/"$name".dict)
  seeds=(tests/fuzz/seeds/"$name"/)
  [[ -f ${words[0]} ]] || words=()
  [[ -d ${seeds[0]} ]] || seeds=()

  echo "fuzz: $name for $seconds s"
  # Without entropic scheduling: its bookkeeping takes longer than a decoder does.
  LLVM_PROFILE_FILE=/dev/null "$program" -max_total_time="$seconds" -seed="$seed" -max_len=1024 -entropic=0 -timeout=60 \
    -rss_limit_mb=2048 -artifact_prefix=build/fuzz/findings/"$name"- -print_final_stats=1 -verbosity=0 \
    "${words[@]/#/-dict=}" "$corpus" "${seeds[@]}"
done

tools/fuzz_coverage.py
