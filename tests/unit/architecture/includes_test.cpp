// The rules between the rooms (docs/architecture.md), held over the source text. A complaint names the file, the line and the rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "unit/architecture/sources.hpp"

namespace holdfast::architecture {
namespace {

// From the program's call down to the words that all share. Rooms that do not exist yet have their place already.
const std::vector<std::string> order{"cli",    "advice",     "agent",    "intercept", "frontend",  "profile",  "file",
                                     "tree",   "checkpoint", "layers",   "engine",    "catalog",   "layout",   "coding",
                                     "target", "redundant",  "exchange", "service",   "transport", "planning", "base"};

// What a room may include beside itself where that is less than everything below it.
const std::map<std::string, std::set<std::string>> narrower{
    {"layout", {"coding", "base"}},  // pure arithmetic and bytes: no targets, no ranks
    {"coding", {"base"}},
    {"target", {"transport", "base"}},
    {"agent", {"target", "coding", "transport", "service", "base"}},
    {"exchange", {"base"}},
    {"service", {"transport", "base"}},
    {"transport", {"base"}},
    {"redundant", {"transport", "service", "base"}},
    {"planning", {"base"}},
    {"advice", {"profile", "base"}},  // numbers in, sentences out
};

// What breaks a rule for a reason: file (or its beginning), what it may do all the same.
struct Exception {
  const char* path;
  const char* may;
};
const std::vector<Exception> exceptions{
    // The list of the process's own descriptors, in /proc.
    {"target/companion.cpp", "call openat"},
    // Who this process is and how targets are mounted, in /proc.
    {"base/process_facts.cpp", "call openat"},
    {"base/process_facts.cpp", "call read"},
    {"target/lock_reach.cpp", "call openat"},
    {"target/lock_reach.cpp", "call read"},
    // A file that is not protected, through MPI's own descriptor of it.
    {"frontend/mpi/descriptor.cpp", "call pread"},
    {"frontend/mpi/descriptor.cpp", "call pwrite"},
    // Nor is the file of the job's gathered output.
    {"service/helper_process.cpp", "call openat"},  // /dev/null in the place of a closed 0, 1 or 2
    {"service/output_gatherer.cpp", "call openat"},
    {"service/line_writer.cpp", "call write"},
    {"service/process/gather_output_main.cpp", "call read"},
    // Calls the C library's door as a program does, for the library that is loaded before it serves the file.
    {"service/process/read_beginning_main.cpp", "call fopen"},
    // Nor is what the ranks of a redundant job print.
    {"redundant/membership/hub.cpp", "call write"},
    {"redundant/membership/hub.cpp", "call read"},
    {"redundant/membership/written_out.cpp", "call write"},
    {"redundant/membership/written_out.cpp", "call read"},
    {"redundant/membership/outlet.cpp", "call write"},
    {"redundant/membership/starter.cpp", "call openat"},  // what the kernel says of a process
    {"redundant/membership/starter.cpp", "call read"},
    {"redundant/process/replica_output_main.cpp", "call read"},
    {"frontend/posix/taking_part.cpp", "call write"},
    {"file/coordinated/names.cpp", "call openat"},
    // The parts that replicas write of a plain file lie beside it, and are the job's own.
    {"file/part_files.cpp", "call openat"},
    {"file/part_files.cpp", "call pread"},
    {"file/part_files.cpp", "call pwrite"},
    {"file/part_files.cpp", "call pwritev"},
    {"file/left_parts.cpp", "call openat"},
    {"file/left_parts.cpp", "call pread"},
    // A log that outlives its process: it is memory, not a file of the user's
    {"redundant/log/log_file.cpp", "call openat"},
    {"redundant/log/log_file.cpp", "call pwrite"},
    {"redundant/progress.cpp", "call ftruncate"},  // of memory without a name, not of a file
    {"redundant/progress.cpp", "call pread"},
    // A look at what stands at a name, without an allocation, and at the directory in which it stands.
    {"tree/look.cpp", "call openat"},
    {"tree/look.cpp", "call pread"},
    {"tree/list.cpp", "call openat"},
    {"tree/rename_plain.cpp", "call openat"},
    // A program's own files in its node's directory: native, or they would not be as fast as the node's disk.
    {"checkpoint/local.cpp", "call openat"},
    {"checkpoint/open_directories.cpp", "call openat"},
    {"checkpoint/turns.cpp", "call openat"},
    {"checkpoint/directory_mark.cpp", "call openat"},  // in the user's directory, and empty
    {"checkpoint/protect.cpp", "call openat"},
    {"checkpoint/drain.cpp", "call openat"},
    {"checkpoint/process/protector_main.cpp", "call read"},
    // A file that nobody protects is no target.
    {"layers/plain/", "call pread"},
    {"layers/plain/", "call pwrite"},
    {"layers/plain/", "call ftruncate"},
    {"layers/plain/", "call fallocate"},
    {"layers/plain/", "call openat"},
    // The job's log directory is no target.
    {"profile/piece.cpp", "call openat"},
    {"profile/piece.cpp", "call pwrite"},
    {"profile/piece.cpp", "call ftruncate"},
    {"frontend/mpi/job_log.cpp", "call openat"},
    {"frontend/mpi/job_log.cpp", "call pwrite"},
};

bool excepted(const std::string& path, const std::string& what) {
  return std::any_of(exceptions.begin(), exceptions.end(),
                     [&](const Exception& e) { return path.compare(0, std::string(e.path).size(), e.path) == 0 && what == e.may; });
}

// Headers generated from the installed mpi.h; they bring it with them.
const std::set<std::string> mpi_headers{"mpi.h", "real_mpi.h", "owned_mpi.h"};

void check_room_order(const Source& source, Complaints& complaints) {
  static const std::regex include("^\\s*#\\s*include\\s*\"(([^\"/]+)/[^\"]+)\"");
  const auto mine = std::find(order.begin(), order.end(), source.room());
  if (mine == order.end()) return complaints.add(source, 0, "src/" + source.room() + " is not a room: give it its place in this test");
  for (size_t i = 0; i < source.lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_search(source.lines[i], match, include)) continue;
    const std::string room = match[2];
    if (excepted(source.path, "include " + match[1].str())) continue;
    const auto other = std::find(order.begin(), order.end(), room);
    if (room == "holdfast" || other == mine) continue;  // include/holdfast/ is what everybody may know
    if (other == order.end()) complaints.add(source, i, "includes from '" + room + "', which is not a room");
    else if (other < mine) complaints.add(source, i, source.room() + " may not include " + room + ": includes point down only");
    else if (auto only = narrower.find(source.room()); only != narrower.end() && !only->second.count(room))
      complaints.add(source, i, source.room() + " knows nothing of " + room);
  }
}

void check_mpi(const Source& source, Complaints& complaints) {
  static const std::regex include("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  for (const char* allowed : {"intercept/mpi/", "frontend/", "exchange/mpi/"})
    if (begins(source.path, allowed)) return;
  for (size_t i = 0; i < source.lines.size(); ++i) {
    std::smatch match;
    if (std::regex_search(source.lines[i], match, include) && mpi_headers.count(match[1]))
      complaints.add(source, i, "mpi.h belongs to intercept/mpi, frontend and exchange/mpi: all else is compiled once");
  }
}

void check_environment(const Source& source, Complaints& complaints) {
  static const std::regex reads("\\b(secure_)?getenv\\b");
  if (begins(source.path, "base/config")) return;
  const auto code = code_of(source.lines);
  for (size_t i = 0; i < code.size(); ++i)
    if (std::regex_search(code[i], reads)) complaints.add(source, i, "only base/config reads the environment");
}

void check_system_calls(const Source& source, Complaints& complaints) {
  static const std::regex calls(
      "\\b(pread|pwrite|preadv|pwritev|pread64|pwrite64|openat|creat|fopen|freopen|sendfile|copy_file_range|"
      "ftruncate|fallocate|posix_fallocate|ifstream|ofstream|fstream)\\b"
      "|(^|[^\\w>])(raw)?::\\s*(open|read|write|readv|writev|unlink|rename|link|symlink|mkdir|rmdir)\\s*\\(");
  for (const char* allowed : {"target/directory", "catalog/", "intercept/posix/", "cli/", "base/raw_syscalls", "base/config"})
    if (begins(source.path, allowed)) return;
  const auto code = code_of(source.lines);
  std::smatch match;
  for (size_t i = 0; i < code.size(); ++i)
    if (std::regex_search(code[i], match, calls) && !excepted(source.path, "call " + (match[1].matched ? match[1] : match[4]).str()))
      complaints.add(source, i, "file system calls belong to target/directory, catalog, intercept/posix and cli");
}

// A line that begins a function or belongs to its signature: what follows blocks of another kind is none.
size_t indentation(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }

// Where the function begins whose body opens at the end of line `open`; nothing where it opens something else. A signature that does not fit
// in a line goes on further in, as does the list of members that a constructor begins with.
std::optional<size_t> beginning_of_function(const std::vector<std::string>& code, size_t open) {
  constexpr size_t deepest = 6, most_lines = 20;
  static const std::regex no_function("^ *(namespace|class|struct|enum|union|extern|if|for|while|switch|do|else|case|default|try|catch|return)\\b");
  static const std::regex signature("^ *\\S[^={]*\\(.*");
  size_t first = open;
  while (first > 0 && open - first < most_lines &&
         (indentation(code[first]) > deepest || begins(code[first].substr(indentation(code[first])), ": ") ||
          indentation(code[first]) > indentation(code[first - 1])))
    --first;
  const bool is_one =
      indentation(code[first]) <= deepest && std::regex_search(code[first], signature) && !std::regex_search(code[first], no_function);
  if (!is_one || code[first].find("= [") != std::string::npos) return std::nullopt;
  return first;
}

void check_growth(const Source& source, Complaints& complaints) {
  constexpr size_t max_file_lines = 800;
  constexpr size_t max_function_lines = 60;
  if (source.lines.size() > max_file_lines)
    complaints.add(source, source.lines.size() - 1, "files have at most " + std::to_string(max_file_lines) + " lines: part it");
  const auto code = code_of(source.lines);
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i].empty() || code[i].back() != '{') continue;
    const auto first = beginning_of_function(code, i);
    if (!first) continue;
    const std::string end = std::string(indentation(code[*first]), ' ') + "}";
    for (size_t j = i + 1; j < code.size(); ++j) {
      if (!begins(code[j], end)) continue;
      if (j - *first + 1 > max_function_lines)
        complaints.add(source, *first,
                       "functions have at most " + std::to_string(max_function_lines) + " lines, this one has " + std::to_string(j - *first + 1));
      break;
    }
  }
}

