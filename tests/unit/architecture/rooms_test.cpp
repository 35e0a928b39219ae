// What a room must never know (src/*/README.md), as a table: rooms, what they may not name, why, and who may all the same. The arrows between
// rooms are in includes_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "unit/architecture/sources.hpp"

namespace holdfast::architecture {
namespace {

using Places = std::vector<std::string>;  // beginnings of paths below src/

struct Rule {
  const char* name;
  Places where;       // empty: everywhere
  Places but_for;     // parts of `where` that the rule is not about
  const char* never;  // regular expression, over code without comments and without what strings say
};

// Bytes and numbers in, bytes and numbers out: who runs them decides about time, threads and connections, so that a simulator can.
const Places pure{"agent/credits",
                  "agent/request_reader",
                  "agent/seats",
                  "agent/session",
                  "agent/sum",
                  "target/agent_protocol",
                  "target/agent.",
                  "target/name_lock",
                  "target/stripes",
                  "transport/greeting",
                  "service/pointer_protocol",
                  "redundant/map",
                  "redundant/frame",
                  "redundant/compare/",
                  "redundant/decisions/",
                  "redundant/membership/membership",
                  "checkpoint/pattern",
                  "checkpoint/choice",
                  "frontend/typemap",
                  "frontend/external32",
                  "planning/",
                  "advice/",
                  "layout/",
                  "coding/"};

// Programs and the command: processes of their own, which nobody has loaded into another's.
const Places programs{"cli/", "agent/", "agent/process/", "service/process/", "redundant/process/", "checkpoint/process/"};

const std::vector<Rule> rules{
    {"what is pure knows no sockets, threads, processes or files",
     pure,
     {},
     "#\\s*include\\s*<(thread|condition_variable|future|semaphore|pthread\\.h|poll\\.h|netdb\\.h|dirent\\.h|unistd\\.h|fcntl\\.h|spawn\\.h|"
     "signal\\.h|csignal|filesystem|fstream|sys/(socket|epoll|stat|mman|wait|syscall|statfs|time)\\.h)>"
     "|\\bstd::(thread|jthread|condition_variable)\\b|\\b(pthread_create|fork|vfork|posix_spawn|getpid)\\s*\\("},
    {"what is pure knows no clock",
     pure,
     {},
     "\\b(clock_gettime|gettimeofday|nanosleep|usleep|sleep_for|sleep_until|(steady|system)_clock|Stopwatch)\\b"},
    {"streams of the C++ library would be made anew in each program",
     {},
     programs,
     "#\\s*include\\s*<(iostream|fstream|istream|ostream|iomanip)>|\\bstd::(cout|cerr|clog|cin)\\b"},
    {"a room below the front ends prints nothing: what is to be said is a Status",
     {"base/", "planning/", "transport/", "service/", "exchange/", "redundant/", "target/", "coding/", "layout/", "catalog/", "engine/", "layers/",
      "checkpoint/", "tree/", "file/", "profile/", "advice/"},
     {"service/process/", "redundant/process/", "checkpoint/process/",
      "profile/piece.cpp",           // a job without its profile goes on, and nobody else would say so
      "exchange/local/threads.cpp",  // ranks that call different steps: a bug of a test, which ends there
      "base/say."},
     "\\b(printf|fprintf|vfprintf|dprintf|puts|fputs|perror)\\s*\\(|#\\s*include\\s*\"base/say\\.hpp\""},
    {"what a program says goes through say() and show(), which throw nothing: the job goes on where a line cannot be written",
     {},
     {},
     "\\bfmt::v?print(ln)?\\s*\\("},
    {"MPI is known where code is compiled once for each MPI",
     {},
     {"intercept/mpi/", "frontend/mpi/", "frontend/messages/", "frontend/shared_pointer/", "exchange/mpi/"},
     "\\bP?MPI_[A-Za-z]\\w*|#\\s*include\\s*[<\"](mpi|real_mpi|owned_mpi)\\.h"},
    {"only base/config reads or changes the environment",
     {},
     {"base/config",
      "cli/",                                                          // what it starts gets settings by it
      "intercept/posix/exec_doors.cpp", "intercept/posix/script.cpp",  // hands the program's on, as it is
      "checkpoint/process/protector_main.cpp"},                        // takes it from who started it, by a pipe
     "\\b((secure_)?getenv|setenv|putenv|unsetenv|clearenv|environ)\\b"},
    {"rows, codes and the engine know no system calls",
     {"engine/", "coding/", "layout/"},
     {},
     "#\\s*include\\s*<(unistd\\.h|fcntl\\.h|dirent\\.h|spawn\\.h|poll\\.h|signal\\.h|sys/"
     "(socket|stat|wait|syscall|statfs|epoll)\\.h)>|\\braw::\\w+\\s*\\("},
    {"the command does not know how rows are coded", {"cli/"}, {}, "#\\s*include\\s*\"coding/"},
    {"a target is opened by its address, or by the catalog's environment",
     {},
     {"target/", "agent/", "checkpoint/local."},  // agents serve directories; the last one has a function of that name
     "\\bopen_directory\\s*\\("},
    {"the front ends know an open file as a whole: of rows, codes and members they know neither form nor place",
     {"frontend/"},
     {},
     "#\\s*include\\s*\"(coding/(?!(checksum|xxh3)\\.)|engine/(?!protected_file\\.)|layout/(?!(manifest|shared_record)\\.)|target/"
     "(?!lock_owner\\.))"},
    {"a program's call is handed on by who knows neither rows nor codes, and of a file no more than its manifest",
     {"intercept/"},
     {},
     "#\\s*include\\s*\"(coding/(?!checksum\\.)|engine/(?!maintenance\\.)|layout/|layers/|exchange/|target/"
     "(?!(agent_again|agent_registry|directory_stripes)\\.))"
     "|\\b(row_bytes|start_node|RowRecord)\\b"},
    {"processes beside the job know nothing of files",
     {"service/", "transport/", "redundant/"},
     {},
     "#\\s*include\\s*\"(engine|layers|catalog|layout|tree|file|target)/"},
};

bool lies_in(const std::string& path, const Places& places) {
  return std::any_of(places.begin(), places.end(), [&](const std::string& place) { return begins(path, place); });
}

// Of a line what rules look at: names of included files are strings to code_of(), and stay.
std::vector<std::string> looked_at(const Source& source) {
  auto code = code_of(source.lines);
  for (size_t i = 0; i < code.size(); ++i)
    if (code[i].find("#include") != std::string::npos) code[i] = source.lines[i];
  return code;
}

void check_rules(const Source& source, Complaints& complaints) {
  static const std::vector<std::regex> never = [] {
    std::vector<std::regex> made;
    for (const Rule& rule : rules) made.emplace_back(rule.never, std::regex::optimize);
    return made;
  }();
  const auto code = looked_at(source);
  for (size_t r = 0; r < rules.size(); ++r) {
    const Rule& rule = rules[r];
    if ((!rule.where.empty() && !lies_in(source.path, rule.where)) || lies_in(source.path, rule.but_for)) continue;
    std::smatch found;
    for (size_t i = 0; i < code.size(); ++i)
      if (std::regex_search(code[i], found, never[r])) complaints.add(source, i, std::string(rule.name) + ": " + found.str());
  }
}

TEST(Rooms, name_nothing_that_they_must_never_know) { EXPECT_EQ(complaints_of(check_rules), ""); }

TEST(Rooms, places_of_the_rules_are_there) {
  const auto sources = all_sources();
  for (const Rule& rule : rules)
    for (const Places* places : {&rule.where, &rule.but_for})
      for (const std::string& place : *places)
        EXPECT_TRUE(std::any_of(sources.begin(), sources.end(), [&](const Source& s) { return begins(s.path, place); }))
            << rule.name << ": " << place;
}

TEST(RoomsRules, what_a_room_must_not_know_is_named) {
  const std::pair<const char*, const char*> wrong[] = {
      {"agent/session.cpp", "#include <thread>"},
      {"agent/session.cpp", "const auto now = std::chrono::steady_clock::now();"},
      {"redundant/decisions/x.cpp", "#include <sys/socket.h>"},
      {"layers/x.cpp", "#include <iostream>"},
      {"tree/x.cpp", "std::fprintf(stderr, text);"},
      {"tree/x.cpp", "#include \"base/say.hpp\""},
      {"cli/x.cpp", "fmt::print(stderr, text);"},
      {"checkpoint/process/x.cpp", "fmt::print(text);"},
      {"engine/x.cpp", "MPI_Barrier(comm);"},
      {"engine/x.cpp", "#include <unistd.h>"},
      {"catalog/x.cpp", "::unsetenv(name);"},
      {"cli/x.cpp", "#include \"coding/code.hpp\""},
      {"service/x.cpp", "#include \"engine/file.hpp\""},
      {"cli/x.cpp", "auto directory = target::open_directory(path);"},
      {"frontend/mpi/x.cpp", "#include \"layout/row_record.hpp\""},
      {"frontend/posix/x.cpp", "#include \"target/target.hpp\""},
      {"intercept/posix/x.cpp", "#include \"engine/row_reader.hpp\""},
  };
  for (const auto& [path, line] : wrong) EXPECT_NE(complaints_of(check_rules, path, line), "") << path << ": " << line;
  const std::pair<const char*, const char*> right[] = {
      {"agent/serve.cpp", "#include <thread>"},
      {"engine/x.cpp", "// MPI_Barrier is called elsewhere"},
      {"advice/x.cpp", "words += \"use MPI_File_write_all\";"},
      {"frontend/mpi/x.cpp", "std::fprintf(stderr, text);"},
      {"cli/x.cpp", "say(text);"},
      {"base/config.cpp", "::unsetenv(name);"},
      {"frontend/mpi/x.cpp", "#include \"engine/protected_file.hpp\""},
  };
  for (const auto& [path, line] : right) EXPECT_EQ(complaints_of(check_rules, path, line), "") << path << ": " << line;
}

}  // namespace
}  // namespace holdfast::architecture
