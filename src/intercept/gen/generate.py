#!/usr/bin/env python3
"""Writes the entries of one MPI's library: the reviewed table intersected with what its mpi.h declares.

usage: generate.py --table mpi_functions.txt --name openmpi4 --out DIR -- mpicc [flags]

Into DIR go
  real_mpi.h   struct RealMpi: one pointer per function of the standard that this mpi.h declares
  real_mpi.cpp where the pointers are filled
  owned_mpi.h  what the front end implements: hf_X for every owned, translated and hooked MPI_X
  entries.cpp  the exported MPI_X and PMPI_X, and their _c twins
"""
import argparse
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

# Owned, but there is no protected file yet that could be asked for.
ALWAYS_OURS = {"MPI_File_open", "MPI_File_delete"}

# Calls on the shared pointer, and those that change what it means or how it is reported: ours for every file whose shared
# pointer is ours, protected or not.
ABOUT_SHARED_POINTER = {"MPI_File_" + x for x in ("set_view", "close", "get_info", "get_amode", "set_atomicity", "get_position_shared",
                                                  "seek_shared")}
# Every other call on such a file is the MPI's. This is what the front end is told before: see owned_mpi.h.
BEFORE_NATIVE = {
    "HF_ACCESS": ("seek",),
    "HF_ACCESS_ALL": ("set_size", "preallocate"),
    "HF_POSITION": ("get_position", "get_byte_offset"),
    "HF_SIZE": ("get_size",),
    "HF_MANAGE_ALL": ("sync",),
    "": ("get_atomicity", "get_group", "get_type_extent", "get_view", "set_info"),
}


@dataclass
class Argument:
    kind: str
    small: str  # C type in MPI_X
    large: str  # C type in MPI_X_c
    name: str
    array: str  # "[]" or "[][3]", else empty

    def declare(self, large):
        return f"{self.large if large else self.small} {self.name}{self.array}"


@dataclass
class Function:
    name: str
    treatment: str
    has_large: bool
    returns: str
    arguments: list

    @property
    def short(self):
        return self.name.removeprefix("MPI_")


def parse_argument(text):
    kind, rest = text.split(" ", 1)
    if rest == "...":
        return Argument(kind, "...", "...", "", "")
    types, name = rest.rsplit(" ", 1)
    small, _, large = types.partition("|")
    bracket = name.find("[")
    array = name[bracket:] if bracket >= 0 else ""
    return Argument(kind, small, large or small, name[:bracket] if array else name, array)


def read_table(path):
    functions = {}
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"(\w+) (owned|translated|hooked|passed) (large|-) (\w+) \((.*)\)", line)
        if not match:
            sys.exit(f"{path}:{number}: not a table line: {line}")
        name, treatment, large, returns, text = match.groups()
        arguments = [parse_argument(a) for a in text.split("; ")] if text not in ("", "REMOVED") else []
        functions[name] = Function(name, treatment, large == "large", returns, arguments)
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
    return [f for f in functions.values() if f.treatment != "passed" and twins_of(f, declared)]


def about_shared_pointer(function):
    return function.name in ABOUT_SHARED_POINTER or re.search("_(shared|ordered)", function.name) is not None


def before_native(function):
    """What hf_before_native() is told of a call; empty where nobody asks."""
    if function.treatment != "owned" or function.name in ALWAYS_OURS or about_shared_pointer(function):
        return ""
    short = function.name.removeprefix("MPI_File_")
    for kind, names in BEFORE_NATIVE.items():
        if short in names:
            return kind
    if not re.match("i?(read|write)", short):
        sys.exit(f"{function.name}: BEFORE_NATIVE does not say what it is")
    if short.endswith("_end"):
        return ""
    return "HF_ACCESS_ALL" if re.fullmatch("(read|write)(_at)?_all(_begin)?", short) else "HF_ACCESS"


def hooked(functions):
    return {f.name for f in functions.values() if f.treatment == "hooked"}


def all_names(functions):
    for function in functions.values():
        yield function.name
        if function.has_large:
            yield function.name + "_c"


def banner(name):
    return f"// Generated by src/intercept/gen/generate.py from mpi_functions.txt and the mpi.h of {name}. Do not edit.\n"


