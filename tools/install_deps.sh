#!/usr/bin/env bash
# Installs the Debian packages that Longhaul needs. Silent, quick and without root when nothing is missing.
# `install_deps.sh web` installs instead what `make test-web` needs besides.
set -euo pipefail

packages=(
  # Build
  g++                   # compiler of the dev and release presets
  cmake                 # build description
  ninja-build           # runs the build; its job pools keep torch files to two at once
  pkg-config            # finds libraries that ship no CMake file
  python3               # tools/*.py

  # Checks
  clang                 # thread-safety analysis, fuzzing, the asan and tsan presets
  clang-tidy            # lint
  clang-format          # formatting
  libclang-rt-14-dev    # libFuzzer and the sanitizers of clang
  llvm                  # llvm-cov: coverage of the fuzz targets, llvm-symbolizer: readable reports

  # Core
  libhwy-dev            # Highway: SIMD with run-time dispatch
  libxxhash-dev         # digests of payloads
  libspdlog-dev         # log
  libasio-dev           # event loop of the relay
  libtomlplusplus-dev   # scenario files
  libssl-dev            # certificates and invites
  libjs-chart.js        # charts of the report page
  libprotobuf-dev       # messages between replicas and hub
  protobuf-compiler     # writes their code
  libgrpc++-dev         # HTTP/2 and TLS between them
  protobuf-compiler-grpc # writes the service's code

  # Programs
  libcli11-dev          # command line
  nlohmann-json3-dev    # --json

  # Training
  libtorch-dev          # PyTorch for C++
  libgloo-dev           # headers of its process groups
  libopenblas0-pthread  # a BLAS many times faster than Debian's default
  zlib1g-dev            # gzipped data sets
  dataset-fashion-mnist # the default images
  bible-kjv             # writes the default text
  bible-kjv-text        # the default text

  # Tests and benchmarks
  libgtest-dev          # GoogleTest
  libgmock-dev          # its matchers
  libbenchmark-dev      # Google Benchmark
)

web_packages=(
  chromium              # opens the report page
  fonts-dejavu-core     # text in it
)
case ${1:-} in
  "") ;;
  web) packages=("${web_packages[@]}") ;;
  *)
    echo "usage: tools/install_deps.sh [web]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query > /dev/null; then
  echo "install_deps: this is not Debian; install the equivalents of: ${packages[*]}" >&2
  exit 1
fi

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2> /dev/null |
  sed -n 's/^installed //p' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF -- "$package" <<< "$installed" || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  # -n: a password prompt in the middle of a build would look like a hang.
  if ! sudo -n true 2> /dev/null; then
    echo "install_deps: packages are missing and installing needs root; run" >&2
    echo "  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "install_deps: installing ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get)
"${apt[@]}" update -q
"${apt[@]}" install -y -q --no-install-recommends "${missing[@]}"
