#!/usr/bin/env python3
"""Line coverage of the decoders by the inputs of the fuzz programs; fails below 90 % in any file.

Runs every program of the fuzz preset once over its corpus and seeds. Functions that only encode do not count: they
are those that make_fuzz_seeds runs and no fuzz program does. --lines prints the lines that nothing reached.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
REQUIRED = 0.9
DECODERS = ["codec/payload.cpp", "codec/payload_body.cpp", "codec/low_rank_body.cpp", "codec/position_coding.cpp",
            "codec/random_subset.cpp", "codec/value_format.cpp", "base/state.cpp"]
# Neither encode nor decode: for planning, for the command line, for the compiler.
OTHERS = {"expected_position_bits", "subset_of", "parse_value_format", "repeated"}
# Together they hold all decoders.
HOLDERS = ["payload_fuzz", "state_fuzz"]


def output_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run_counted(command, profile):
    run = subprocess.run(command, env={"LLVM_PROFILE_FILE": profile}, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)


def merged(profiles, name):
    profile = profiles[0].parent / name
    output_of(["llvm-profdata", "merge", "-sparse", *profiles, "-o", profile])
    return profile


def run_inputs(programs, build, out):
    """Runs each program over its inputs and merges what was counted."""
    profiles = []
    for program in programs:
        name = program.name.removesuffix("_fuzz")
        inputs = [d for d in (build / "corpus" / name, ROOT / "tests" / "fuzz" / "seeds" / name) if d.is_dir()]
        if not inputs:
            sys.exit(f"fuzz_coverage: no inputs for {name}")
        profiles.append(out / f"{name}.profraw")
        run_counted([program, "-runs=0", *inputs], profiles[-1])
    return merged(profiles, "fuzz.profdata")


def run_encoders(build, out):
    with tempfile.TemporaryDirectory() as seeds:
        run_counted([build / "bin" / "make_fuzz_seeds", seeds], out / "encode.profraw")
    return merged([out / "encode.profraw"], "encode.profdata")


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


def function_ranges(exported):
    """{(file name, first line, last line): (times run, plain name)}; one for all instances of a template."""
    functions = json.loads(exported)["data"][0]["functions"]
    names = "\n".join(function["name"].rpartition(":")[2] for function in functions)
    names = subprocess.run(["c++filt"], input=names, check=True, capture_output=True, text=True).stdout.splitlines()
    ranges = {}
    for function, name in zip(functions, names):
        first, _, last = function["regions"][0][:3]
        key = (pathlib.Path(function["filenames"][0]).name, first, last)
        # 'longhaul::(anonymous namespace)::pack(std::span<…>)' → 'pack'
        plain = name.replace("(anonymous namespace)", "").partition("(")[0].rpartition(":")[2].partition("<")[0]
        ranges[key] = (ranges.get(key, (0, ""))[0] + function["count"], plain)
    return ranges


def lines_that_do_not_decode(fuzzed, encoded):
    """{file name: lines}; lambdas lie inside the lines of the function around them."""
    lines = {}
    for key, (times, name) in fuzzed.items():
        if times == 0 and (encoded.get(key, (0, ""))[0] > 0 or name in OTHERS):
            file, first, last = key
            lines.setdefault(file, set()).update(range(first, last + 1))
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
    sources = [ROOT / "longhaul" / name for name in DECODERS]
    first, *rest = [args.build / "bin" / name for name in HOLDERS]
    objects = [first, *(f"-object={program}" for program in rest)]

    def export(profile, *options):
        return output_of(["llvm-cov", "export", *objects, f"-instr-profile={profile}", *options, *sources])

    fuzzed = run_inputs(programs, args.build, out)
    encoded = run_encoders(args.build, out)
    counts = line_counts(export(fuzzed, "-format=lcov"))
    apart = lines_that_do_not_decode(function_ranges(export(fuzzed)), function_ranges(export(encoded)))

    failed = False
    for source in sources:
        lines = {k: v for k, v in counts[source.name].items() if k not in apart.get(source.name, set())}
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