// ---------------------------------------------------------------- the sources

TEST(Architecture, the_sources_are_found) { EXPECT_GT(all_sources().size(), 20u); }
TEST(Architecture, includes_point_down_only) { EXPECT_EQ(complaints_of(check_room_order), ""); }
TEST(Architecture, mpi_is_known_where_it_is_compiled_per_implementation_only) { EXPECT_EQ(complaints_of(check_mpi), ""); }
TEST(Architecture, only_the_configuration_reads_the_environment) { EXPECT_EQ(complaints_of(check_environment), ""); }
TEST(Architecture, only_few_rooms_make_system_calls_on_files) { EXPECT_EQ(complaints_of(check_system_calls), ""); }
TEST(Architecture, files_and_functions_stay_small) { EXPECT_EQ(complaints_of(check_growth), ""); }

// ---------------------------------------------------------------- the rules themselves bite

TEST(ArchitectureRules, an_include_that_points_up_or_aside_is_named) {
  EXPECT_EQ(complaints_of(check_room_order, "coding/x.cpp", "#include \"coding/code.hpp\"\n#include \"base/status.hpp\"\n"), "");
  EXPECT_EQ(complaints_of(check_room_order, "coding/x.cpp", "\n#include \"target/target.hpp\"\n"),
            "src/coding/x.cpp:2: coding knows nothing of target\n");
  EXPECT_EQ(complaints_of(check_room_order, "catalog/x.cpp", "#include \"layers/file.hpp\"\n"),
            "src/catalog/x.cpp:1: catalog may not include layers: includes point down only\n");
  EXPECT_NE(complaints_of(check_room_order, "misc/x.cpp", ""), "");
  EXPECT_NE(complaints_of(check_room_order, "base/x.cpp", "#include \"misc/y.hpp\"\n"), "");
}

