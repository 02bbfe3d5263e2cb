#!/usr/bin/env bash
# Formatting, layering, the table of nouns, clang-tidy; prints the word counts. --check (default) fails on any finding; --fix
# repairs formatting and the table first.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:---check}
case $mode in
  --check) format=(clang-format --dry-run --Werror) ;;
  --fix) format=(clang-format -i) && tools/list_nouns.py --fix ;;
  *)
    echo "usage: tools/lint.sh [--check|--fix]" >&2
    exit 2
    ;;
esac

# Tracked files and new ones that are not ignored, without those deleted in the working tree.
sources() {
  git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' |
    while IFS= read -r -d '' file; do [[ -f $file ]] && printf '%s\0' "$file"; done
}

echo "lint: clang-format"
sources | xargs -0 -r "${format[@]}"

echo "lint: layers"
tools/check_layers.py --self-test
tools/check_layers.py

echo "lint: words"
tools/count_words.py --self-test
tools/count_words.py
tools/list_nouns.py --check

echo "lint: clang-tidy"
[[ build/tidy/build.ninja -nt CMakePresets.json ]] || cmake --preset tidy > /dev/null
# Ninja does not know that .clang-tidy is an input of every object.
if [[ .clang-tidy -nt build/tidy/.clang-tidy-seen ]]; then
  cmake --build --preset tidy --target clean > /dev/null
  touch -r .clang-tidy build/tidy/.clang-tidy-seen
fi
cmake --build --preset tidy -- -k 0
