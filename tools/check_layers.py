#!/usr/bin/env python3
"""Checks which module includes which, and a few rules that no compiler knows.

The table ARROWS is the only list of legal includes between modules; arrows are transitive.
--self-test builds a small tree with one violation of each rule and confirms that each is reported.
"""

import argparse
import pathlib
import re
import sys
import tempfile

ARROWS = {
    "base": [],
    "access": ["base"],
    "codec": ["base"],
    "link": ["base"],
    "telemetry": ["base"],
    "round": ["codec"],
    "plan": ["round", "link"],
    "transport": ["base"],
    "grpc": ["transport"],
    "exchange": ["round", "link", "transport"],
    "sync": ["exchange", "plan", "telemetry"],
    "job": ["sync"],
    "session": ["job", "grpc", "access"],
    "hub": ["sync", "transport", "telemetry", "access"],
    "lab": ["job", "telemetry"],
    "rehearsal": ["lab", "session"],
    "trainer": ["job", "telemetry"],
    "apps": ["rehearsal", "hub", "trainer", "telemetry", "grpc", "access"],
}
# What these measure by events, plan computes by formula. Comparing the two proves something only while neither
# sees the other.
STEP_TIME = re.compile(r"longhaul/plan/step_time\w*\.h")
WITHOUT_STEP_TIME = {"lab", "link", "exchange"}

# The engine and its replicas work over any exchange; the messages of the hub belong to exchange/.
WITHOUT_PROTOBUF = {"sync"}
PROTOBUF_HEADER = re.compile(r"(proto|google/protobuf)/|longhaul/exchange/protocol\.h$")
PROTOBUF_NAME = re.compile(r"\b(v1::|google::protobuf\b)")

