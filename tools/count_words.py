#!/usr/bin/env python3
"""Counts the concepts of the code and the hard sentences of its text.

Prints one table: type definitions, suffixes of input structs, the longest function, the largest class, sentences over
25 words, sentences that begin with What, Who or Of. Reads C++ by its brackets, without a compiler: headers behind
macros may be missed. --list prints each finding with its place, --self-test counts a small tree and compares.
"""

import argparse
import collections
import json
import pathlib
import re
import sys
import tempfile

FOLDERS = ("longhaul", "trainer", "apps")
SUFFIXES = ("Setup", "Options", "Config", "Settings", "Arguments", "Args", "Limits", "Request", "Params", "Parameters",
            "Spec", "Input", "Inputs", "Context")
LONG_SENTENCE_WORDS = 25
HEAVY_STARTS = ("What", "Who", "Of")

# A raw string, a string, a character (not the ' of 1'000), a line comment, a block comment.
TOKEN = re.compile(r'R"([^()\\\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/',
                   re.DOTALL)
# Macros of base/mutex.h look like function calls: class CAPABILITY("mutex") Mutex {.
ANNOTATION = re.compile(r"\b[A-Z][A-Z_]{3,}\s*\([^()]*\)|\[\[[^\]]*\]\]|\balignas\s*\([^()]*\)")
TYPE_HEAD = re.compile(r"\b(struct|class|enum)(?:\s+(?:class|struct))?(?:\s+([A-Za-z_][\w:]*)(?:<.*>)?)?\s*(?:final\s*)?(?::(?!:).*)?$",
                       re.DOTALL)
NOT_A_MEMBER = re.compile(r"(using|friend|typedef|static_assert|template\s*<[^{};]*>\s*friend)\b|$")


def blanked(text):
    """C++ without comments, text and preprocessor lines, every other character at its place."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    text = TOKEN.sub(blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.MULTILINE)


class Block:
    """Text between two braces: its head, its lines, and the statements directly in it."""

    def __init__(self, head, first_line):
        self.head, self.first_line, self.last_line = head, first_line, first_line
        self.inside = []  # heads of statements and blocks, in order: (text, Block or None)

    def type_match(self):
        head = ANNOTATION.sub(" ", self.head).strip()
        head = re.sub(r"^template\s*<.*?>\s*(?=(struct|class)\b)", "", head, flags=re.DOTALL)
        return None if re.search(r"[()=]", head.partition(":")[0]) else TYPE_HEAD.match(head)

    def is_function(self):
        head = ANNOTATION.sub(" ", self.head)
        return "(" in head and not self.type_match() and not re.match(r"\s*(namespace|extern)\b", head)


def parse(text):
    """The file as a tree of blocks."""
    text = blanked(text)
    root = Block("", 1)
    stack, head, line, head_line, parentheses = [root], "", 1, None, 0
    for character in text:
        if head_line is None and not character.isspace():
            head_line = line
        if character == "\n":
            line += 1
        if character in "()":
            parentheses += 1 if character == "(" else -1
        if parentheses == 0 and character == "{":
            block = Block(head.strip(), head_line)
            stack[-1].inside.append((block.head, block))
            stack.append(block)
            head, head_line = "", None
        elif parentheses == 0 and character == "}" and len(stack) > 1:
            if head.strip():
                stack[-1].inside.append((head.strip(), None))
            stack.pop().last_line = line
            head, head_line = "", None
        elif parentheses == 0 and character == ";":
            stack[-1].inside.append((head.strip(), None))
            head, head_line = "", None
        elif parentheses == 0 and character == ":" and re.fullmatch(r"\s*(public|private|protected)", head):
            head, head_line = "", None
        else:
            head += character
    return root


def members_of(block):
    """Member functions and data members of a class, without deleted ones and without nested types."""
    functions = data = 0
    initialiser = False
    for head, nested in block.inside:
        if initialiser and nested is None and not head:
            initialiser = False  # the ; after `int x{1}`
            continue
        initialiser = False
        if nested is not None and nested.type_match():
            initialiser = True  # the ; after a nested type
            continue
        plain = ANNOTATION.sub(" ", head).strip()
        if NOT_A_MEMBER.match(plain) or re.search(r"=\s*delete$", plain) or re.match(r"(struct|class|enum)\s+[\w:\s]+$", plain):
            continue
        previous = None
        while previous != plain:  # std::function<void(int)> is no function
            previous, plain = plain, re.sub(r"<[^<>]*>", "", plain)
        if "(" in plain.partition(" = ")[0]:
            functions += 1
        else:
            data += 1
            initialiser = nested is not None
    return functions, data


def sentences_of(text):
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\b(e\.g|i\.e|vs|cf|etc|approx)\.", r"\1", text)
    for sentence in re.split(r"(?<=[.!?])[*_\")]*\s+|…\s+(?=[A-Z])", text):
        if re.search(r"[A-Za-z]", sentence):
            yield " ".join(sentence.split()).strip("*_\"( ")


def words_in(sentence):
    return len([word for word in sentence.split() if re.search(r"\w", word)])


def paragraphs_of_page(text):
    """(line, text) of each paragraph, list item and table cell, without code."""
    text = re.sub(r"^```.*?^```", lambda match: "\n" * match.group().count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->|<[^>\n]+>", lambda match: "\n" * match.group().count("\n"), text, flags=re.DOTALL)
    paragraph, start = [], 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        bare = line.strip()
        begins = re.match(r"(#+|[-*+]|\d+\.|>)\s|\|", bare)
        if paragraph and (not bare or begins):
            yield start, " ".join(paragraph)
            paragraph = []
        if bare.startswith("|"):
            yield from ((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", bare))
        elif bare.startswith("#"):
            yield number, bare.lstrip("# ")
        elif bare:
            start = start if paragraph else number
            paragraph.append(re.sub(r"^([-*+]|\d+\.|>)\s+", "", bare))


def paragraphs_of_code(text):
    """(line, text) of each comment; lines of // that follow each other are one."""
    comment, start, last = [], 0, -1
    for match in TOKEN.finditer(text):
        body = match.group()
        if not body.startswith(("//", "/*")):
            continue
        line = text.count("\n", 0, match.start()) + 1
        alone = not text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
        words = body.lstrip("/").strip() if body.startswith("//") else re.sub(r"^[ *]+", "", body[2:-2], flags=re.MULTILINE)
        if comment and not (alone and line == last + 1 and words):
            yield start, " ".join(comment)
            comment = []
        if not words or words.startswith(("NOLINT", "clang-format")):
            continue
        start = start if comment else line
        comment.append(words)
        last = line + body.count("\n")
    if comment:
        yield start, " ".join(comment)


