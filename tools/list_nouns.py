#!/usr/bin/env python3
"""The table of nouns in docs/architecture.md: every type that a header declares, with its one meaning.

The meaning is the first sentence of the comment above the type, or else the one that the header begins with. Types that
are private to a class or to a .cpp file are left out. --check (default) fails if the page differs from the code; --fix
writes the table anew.
"""

import argparse
import collections
import pathlib
import re
import sys

from count_words import FOLDERS, parse

PAGE = pathlib.Path("docs/architecture.md")
BEGIN, END = "<!-- nouns: tools/list_nouns.py --fix -->", "<!-- end of nouns -->"
SENTENCE = re.compile(r"(.+?[.:])(?:\s|$)")


def comment_above(lines, line):
    """The comment that ends in the line before `line` (from 1), template heads and attributes skipped."""
    last = line - 2
    while last >= 0 and lines[last].startswith(("template", "[[")):
        last -= 1
    first = last + 1
    while first > 0 and lines[first - 1].startswith("//"):
        first -= 1
    return " ".join(text.removeprefix("//").strip() for text in lines[first:last + 1])


def first_sentence(comment):
    match = SENTENCE.match(comment)
    return (match.group(1) if match else comment).rstrip(".:")


def types_of(block):
    for head, nested in block.inside:
        if nested is None:
            continue
        if match := nested.type_match():
            yield match.group(2), nested.first_line
        elif re.match(r"(inline\s+)?namespace\b", head):
            yield from types_of(nested)


def nouns(root):
    """(module, name, header, meaning) of every type; two types of one name are two nouns."""
    for folder in FOLDERS:
        for path in sorted(root.glob(f"{folder}/**/*.h")):
            text = path.read_text(encoding="utf-8")
            lines = text.splitlines()
            of_file = comment_above(lines, next((i + 2 for i, one in enumerate(lines) if not one.startswith("//")), 1) - 1)
            place = path.relative_to(root)
            module = place.parts[1] if folder == "longhaul" else folder
            for name, line in types_of(parse(text)):
                yield module, name, first_sentence(comment_above(lines, line) or of_file)


def table(root):
    by_module = collections.defaultdict(list)
    for module, name, meaning in nouns(root):
        by_module[module].append((name, meaning.replace("|", "\\|")))
    rows = ["| module | noun | meaning |", "|---|---|---|"]
    for module in sorted(by_module):
        rows += [f"| {module} | `{name}` | {meaning} |" for name, meaning in sorted(by_module[module])]
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if the page differs from the code (default)")
    parser.add_argument("--fix", action="store_true", help="write the table anew")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    page = (root / PAGE).read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        print(f"{PAGE}: expected the lines {BEGIN} and {END}", file=sys.stderr)
        return 1
    new = f"\n\n{table(root)}\n\n"
    if arguments.fix:
        (root / PAGE).write_text(before + begin + new + end + after, encoding="utf-8")
    elif old != new:
        print(f"{PAGE}: the table of nouns differs from the code; tools/list_nouns.py --fix", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
