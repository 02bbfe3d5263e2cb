#!/usr/bin/env python3
"""What the documentation claims about files, recipes and words. Needs no build.

usage: docs_test.py REPOSITORY
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


def prose_of(page):
    """The text of a page without its code."""
    return re.sub(r"`[^`\n]*`", "", FENCED.sub("", page.read_text(encoding="utf-8")))


def anchors_of(page):
    """The names that links to headings of a page have on GitHub."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links_of(page):
    for match in LINK.finditer(prose_of(page)):
        yield match.group(1) or match.group(2)


class Links(unittest.TestCase):
    def test_lead_to_files_and_headings_that_exist(self):
        checked = 0
        for page in PAGES:
            for link in links_of(page):
                if re.match(r"[a-z]+:", link):
                    continue
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                checked += 1
                with self.subTest(page=page.relative_to(ROOT), link=link):
                    self.assertTrue(target.exists(), "no such file")
                    if anchor:
                        self.assertIn(anchor, anchors_of(target))
        self.assertGreater(checked, 50, "the pattern finds no links")

    def test_every_page_can_be_reached_from_the_index(self):
        index = ROOT / "docs/index.md"
        linked = {(index.parent / link.partition("#")[0]).resolve() for link in links_of(index)}
        pages = {page for page in PAGES if page.parent == index.parent and page != index}
        self.assertEqual({page.name for page in pages - linked}, set())


def rows_of_the_code():
    """Recipe name → the text of its row."""
    text = (ROOT / "longhaul/sync/recipes.cpp").read_text(encoding="utf-8")
    rows = re.split(r"\bRecipe\{", text.split("kRecipes{", 1)[1].split("\n};\n", 1)[0])[1:]
    return {re.search(r'\.name = "([^"]+)"', row).group(1): row for row in rows}


def rows_of_the_page():
    """Recipe name → cells of its row in the table of defaults."""
    table = (ROOT / "docs/methods.md").read_text(encoding="utf-8").split("## Defaults", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): row for row in rows}


def number(text):
    top, _, bottom = text.partition("/")
    return float(top) / float(bottom or 1)


class Pages(unittest.TestCase):
    def test_begin_with_the_question_that_they_answer(self):
        for page in PAGES:
            if page.parent != ROOT / "docs":
                continue
            with self.subTest(page=page.name):
                head = page.read_text(encoding="utf-8")[:200]
                self.assertRegex(head, r"\A# [^\n]+\n\n\*[^*]+\?\*\n", "expected a heading, an empty line, *the question?*")

    def test_troubleshooting_quotes_messages_that_the_code_has(self):
        sources = [*ROOT.glob("longhaul/**/*.cpp"), *ROOT.glob("apps/**/*.cpp"), *ROOT.glob("trainer/**/*.cpp")]
        code = "".join(source.read_text(encoding="utf-8") for source in sources)
        code = re.sub(r'"\s+"', "", code)  # literals that the compiler joins
        rows = (ROOT / "docs/faq.md").read_text(encoding="utf-8").split("## Troubleshooting", 1)[1].splitlines()
        quotes = [quote for row in rows if row.startswith("| `") for quote in re.findall(r"`([^`]+)`", row.split("|")[1])]
        self.assertGreater(len(quotes), 5, "the pattern finds no messages")
        for quote in quotes:
            for piece in quote.split("…"):
                with self.subTest(message=quote):
                    self.assertIn(piece.strip(), code)


class Readme(unittest.TestCase):
    TEXT = (ROOT / "README.md").read_text(encoding="utf-8")

    def test_its_cpp_is_that_of_the_example_which_is_built(self):
        example = iter((ROOT / "examples/compress_update.cpp").read_text(encoding="utf-8").splitlines())
        block = re.search(r"^```cpp\n(.*?)^```", self.TEXT, re.MULTILINE | re.DOTALL).group(1)
        built = [line.strip() for line in example]
        for line in filter(None, map(str.strip, block.splitlines())):
            self.assertIn(line, built, "not in the example, or not in this order")
            built = built[built.index(line) + 1:]

    def test_its_cmake_is_that_of_a_project_which_is_built(self):
        built = (ROOT / "examples/outside/CMakeLists.txt").read_text(encoding="utf-8")
        block = re.search(r"^```cmake\n(.*?)^```", self.TEXT, re.MULTILINE | re.DOTALL).group(1)
        for words in block.splitlines():
            self.assertIn(words.replace("my_program", "plan_and_compress"), built)

    def test_counts_the_recipes(self):
        self.assertEqual(int(re.search(r"(\d+) methods and baselines", self.TEXT).group(1)), len(rows_of_the_code()))


class Methods(unittest.TestCase):
    def test_every_recipe_has_a_section_and_a_row(self):
        names = set(rows_of_the_code())
        self.assertGreater(len(names), 20, "the pattern finds no recipes")
        page = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
        self.assertEqual(sorted(re.findall(r"^### `([^`]+)`$", page, re.MULTILINE)), sorted(names))
        self.assertEqual(sorted(rows_of_the_page()), sorted(names))

    def test_commands_run_recipes_that_exist(self):
        page = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
        for recipes in re.findall(r"--recipe ([a-z0-9][^\s`]*)", page):
            for recipe in recipes.split(","):
                self.assertIn(recipe.partition(":")[0], rows_of_the_code())

    def test_defaults_are_those_of_the_code(self):
        page = rows_of_the_page()
        for name, row in rows_of_the_code().items():
            plan = re.search(r"\.plan = \{(.*?)\}", row, re.DOTALL)
            values = dict(re.findall(r"\.(keep_ratio|delay_steps|period_steps|merge) = ([^,}]+)", plan.group(1) if plan else ""))
            with self.subTest(recipe=name):
                for cell, key, default in ((2, "keep_ratio", "1"), (3, "delay_steps", "0"), (4, "period_steps", "1")):
                    shown = page[name][cell]
                    if shown.startswith(("chosen", "drawn")):
                        self.assertIn(".planner =", row)
                    else:
                        self.assertAlmostEqual(number(shown), number(values.get(key, default).replace(" ", "")), msg=key)
                if not page[name][5].startswith("chosen"):
                    rule = values.get("merge", "Merge::kOptimizer").removeprefix("Merge::k")
                    self.assertEqual(page[name][5], re.sub(r"(?<!^)([A-Z])", r"-\1", rule).lower())


if __name__ == "__main__":
    unittest.main()
