#!/usr/bin/env bash
# preprocess_only.sh COMPILER ARGUMENT…: a compiler launcher for the tidy preset. It preprocesses instead of compiling, which
# is enough for the list of headers that a source file depends on.
set -euo pipefail
command=()
for word in "$@"; do
  [[ $word == -c ]] && word=-E
  command+=("$word")
done
exec "${command[@]}"
