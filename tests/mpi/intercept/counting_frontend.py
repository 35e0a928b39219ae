#!/usr/bin/env python3
"""Writes a front end that counts what arrives and hands it to the MPI: what the entries are tested against.

usage: counting_frontend.py GENERATOR_DIR TABLE OUT -- mpicc

Two calls behave on purpose like parts of a real front end: MPI_File_seek runs the file's error handler, and
MPI_File_preallocate of 77 bytes throws.
"""
import sys

sys.path.insert(0, sys.argv[1])
import generate  # noqa: E402

PRELUDE = """\
// Written by counting_frontend.py.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include "frontend/messages/racing.hpp"
#include "frontend/messages/sent.hpp"
#include "frontend/mpi/own_code.hpp"
#include "owned_mpi.h"

namespace {
std::mutex mutex;
std::set<MPI_File>& files() { static auto* all = new std::set<MPI_File>; return *all; }
std::map<std::string, int>& counts() { static auto* all = new std::map<std::string, int>; return *all; }
std::atomic<int> open_files{0};

void arrived(const char* name) {
  std::lock_guard lock(mutex);
  ++counts()[name];
}
void remember(MPI_File fh) {
  std::lock_guard lock(mutex);
  if (files().insert(fh).second) ++open_files;
}
void forget(MPI_File fh) {
  std::lock_guard lock(mutex);
  if (files().erase(fh)) --open_files;
}
// One line per call and process: NAME COUNT
struct Report {
  ~Report() {
    const char* path = std::getenv("HOLDFAST_TEST_ARRIVALS");
    if (!path) return;
    FILE* out = std::fopen(path, "a");
    for (const auto& [name, count] : counts()) std::fprintf(out, "%s %d\\n", name.c_str(), count);
    std::fclose(out);
  }
} report;
}  // namespace

// What the entries' profile asks a front end for.
namespace holdfast::frontend {
std::string path_of_filename(const char* filename) { return filename; }
}  // namespace holdfast::frontend

bool hf_is_protected(MPI_File fh) {
  if (open_files.load(std::memory_order_relaxed) == 0) return false;
  std::lock_guard lock(mutex);
  return files().count(fh) > 0;
}
bool hf_is_ours(MPI_File fh) { return hf_is_protected(fh); }
int hf_before_native(MPI_File, int) { return MPI_SUCCESS; }
bool hf_requests_outstanding() { return open_files.load(std::memory_order_relaxed) > 0; }
"""

SPECIAL = {
    "File_open": ["  const int code = real.File_open(comm, filename, amode, info, fh);",
                  "  if (code == MPI_SUCCESS) remember(*fh);", "  return code;"],
    "File_close": ["  forget(*fh);", "  return real.File_close(fh);"],
    "File_seek": ["  holdfast::frontend::ProgramCode outside;",
                  "  (void)offset; (void)whence;", "  return real.File_call_errhandler(fh, MPI_ERR_ARG);"],
    "File_preallocate": ['  if (size == 77) throw std::runtime_error("on purpose");',
                         "  return real.File_preallocate(fh, size);"],
}


def forward(function):
    """real.X with the program's narrower types; the _c twin's own type where this MPI has the twin."""
    arguments = []
    before, after = [], []
    for a in function.arguments:
        if a.small != a.large and a.small.endswith("*"):
            before.append(f"  {a.small[:-1]} narrow_{a.name} = 0;")
            arguments.append(f"&narrow_{a.name}")
            after.append(f"  *{a.name} = narrow_{a.name};")
        else:
            arguments.append(f"static_cast<{a.small}>({a.name})" if a.small != a.large else a.name)
    return before + [f"  const int code = real.{function.short}({', '.join(arguments)});"] + after + ["  return code;"]


def main():
    table, out, compiler = sys.argv[2], sys.argv[3], sys.argv[5:]
    functions = generate.read_table(table)
    declared = generate.declared_functions(generate.preprocess(compiler))
    text = [PRELUDE]
    for function in generate.ours(functions, declared):
        arguments = ", ".join(a.declare(True) for a in function.arguments)
        text += [f"int hf_{function.short}({arguments}) {{", f'  arrived("{function.name}");']
        text += SPECIAL.get(function.short) or forward(function)
        text += ["}"]
    # Links that are functions by hand hand the call on.
    for name, large, function in generate.with_all_calls(functions, declared):
        for link in generate.by_hand(function):
            door = generate.Door(function, name, large, "")
            text += [generate.declare_by_hand(link, door).rstrip(";") + " {", f"  return next({door.names});", "}"]
    text += ["void redundant_before_send() {}", "void redundant_not_repeatable(const char*) {}",
             "bool redundant_before_together() { return false; }", "void redundant_after_together(bool) {}"]
    # What is sent is compared by replicas alone.
    text += ["namespace holdfast::frontend::messages {"]
    text += [f"void {look} {{}}" for look in (
        "sent(const SentBy&, const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm)", "sent(const SentBy&, Gives, const Contribution&, const Contribution&, int, MPI_Comm)",
        "kept(const SentBy&, MPI_Request, const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm)",
        "kept(const SentBy&, MPI_Request, Gives, const Contribution&, const Contribution&, int, MPI_Comm)", "started(int, const MPI_Request*)",
        "forgotten(const MPI_Request*)")]
    text += ["void AtOnce::is_made(Replica&) {}", "void AtOnce::is_over() {}", "bool look_whether_threads_may_be_several() { return false; }",
             "void Sends::keep(MPI_Request, int, int, MPI_Comm, MPI_Count) {}",
             "void CallsAll::keep(MPI_Request, MPI_Comm) {}"]
    text += ["}  // namespace holdfast::frontend::messages"]
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(text) + "\n")


main()