def real_mpi_h(name, functions, declared, objects):
    known = sorted(all_names(functions))
    there = [n.removeprefix("MPI_") for n in known if n in declared]
    missing = [n.removeprefix("MPI_") for n in known if n not in declared]
    entries = sorted(n.removeprefix("MPI_") for f in ours(functions, declared) for n, _ in twins_of(f, declared))
    out = [banner(name), "#pragma once", "#define OMPI_SKIP_MPICXX 1", "#define MPICH_SKIP_MPICXX 1", "#include <mpi.h>", "",
           "#include <type_traits>", "",
           "#pragma GCC diagnostic push", '#pragma GCC diagnostic ignored "-Wdeprecated-declarations"',
           "// The MPI underneath: filled by load_real_mpi() at the first intercepted call, because the library is also",
           "// preloaded into processes without MPI and into interpreters that load their MPI late.",
           "struct RealMpi {"]
    out += [f"  decltype(&PMPI_{n}) {n} = nullptr;" for n in there]
    out += [f"  static constexpr bool has_{n} = true;" for n in there]
    out += [f"  static constexpr bool has_{n} = false;" for n in missing]
    out += ["};", "extern RealMpi real;", "",
            "// The next MPI_X behind our entry: another preloaded tool's, or MPI's own.", "struct NextMpi {"]
    out += [f"  decltype(&MPI_{n}) {n} = nullptr;" for n in entries]
    out += ["  // real.X of a hooked function is the next MPI_X, so that every tool sees MPI start and end; this is MPI's own."]
    out += [f"  decltype(&PMPI_{n}) P{n} = nullptr;" for n in entries if "MPI_" + n in hooked(functions)]
    out += ["};", "extern NextMpi next_mpi;", "#pragma GCC diagnostic pop", ""]
    out += [f"#define HF_HAS_{n} {int('MPI_' + n in declared)}" for n in (k.removeprefix("MPI_") for k in known)]
    out += ["", f'#define HF_MPI_NAME "{name}"', ""]
    if objects:
        out += ["// Constants of this MPI are addresses of its data. A reference would make the library depend on libmpi (or,",
                "// weak, stay null for ever where MPI is loaded late): so they go through pointers as well. They hold from the",
                "// first intercepted call on; never use one to initialise a static variable.",
                "namespace holdfast::intercept {", "struct MpiObjects {"]
        out += [f"  void* {o}_at = nullptr;" for o in objects]
        out += ["};", "extern MpiObjects mpi_objects;"]
        out += [f"using {o}_type = std::remove_reference_t<decltype({o})>;" for o in objects]
        out += ["}  // namespace holdfast::intercept"]
        out += [f"#define {o} (*static_cast<::holdfast::intercept::{o}_type*>(::holdfast::intercept::mpi_objects.{o}_at))"
                for o in objects]
    return "\n".join(out) + "\n"


def real_mpi_cpp(name, functions, declared, objects):
    there = [n for n in sorted(all_names(functions)) if n in declared]
    entries = sorted(n for f in ours(functions, declared) for n, _ in twins_of(f, declared))
    out = [banner(name), '#include "real_mpi.h"', "", '#include "intercept/mpi/real.hpp"', "",
           "RealMpi real;", "NextMpi next_mpi;", "", "namespace holdfast::intercept {"]
    if objects:
        out += ["MpiObjects mpi_objects;"]
    out += ["", "const Slot real_slots[] = {"]
    out += [f'    {{"{n if n in hooked(functions) else "P" + n}", &real.{n.removeprefix("MPI_")}}},' for n in there]
    out += ["    {nullptr, nullptr}};", "const Slot next_slots[] = {"]
    out += [f'    {{"{n}", &next_mpi.{n.removeprefix("MPI_")}}},' for n in entries]
    out += [f'    {{"P{n}", &next_mpi.P{n.removeprefix("MPI_")}}},' for n in entries if n in hooked(functions)]
    out += ["    {nullptr, nullptr}};", "const Slot object_slots[] = {"]
    out += [f'    {{"{o}", &mpi_objects.{o}_at}},' for o in objects]
    out += ["    {nullptr, nullptr}};", "}  // namespace holdfast::intercept"]
    return "\n".join(out) + "\n"


