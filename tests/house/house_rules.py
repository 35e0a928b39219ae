#!/usr/bin/python3
"""The rules of the house that are not about includes (those: tests/unit/architecture). house_rules.py format|commits|walks|tables|decisions|sentences

format   every C and C++ source is as `make format` leaves it. Versions of clang-format differ: this is about Debian 12's.
walks    every file, function, class and line of a table that CONTRIBUTING.md names is there.
tables   every test of the command that the documentation names is there.
decisions  each has a number of its own, and those that are referred to are there.
sentences the documents have short ones, for readers whose English is not their first language.
commits  the last commits have subjects of at most 72 columns, and an empty line before their bodies.
"""
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "include", "tests", "bench", "examples")
SUFFIXES = (".cpp", ".hpp", ".c", ".h")
SKIPPED = 77


def output_of(*command):
    try:
        return subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError) as why:
        print(f"house_rules: skipped: {why}")
        sys.exit(SKIPPED)


def sources():
    return sorted(str(path) for folder in FOLDERS for path in (SOURCE / folder).rglob("*") if path.suffix in SUFFIXES)


def check_format():
    version = output_of("clang-format", "--version")
    if "version 14." not in version:
        print(f"house_rules: skipped: the rules are for clang-format 14, this is {version}")
        sys.exit(SKIPPED)
    answer = subprocess.run(["clang-format", "--dry-run", "-Werror", *sources()], cwd=SOURCE, capture_output=True, text=True)
    wrong = {line.split(":")[0] for line in answer.stderr.splitlines() if "[-Wclang-format-violations]" in line}
    return [f"{path} is not formatted; run: make format" for path in sorted(wrong)] or ([answer.stderr] if answer.returncode else [])


def check_commits():
    complaints = []
    for commit in output_of("git", "log", "-20", "--no-merges", "--format=%h%n%B%x00").split("\0"):
        name, *message = commit.strip("\n").split("\n")
        if message and len(message[0]) > 72:
            complaints.append(f"{name}: a subject has at most 72 columns, this one {len(message[0])}: {message[0]}")
        if len(message) > 1 and message[1]:
            complaints.append(f"{name}: an empty line parts the subject from the body")
    return complaints


def check_walks():
    text = (SOURCE / "CONTRIBUTING.md").read_text()
    complaints = []
    steps = re.findall(r"`([\w/.]+\.\w+): ([^`]+)`", text)
    for path, name in steps:
        file = SOURCE / "src" / path
        # A function with its parenthesis; of a class, and of what a table lists, the word alone.
        is_function = file.suffix in (".cpp", ".hpp") and not re.match(r"(class|struct) ", name)
        wanted = r"(?<![\w:])" + re.escape(name) + (r"\s*\(" if is_function else r"(?!\w)")
        if not file.is_file() or not re.search(wanted, file.read_text()):
            complaints.append(f"CONTRIBUTING.md: there is no {name} in src/{path}")
    for path in re.findall(r"`((?:src|docs|tests)/[\w/.-]+)`", text):
        if not (SOURCE / path).exists():
            complaints.append(f"CONTRIBUTING.md: there is no {path}")
    return complaints if steps else ["CONTRIBUTING.md names no steps"]


def check_tables():
    complaints, seen = [], 0
    for page in sorted((SOURCE / "docs").glob("*.md")):
        for name in re.findall(r"`cli_(\w+)`", page.read_text()):
            seen += 1
            if not (SOURCE / "tests/cli" / f"test_{name}.py").exists():
                complaints.append(f"docs/{page.name}: there is no test cli_{name}")
    return complaints if seen else ["docs name no test of the command"]


def check_decisions():
    """Each has a number of its own, which its heading and whoever refers to it know."""
    pages = [page for page in (SOURCE / "docs/decisions").glob("*.md") if page.name != "README.md"]
    numbers = sorted(page.name[:4] for page in pages)
    complaints = [f"docs/decisions: several have the number {number}" for number in sorted({n for n in numbers if numbers.count(n) > 1})]
    complaints += [f"docs/decisions/{page.name}: its heading has another number"
                   for page in pages if not page.read_text().startswith(f"# {int(page.name[:4])}. ")]
    for file in sorted([*(SOURCE / "docs").rglob("*.md"), *(SOURCE / "src").rglob("*.[ch]pp"), *(SOURCE / "src").rglob("*.md"), SOURCE / "CHANGELOG.md"]):
        complaints += [f"{file.relative_to(SOURCE)}: there is no decision {number}"
                       for number in re.findall(r"decisions/(\d{4})", file.read_text()) if number not in numbers]
    return complaints if pages else ["there are no decisions"]


def sentences_of(text):
    """Those of a page, without headings, tables and code; a code span or a link is at most its words. Items of a list in one line have a dot between them."""
    text = re.sub(r"^```.*?^```", "\n", text, flags=re.S | re.M)
    lines = ["" if re.match(r"\s*[|#]|    ", line) else re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "\n", line) for line in text.split("\n")]
    text = re.sub(r"`[^`]+`", "Code", "\n".join(lines))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", lambda link: link[1].capitalize(), text)
    for paragraph in re.split(r"\n\s*\n|\s·\s", text):
        yield from re.split(r"(?<=[.!?])[*)\"]*\s+(?=[*(\"]*[A-Z0-9])", " ".join(paragraph.split()))


def check_sentences():
    """At most 25 words are wanted; more than 30 are refused."""
    complaints = []
    pages = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", SOURCE / "CHANGELOG.md"]
    pages += sorted((SOURCE / "docs").glob("*.md")) + sorted((SOURCE / "docs/decisions").glob("*.md")) + sorted((SOURCE / "src").rglob("README.md"))
    for page in pages:
        for sentence in sentences_of(page.read_text()):
            if len(sentence.split()) > 30:
                complaints.append(f"{page.relative_to(SOURCE)}: {len(sentence.split())} words in one sentence: {sentence[:90]} ...")
    return complaints


CHECKS = {"format": check_format, "commits": check_commits, "walks": check_walks, "tables": check_tables, "decisions": check_decisions,
          "sentences": check_sentences}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS:
        sys.exit(__doc__)
    found = CHECKS[sys.argv[1]]()
    print("\n".join(found))
    sys.exit(1 if found else 0)
