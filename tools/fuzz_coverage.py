#!/usr/bin/env python3
"""Line coverage of the decoders by the inputs of the fuzz programs; fails below 90 % in any file.

Runs every program of the fuzz preset once over its corpus and seeds. Lines of functions that only encode do not count:
the fuzz programs decode. --lines prints the lines that nothing reached.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
REQUIRED = 0.9
DECODERS = ["payload.cpp", "payload_body.cpp", "low_rank_body.cpp", "position_coding.cpp", "random_subset.cpp",
            "value_format.cpp"]
# By unmangled name, wherever they are.
ENCODERS = {"seal_payload", "write_header", "write_positions", "write_varint", "choose_rice", "unary_bits",
            "gap_before", "expected_position_bits", "subset_of", "encode_values", "encode_block", "ends_of",
            "means_of", "two_means", "end_at", "pack", "name_of", "parse_value_format"}


def output_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run_inputs(programs, build, out):
    """Runs each program over its inputs and merges what was counted."""
    for program in programs:
        name = program.name.removesuffix("_fuzz")
        inputs = [d for d in (build / "corpus" / name, ROOT / "tests" / "fuzz" / "seeds" / name) if d.is_dir()]
        if not inputs:
            sys.exit(f"fuzz_coverage: no inputs for {name}")
        run = subprocess.run([program, "-runs=0", *inputs], env={"LLVM_PROFILE_FILE": out / f"{name}.profraw"},
                             capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(run.stderr)
    profile = out / "all.profdata"
    output_of(["llvm-profdata", "merge", "-sparse", *out.glob("*.profraw"), "-o", profile])
    return profile


def line_counts(lcov):
    """{file name: {line: count}} from the lcov form."""
    files, here = {}, {}
    for row in lcov.splitlines():
        key, _, value = row.partition(":")
        if key == "SF":
            here = files.setdefault(pathlib.Path(value).name, {})
        elif key == "DA":
            line, count = value.split(",")[:2]
            here[int(line)] = max(here.get(int(line), 0), int(count))
    return files


def plain_name(demangled):
    """'longhaul::(anonymous namespace)::pack(std::span<…>)' → 'pack'."""
    path = demangled.replace("(anonymous namespace)", "").partition("(")[0]
    return path.rpartition(":")[2].partition("<")[0]


def encoder_lines(functions):
    """{file name: lines of functions that only encode}; lambdas lie inside the lines of the function around them."""
    lines, seen = {}, set()
    names = [function["name"].rpartition(":")[2] for function in functions]
    demangled = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True).stdout
    for function, name in zip(functions, demangled.splitlines()):
        if plain_name(name) not in ENCODERS:
            continue
        seen.add(plain_name(name))
        first, _, last = function["regions"][0][:3]
        lines.setdefault(pathlib.Path(function["filenames"][0]).name, set()).update(range(first, last + 1))
    if ENCODERS - seen:
        sys.exit(f"fuzz_coverage: no function is called {', '.join(sorted(ENCODERS - seen))}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--lines", action="store_true", help="print the lines that nothing reached")
    args = parser.parse_args()

    programs = sorted((args.build / "bin").glob("*_fuzz"))
    if not programs:
        sys.exit(f"fuzz_coverage: no programs in {args.build}/bin; run make fuzz")
    out = args.build / "coverage"
    out.mkdir(exist_ok=True)
    sources = [ROOT / "longhaul" / "codec" / name for name in DECODERS]
    export = ["llvm-cov", "export", args.build / "bin" / "payload_fuzz",
              f"-instr-profile={run_inputs(programs, args.build, out)}"]
    counts = line_counts(output_of([*export, "-format=lcov", *sources]))
    encoders = encoder_lines(json.loads(output_of([*export, *sources]))["data"][0]["functions"])

    failed = False
    for source in sources:
        lines = {k: v for k, v in counts[source.name].items() if k not in encoders.get(source.name, set())}
        missed = sorted(line for line, count in lines.items() if count == 0)
        share = 1 - len(missed) / len(lines)
        failed |= share < REQUIRED
        print(f"coverage: {source.name:20} {100 * share:5.1f} %  of {len(lines)} lines that decode")
        if args.lines:
            text = source.read_text().splitlines()
            for line in missed:
                print(f"  {line:4}: {text[line - 1]}")
    if failed:
        sys.exit(f"fuzz_coverage: below {100 * REQUIRED:.0f} %")


if __name__ == "__main__":
    main()