def owned_mpi_h(name, functions, declared):
    out = [banner(name), "#pragma once", '#include "real_mpi.h"', "",
           "// Does this handle belong to a protected file? One relaxed load while no protected file is open.",
           "bool hf_is_protected(MPI_File fh);",
           "// Is its shared pointer ours? True for protected files, and for most others.",
           "bool hf_is_ours(MPI_File fh);",
           "// Before MPI's own call on a file that is not protected. An error goes to the program in the call's place.",
           "enum {",
           "  HF_ACCESS,      // independent access with an explicit offset or an individual pointer",
           "  HF_ACCESS_ALL,  // the same by all ranks together, or a change of the file's size",
           "  HF_POSITION,    // about an individual pointer or an offset, not the data",
           "  HF_SIZE,        // asks for the file's size",
           "  HF_MANAGE_ALL,  // by all ranks together, not about offsets",
           "};",
           "int hf_before_native(MPI_File fh, int kind);",
           "// Is any request of ours alive? One relaxed load.", "bool hf_requests_outstanding();", "",
           "// Counts are MPI_Count where the standard has a large-count twin; both twins arrive here."]
    for function in ours(functions, declared):
        arguments = ", ".join(a.declare(True) for a in function.arguments)
        out.append(f"int hf_{function.short}({arguments});")
    return "\n".join(out) + "\n"


def condition(function):
    """When the call is not ours, as C++; empty where it is always ours."""
    if function.treatment == "translated":
        return "!hf_requests_outstanding()"
    if function.treatment == "hooked":
        return "in_hook()"
    if function.name in ALWAYS_OURS:
        return ""
    for argument in function.arguments:
        if argument.kind == "FILE":
            ask = "hf_is_ours" if about_shared_pointer(function) else "hf_is_protected"
            return f"!{ask}({'*' if argument.small.endswith('*') else ''}{argument.name})"
    sys.exit(f"{function.name} is owned but takes no MPI_File: list it in ALWAYS_OURS")


def narrow_outputs(function, large):
    """Results that MPI_X takes as a narrower type than the hf_ function: (declarations, arguments, stores)."""
    before, passed, after = [], [], []
    for a in function.arguments:
        if not large and a.small != a.large and a.small.endswith("*"):
            wide = a.large.rstrip("*").strip()
            before.append(f"  {wide} wide_{a.name} = 0;")
            passed.append(f"&wide_{a.name}")
            after.append(f"  if (code == MPI_SUCCESS) *{a.name} = static_cast<{a.small[:-1]}>(wide_{a.name});")
        else:
            passed.append(a.name)
    return before, passed, after


# What the profile counts calls on files as; see profile/counters.hpp.
OBSERVED = {"sync": "syncs", "set_size": "resizes", "preallocate": "resizes", "get_size": "stats", "seek": "seeks", "seek_shared": "seeks"}
ACCESS = re.compile("(i?)(read|write)(_at)?(_all|_shared|_ordered)?(_begin|_end)?")


def observer(function, large):
    """The observer and its arguments, and the type of what it is handed; empty where the profile does not look."""
    if function.treatment != "owned":
        return ""
    short = function.name.removeprefix("MPI_File_")
    names = {a.name for a in function.arguments}
    access = ACCESS.fullmatch(short)
    if not access:
        special = {"open": "observe_open(filename, fh, ", "close": "observe_close(fh, ", "delete": "observe_delete(filename, ",
                   "set_view": "observe_view(fh, disp, etype, filetype, "}
        return special.get(short, f"observe_call(fh, Counter::{OBSERVED.get(short, 'others')}, ")
    nonblocking, direction, at, place, part = access.groups()
    write = "true" if direction == "write" else "false"
    if part == "_end":
        return f"observe_end_of_split({write}, fh, "
    kind = f"{direction}s_" + {"_all": "collective", "_shared": "shared", "_ordered": "ordered"}.get(place, "independent")
    manner = f"{direction}s_nonblocking" if nonblocking else f"{direction}s_split" if part else kind
    at_pointer = "true" if not at and place in (None, "_all") else "false"
    status = "status" if "status" in names else "nullptr"
    return (f"observe_access({{{write}, Counter::{kind}, Counter::{manner}, fh, {'offset' if at else '-1'}, {at_pointer}, count, datatype, "
            f"{status}}}, ")