TORCH = re.compile(r"(torch|ATen|c10d?|caffe2)/")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
USING_NAMESPACE = re.compile(r"\busing\s+namespace\b")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(")
LINE_COMMENT = re.compile(r"//.*")


def reachable(module):
    found = {module}
    for target in ARROWS[module]:
        found |= reachable(target)
    return found


def module_of(path):
    """The module a path from the repository root belongs to, or None."""
    parts = path.split("/")
    if parts[0] == "longhaul" and len(parts) > 2:
        return parts[1]
    return parts[0] if parts[0] in ("trainer", "apps") and len(parts) > 1 else None


def check_include(root, path, form, included):
    module = module_of(path)
    if TORCH.match(included) and path.startswith("longhaul/"):
        yield f"{included} is a torch header; the core below longhaul/ has none, trainer/ is the door to torch"
    if module in WITHOUT_PROTOBUF and PROTOBUF_HEADER.match(included):
        yield f"{included} is of the hub's protocol; {module} has no protobuf, exchange/ converts"
        return
    if form == "<":
        return
    if (root / path).parent.joinpath(included).is_file() and not (root / included).is_file():
        yield f'"{included}" is relative to the file; write the path from the repository root'
        return
    target = module_of(included)
    if target == "apps" and module != "apps":
        yield f'"{included}" is of a program; nobody outside apps/ includes it, libraries are below longhaul/'
        return
    if module is None or target is None:
        return
    if target not in ARROWS:
        yield f'"{included}": module {target} is not in the table of tools/check_layers.py'
    elif target not in reachable(module):
        allowed = ", ".join(sorted(reachable(module) - {module})) or "nothing"
        yield f'{module} may not include "{included}" (module {target}); it may include {allowed}'
    elif module in WITHOUT_STEP_TIME and STEP_TIME.fullmatch(included):
        yield f'{module} may not include "{included}": its time comes from events, not from the planner'


def check_line(root, path, line):
    include = INCLUDE.match(line)
    if include:
        yield from check_include(root, path, *include.groups())
    code = LINE_COMMENT.sub("", line)
    if module_of(path) in WITHOUT_PROTOBUF and PROTOBUF_NAME.search(code):
        yield f"a protobuf type; {module_of(path)} has none, exchange/ converts"
    if path.endswith(".h") and USING_NAMESPACE.search(code):
        yield "using namespace in a header"
    if path.startswith(("longhaul/", "tests/")) and SLEEP.search(code):
        yield "sleeping; wait on an event with a deadline, or take a Clock"


def check_file(root, path):
    """Yields (line number, message)."""
    text = (root / path).read_text(encoding="utf-8")
    module = module_of(path)
    if module is not None and module not in ARROWS:
        yield 1, f"module {module} is not in the table of tools/check_layers.py"
        return
    for number, line in enumerate(text.splitlines(), start=1):
        for message in check_line(root, path, line):
            yield number, message
    # Highway headers are included once per SIMD target and toggle a macro instead.
    if path.endswith(".h") and "#pragma once" not in text and "HWY_TARGET_TOGGLE" not in text:
        yield 1, "header without #pragma once"


def check_tree(root):
    findings = []
    for top in ("longhaul", "trainer", "apps", "tests", "bench", "examples"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix in (".h", ".cpp"):
                path = file.relative_to(root).as_posix()
                findings += [f"{path}:{number}: {message}" for number, message in check_file(root, path)]
    return findings


def self_test():
    """Maps each file of a small tree to the start of the finding it must cause; None means it is legal."""
    once = "#pragma once\n"
    tree = {
        "longhaul/base/units.h": (once, None),
        "longhaul/codec/top_k.h": (once + '#include "longhaul/base/units.h"\n', None),
        "longhaul/plan/step_time.h": (once, None),
        "longhaul/plan/deco.h": (once + '#include "longhaul/plan/step_time.h"\n', None),
        "longhaul/lab/far.h": (once + '#include "longhaul/codec/top_k.h"\n', None),
        "longhaul/sync/engine.h": (once + '// #include "longhaul/hub/journal.h"\n', None),
        "apps/longhaul/main.cpp": ('#include "longhaul/hub/journal.h"\n', None),
        "trainer/session.cpp": ("#include <torch/torch.h>\n", None),
        "longhaul/codec/kernels_inl.h": ("#if defined(A) == defined(HWY_TARGET_TOGGLE)\n", None),
        "longhaul/base/up.h": (once + '\n#include "longhaul/codec/top_k.h"\n', "3: base may not include"),
        "longhaul/codec/side.cpp": ('#include "longhaul/link/link.h"\n', "1: codec may not include"),
        "longhaul/round/out.cpp": ('#include "longhaul/telemetry/events.h"\n', "1: round may not include"),
        "longhaul/sync/model.cpp": ('#include "trainer/session.h"\n', "1: sync may not include"),
        "longhaul/sync/hub.cpp": ('#  include "longhaul/hub/journal.h"\n', "1: sync may not include"),
        "longhaul/lab/time.cpp": ('#include "longhaul/plan/step_time.h"\n', "1: lab may not include"),
        "longhaul/codec/near.cpp": ('#include "top_k.h"\n', '1: "top_k.h" is relative'),
        "longhaul/sync/wire.cpp": ('#include "proto/longhaul.pb.h"\n', "1: proto/longhaul.pb.h is of the hub"),
        "longhaul/sync/lite.cpp": ("#include <google/protobuf/message.h>\n", "1: google/protobuf/message.h is of"),
        "longhaul/sync/words.cpp": ('#include "longhaul/exchange/protocol.h"\n', "1: longhaul/exchange/protocol.h"),
        "longhaul/sync/report.cpp": ("v1::Report report;  // of the hub\n", "1: a protobuf type; sync has none"),
        "longhaul/sync/note.cpp": ("// v1::Report is the hub's\n", None),
        "longhaul/exchange/wire.cpp": ('#include "proto/longhaul.pb.h"\nv1::Report report;\n', None),
        "longhaul/hub/up.cpp": ('#include "apps/longhaul/book.h"\n', '1: "apps/longhaul/book.h" is of a program'),
        "bench/up.cpp": ('#include "apps/longhaul/book.h"\n', '1: "apps/longhaul/book.h" is of a program'),
        "tests/tools/up.cpp": ('#include "apps/longhaul/book.h"\n', '1: "apps/longhaul/book.h" is of a program'),
        "apps/longhaul/own.cpp": ('#include "apps/longhaul/book.h"\n', None),
        "longhaul/sync/door.cpp": ("#include <ATen/ATen.h>\n", "1: ATen/ATen.h is a torch header"),
        "longhaul/extra/new.cpp": ("\n", "1: module extra is not in the table"),
        "longhaul/base/open.h": (once + "using namespace std;\n", "2: using namespace"),
        "longhaul/base/twice.h": ("int f();\n", "1: header without #pragma once"),
        "tests/base/wait_test.cpp": ("std::this_thread::sleep_for(1s);\n", "1: sleeping"),
    }
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for path, (text, _) in tree.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        findings = check_tree(root)
    failures = []
    for path, (_, expected) in tree.items():
        found = [finding.removeprefix(path + ":") for finding in findings if finding.startswith(path + ":")]
        is_right = not found if expected is None else len(found) == 1 and found[0].startswith(expected)
        if not is_right:
            failures.append(f"self-test: {path}: expected {expected or 'no finding'}, found {found or 'none'}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true", help="confirm that violations are caught")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    findings = self_test() if arguments.self_test else check_tree(root)
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
