"""The reviewed table of MPI's functions, mpi_functions.txt, which also says what its lines mean."""
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

# In words of the interception as a whole: what `frontend=` makes of a call.
TREATMENTS = {None: "passed", "always": "owned", "protected": "owned", "pointer": "owned", "requests": "translated", "hook": "hooked"}


@dataclass
class Argument:
    kind: str
    small: str  # C type in MPI_X
    large: str  # C type in MPI_X_c
    name: str
    array: str  # "[]" or "[][3]", else empty

    def declare(self, large):
        return f"{self.large if large else self.small} {self.name}{self.array}".strip()


@dataclass
class Function:
    name: str
    links: dict  # name of the link: how it takes the call, as a list of words
    has_large: bool
    removed: bool  # from the standard
    returns: str
    arguments: list

    @property
    def short(self):
        return self.name.removeprefix("MPI_")

    @property
    def treatment(self):
        return TREATMENTS[self.links["frontend"][0] if "frontend" in self.links else None]

    @property
    def has_doors(self):
        return self.links.get("door") != ["never"]

    def declare(self, large):
        return ", ".join(a.declare(large) for a in self.arguments)

    def names(self):
        return ", ".join(a.name for a in self.arguments)


def parse_argument(text):
    kind, rest = text.split(" ", 1)
    if rest == "...":
        return Argument(kind, "...", "...", "", "")
    types, name = rest.rsplit(" ", 1)
    small, _, large = types.partition("|")
    bracket = name.find("[")
    array = name[bracket:] if bracket >= 0 else ""
    return Argument(kind, small, large or small, name[:bracket] if array else name, array)


def parse_links(text):
    return {link: how.split(":") for link, _, how in (word.partition("=") for word in text.split())}


def read_table(path):
    functions = {}
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"(\w+) \[((?:\w+=[\w:]+ ?)*)\] (large|removed|-) (\w+) \((.*)\)", line)
        if not match:
            sys.exit(f"{path}:{number}: not a table line: {line}")
        name, links, large, returns, text = match.groups()
        arguments = [parse_argument(a) for a in text.split("; ")] if text else []
        function = Function(name, parse_links(links), large == "large", large == "removed", returns, arguments)
        if function.links.get("frontend", ["hook"])[0] not in TREATMENTS:
            sys.exit(f"{path}:{number}: frontend={':'.join(function.links['frontend'])} is not known")
        functions[name] = function
    return functions


def preprocess(compiler):
    """mpi.h as this compiler sees it, without comments and directives."""
    command = compiler + ["-E", "-P", "-x", "c", "-"]
    run = subprocess.run(command, input="#include <mpi.h>\n", text=True, capture_output=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)} cannot preprocess <mpi.h>: {run.stderr.strip()}")
    return run.stdout


def declared_functions(header):
    """Names of the standard (MPI_X; extensions are MPIX_X) that have a profiling twin PMPI_X in the header."""
    return {match[1:] for match in re.findall(r"\bPMPI_\w+(?=\s*\()", header)}


def declared_objects(header):
    """Data that constants of this mpi.h take the address of, or are: `extern struct x ompi_mpi_comm_world;`"""
    objects = []
    for match in re.finditer(r"\bextern\s+([^;(){}]*?)\b(\w+)\s*(\[\d+\])?\s*;", header):
        if re.match(r"(ompi_|MPI_|MPIR_|mpi_)", match.group(2)):
            objects.append(match.group(2))
    return sorted(set(objects))


def twins_of(function, declared):
    """(MPI_X, is it the large twin) for each of the two that this MPI has."""
    names = [(function.name, False)] + ([(function.name + "_c", True)] if function.has_large else [])
    return [(name, large) for name, large in names if name in declared]


def ours(functions, declared):
    """What the front end serves."""
    return [f for f in functions.values() if f.treatment != "passed" and twins_of(f, declared)]


def with_all_calls(functions, declared):
    """(MPI_X, is it the large twin, function) for each call that has doors anywhere."""
    return [(name, large, f) for f in functions.values() if f.has_doors
            for name, large in ([(f.name, False)] if f.removed else twins_of(f, declared))]


def hooked(functions):
    return {f.name for f in functions.values() if f.treatment == "hooked"}


def all_names(functions):
    for function in functions.values():
        yield function.name
        if function.has_large:
            yield function.name + "_c"