class Counts:
    def __init__(self):
        self.lines, self.types = 0, collections.Counter()
        self.suffixes = collections.Counter()
        self.function, self.largest = (0, ""), (0, 0, 0, "")
        self.long, self.heavy = collections.Counter(), collections.Counter()
        self.findings = []

    def read_code(self, path, text):
        self.lines += sum(1 for line in text.splitlines() if not re.fullmatch(r"\s*(//.*)?", line))
        self.walk(path, parse(text))

    def walk(self, path, block):
        for _, nested in block.inside:
            if nested is None:
                continue
            place = f"{path}:{nested.first_line}"
            if match := nested.type_match():
                self.read_type(place, match.group(1), match.group(2) or "", nested)
                self.walk(path, nested)
            elif nested.is_function():
                name = re.search(r"([~\w:]+)\s*\(", ANNOTATION.sub(" ", nested.head))
                length = nested.last_line - nested.first_line + 1
                self.function = max(self.function, (length, f"{name.group(1) if name else '?'} ({place})"))
                self.walk_for_types(path, nested)
            else:
                self.walk(path, nested)

    def walk_for_types(self, path, block):
        """Types that are local to a function count, its own blocks are no functions."""
        for _, nested in block.inside:
            if nested is None:
                continue
            if match := nested.type_match():
                self.read_type(f"{path}:{nested.first_line}", match.group(1), match.group(2) or "", nested)
                self.walk(path, nested)
            else:
                self.walk_for_types(path, nested)

    def read_type(self, place, kind, name, block):
        self.types[kind] += 1
        if kind == "enum":
            return
        for suffix in SUFFIXES:
            if name.endswith(suffix):
                self.suffixes[suffix] += 1
                self.findings.append(f"{place}: input struct {name}")
                break
        functions, data = members_of(block)
        self.largest = max(self.largest, (functions + data, functions, data, f"{name} ({place})"))

    def read_paragraphs(self, kind, path, paragraphs):
        for line, paragraph in paragraphs:
            for sentence in sentences_of(paragraph):
                length = words_in(sentence)
                if length > LONG_SENTENCE_WORDS:
                    self.long[kind] += 1
                    self.findings.append(f"{path}:{line}: {length} words: {sentence}")
                if sentence.split(" ", 1)[0] in HEAVY_STARTS and not sentence.endswith("?"):
                    self.heavy[kind] += 1
                    self.findings.append(f"{path}:{line}: begins with {sentence.split(' ', 1)[0]}: {sentence}")

    def summary(self):
        types = sum(self.types.values())
        return {
            "lines": self.lines,
            "types": types,
            "structs": self.types["struct"],
            "classes": self.types["class"],
            "enums": self.types["enum"],
            "types_per_1000_lines": round(1000 * types / max(self.lines, 1), 1),
            "input_structs": sum(self.suffixes.values()),
            "input_suffixes": dict(self.suffixes.most_common()),
            "longest_function_lines": self.function[0],
            "longest_function": self.function[1],
            "largest_class_members": self.largest[0],
            "largest_class_functions": self.largest[1],
            "largest_class_data": self.largest[2],
            "largest_class": self.largest[3],
            "long_sentences_in_docs": self.long["docs"],
            "long_sentences_in_comments": self.long["comments"],
            "heavy_starts_in_docs": self.heavy["docs"],
            "heavy_starts_in_comments": self.heavy["comments"],
        }