def observed_part(function, symbol, arguments, names, large):
    """Between the test for calls from inside and the call: the same function again, observed."""
    look = observer(function, large)
    if not look:
        return []
    with_status = look.startswith("observe_access")
    status = ("MPI_Status* status" if "status}" in look else "MPI_Status*") if with_status else ""
    served = "served_with_status" if with_status else "served_by"
    return [f"  if (observes()) [[unlikely]] {{",
            f"    auto call = [&]({status}) {{ return serve_{symbol}({names}); }};",
            f"    return {look}{served}<decltype(call)>, &call);",
            "  }"]


def entry(function, symbol, large, native):
    """One exported function; `native` is where calls that are not ours go."""
    arguments = ", ".join(a.declare(large) for a in function.arguments)
    names = ", ".join(a.name for a in function.arguments)
    own = condition(function)
    kind = before_native(function)
    unwanted = " || ".join(["passes()"] + ([own] if own and not kind else []))
    before, passed, after = narrow_outputs(function, large)
    scope = "hooked" if function.treatment == "hooked" else "guarded"
    call = f'{scope}("{symbol}", [&] {{ return hf_{function.short}({", ".join(passed)}); }})'
    observed = observed_part(function, symbol, arguments, names, large)
    out = [f'HF_EXPORT int entry_{symbol}({arguments}) asm("{symbol}");']
    if observed:
        # What arrives from outside of MPI and of us is served apart, so that the profile can stand around it.
        out += [f"static int serve_{symbol}({arguments}) {{"]
        out += [f"  if ({own}) return {native}({names});"] if own and not kind else []
    else:
        out += [f"int entry_{symbol}({arguments}) {{", f"  if ({unwanted}) return {native}({names});"]
    if kind:
        out += [f"  if ({own}) {{",
                f"    if (const int refused = hf_before_native(fh, {kind}); refused != MPI_SUCCESS) return refused;",
                f"    return {native}({names});",
                "  }"]
    if after:
        out += before + [f"  const int code = {call};"] + after + ["  return code;"]
    else:
        out.append(f"  return {call};")
    if observed:
        out += ["}", f"int entry_{symbol}({arguments}) {{", f"  if (passes()) return {native}({names});"] + observed
        out += [f"  return serve_{symbol}({names});"]
    return "\n".join(out + ["}"])


def entries_cpp(name, functions, declared):
    out = [banner(name), '#include "intercept/mpi/entry.hpp"', '#include "intercept/mpi/observe.hpp"', '#include "owned_mpi.h"', "",
           "using namespace holdfast::intercept;", "using holdfast::profile::Counter;", "", 'extern "C" {']
    for function in ours(functions, declared):
        for twin, large in twins_of(function, declared):
            short = twin.removeprefix("MPI_")
            out.append(entry(function, twin, large, f"next_mpi.{short}"))
            # A profiling call passes to the MPI itself: through next_mpi, a tool behind us would meet itself again.
            native = f"next_mpi.P{short}" if function.treatment == "hooked" else f"real.{short}"
            out.append(entry(function, "P" + twin, large, native))
    out.append("}")
    return "\n".join(out) + "\n"


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("compiler", nargs="+")
    options = parser.parse_args()
    functions = read_table(options.table)
    header = preprocess(options.compiler)
    declared = declared_functions(header)
    if "MPI_File_open" not in declared:
        sys.exit(f"{' '.join(options.compiler)}: its mpi.h declares no PMPI_File_open")
    objects = declared_objects(header)
    options.out.mkdir(parents=True, exist_ok=True)
    write_if_changed(options.out / "real_mpi.h", real_mpi_h(options.name, functions, declared, objects))
    write_if_changed(options.out / "real_mpi.cpp", real_mpi_cpp(options.name, functions, declared, objects))
    write_if_changed(options.out / "owned_mpi.h", owned_mpi_h(options.name, functions, declared))
    write_if_changed(options.out / "entries.cpp", entries_cpp(options.name, functions, declared))


if __name__ == "__main__":
    main()