TEST(ArchitectureRules, mpi_in_a_wrong_room_is_named) {
  EXPECT_NE(complaints_of(check_mpi, "layers/x.cpp", "#include <mpi.h>\n"), "");
  EXPECT_NE(complaints_of(check_mpi, "exchange/threads.cpp", "#include \"real_mpi.h\"\n"), "");
  EXPECT_EQ(complaints_of(check_mpi, "exchange/mpi/x.cpp", "#include <mpi.h>\n"), "");
}

TEST(ArchitectureRules, reading_the_environment_elsewhere_is_named) {
  EXPECT_NE(complaints_of(check_environment, "layers/x.cpp", "auto x = std::getenv(\"HOME\");\n"), "");
  EXPECT_EQ(complaints_of(check_environment, "layers/x.cpp", "// getenv is not called here\nauto x = \"getenv\";\n"), "");
  EXPECT_EQ(complaints_of(check_environment, "base/config.cpp", "auto x = std::getenv(\"HOME\");\n"), "");
}

TEST(ArchitectureRules, a_system_call_elsewhere_is_named) {
  for (const char* call : {"pread(fd, p, n, 0);", "  ::open(path, 0);", "x = raw::unlink(path);", "std::ifstream in(path);"})
    EXPECT_NE(complaints_of(check_system_calls, "layers/x.cpp", call), "") << call;
  for (const char* call : {"target->open(name, mode);", "object.read(0, into);", "ProtectedFile::open(located);", "// pread"})
    EXPECT_EQ(complaints_of(check_system_calls, "layers/x.cpp", call), "") << call;
}