def count(root):
    counts = Counts()
    for folder in FOLDERS:
        for path in sorted([*root.glob(f"{folder}/**/*.h"), *root.glob(f"{folder}/**/*.cpp")]):
            name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            counts.read_code(name, text)
            counts.read_paragraphs("comments", name, paragraphs_of_code(text))
    for path in sorted([*root.glob("docs/**/*.md"), *root.glob("README.md")]):
        counts.read_paragraphs("docs", path.relative_to(root).as_posix(),
                               paragraphs_of_page(path.read_text(encoding="utf-8")))
    return counts


def table(summary):
    suffixes = ", ".join(f"{name} {number}" for name, number in summary["input_suffixes"].items()) or "none"
    rows = [
        ("lines of code", summary["lines"]),
        ("type definitions", f"{summary['types']}  ({summary['structs']} struct, {summary['classes']} class, {summary['enums']} enum)"),
        ("  per 1,000 lines", summary["types_per_1000_lines"]),
        ("input structs", f"{summary['input_structs']}  ({suffixes})"),
        ("longest function", f"{summary['longest_function_lines']} lines  {summary['longest_function']}"),
        ("largest class", f"{summary['largest_class_members']} members  ({summary['largest_class_functions']} functions, "
                          f"{summary['largest_class_data']} data)  {summary['largest_class']}"),
        (f"sentences over {LONG_SENTENCE_WORDS} words", f"{summary['long_sentences_in_docs']} in docs, "
                                                        f"{summary['long_sentences_in_comments']} in comments"),
        ("begin with " + "/".join(HEAVY_STARTS), f"{summary['heavy_starts_in_docs']} in docs, "
                                                 f"{summary['heavy_starts_in_comments']} in comments"),
    ]
    return "\n".join(f"{name:27} {value}" for name, value in rows)


def self_test():
    tree = {
        "longhaul/a/a.h": """// What a box holds. It is small.
#pragma once
struct Forward;
class Other;
enum class Kind : std::uint8_t { kOne, kTwo };  // Of two kinds.
template <class T>
struct BoxOptions {
  T value{};
  std::function<void(int)> call;
  struct Inner { int x = f(1); };
};
class CAPABILITY("mutex") Box final : public Base<int> {
 public:
  explicit Box(int size) : size_{size} {}
  Box(const Box&) = delete;
  [[nodiscard]] int size() const { return size_; }
  void grow() REQUIRES(mutex_);
  friend class Other;
  using Name = int;

 private:
  enum { kSmall = 1 };
  int size_ GUARDED_BY(mutex_) = 0;
  std::map<int, Kind> kinds_{};
};
""",
        "longhaul/a/a.cpp": """#define HUGE struct Hidden {
const char* kText = "struct Text { int x; }";  // Short.
Box make(const BoxOptions<int>& options = {}) {
  struct Local { int x; };
  // """ + "word " * 26 + """.
  if (options.value) {
    return Box{1'000};
  }
  return Box({.a = 1});
}
struct Local local_of(int x) { return {x}; }
""",
        "docs/page.md": "# Who reads this\n\n*What is it?*\n\n" + "word " * 13 + "\n" + "word " * 13 + ".\n\n```\nWhat code\n```\n"
                        "| Of old | " + "cell " * 20 + "|\n- " + "item " * 20 + "\n- What next.\n",
        "README.md": "`" + "code " * 40 + "` is one word.\n",
        "tests/ignored.cpp": "struct Ignored {};\n",
    }
    expected = {
        "lines": 33, "types": 6, "structs": 3, "classes": 1, "enums": 2, "input_structs": 1, "input_suffixes": {"Options": 1},
        "longest_function_lines": 8, "longest_function": "make (longhaul/a/a.cpp:3)", "largest_class_members": 5,
        "largest_class_functions": 3, "largest_class_data": 2, "largest_class": "Box (longhaul/a/a.h:12)",
        "long_sentences_in_docs": 1, "long_sentences_in_comments": 1, "heavy_starts_in_docs": 3, "heavy_starts_in_comments": 2,
    }
    with tempfile.TemporaryDirectory() as directory:
        for path, text in tree.items():
            file = pathlib.Path(directory) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        found = count(pathlib.Path(directory)).summary()
    return [f"self-test: {key}: expected {value}, found {found[key]}" for key, value in expected.items() if found[key] != value]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--list", action="store_true", help="print each finding with its place first")
    parser.add_argument("--self-test", action="store_true", help="confirm the counts of a small tree")
    arguments = parser.parse_args()
    if arguments.self_test:
        failures = self_test()
        print("\n".join(failures), end="\n" if failures else "", file=sys.stderr)
        return 1 if failures else 0
    counts = count(arguments.root)
    if not counts.lines:
        sys.exit(f"count_words: no C++ below {arguments.root}")
    if arguments.list:
        print("\n".join(counts.findings))
    print(json.dumps(counts.summary(), indent=2) if arguments.json else table(counts.summary()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