TEST(ArchitectureRules, growth_is_named) {
  auto function = [](int lines) {
    std::string text = "int f(int x) {\n";
    for (int i = 0; i < lines - 2; ++i) text += "  x += 1;\n";
    return text + "}\n";
  };
  EXPECT_EQ(complaints_of(check_growth, "base/x.cpp", function(60)), "");
  EXPECT_EQ(complaints_of(check_growth, "base/x.cpp", function(61)), "src/base/x.cpp:1: functions have at most 60 lines, this one has 61\n");
  const std::string wrapped = "Result<std::vector<int>> f(const std::string& one,\n                           const std::string& two) {\n";
  EXPECT_EQ(complaints_of(check_growth, "base/x.cpp", wrapped + function(59).substr(15)), "");
  EXPECT_EQ(complaints_of(check_growth, "base/x.cpp", wrapped + function(60).substr(15)),
            "src/base/x.cpp:1: functions have at most 60 lines, this one has 61\n");
  const std::string constructor = "X::X(int x)\n    : x_(x) {\n  y_ = x;\n}\n";
  EXPECT_EQ(complaints_of(check_growth, "base/x.cpp", constructor + function(60)), "");
  EXPECT_NE(complaints_of(check_growth, "base/x.cpp", constructor.substr(0, 26) + function(61).substr(15)), "");
  std::string file;
  for (int i = 0; i < 801; ++i) file += "\n";
  EXPECT_NE(complaints_of(check_growth, "base/x.cpp", file), "");
}

}  // namespace
}  // namespace holdfast::architecture
