// Which MPI a command line will use, so that the library built for it can be preloaded.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace holdfast::cli {

struct Mpi {
  std::string name;       // as in the library's: mpich4, openmpi5, mpiabi; "posix" for a program without MPI
  std::string version;    // "4.1.4"; empty where unknown
  std::string found_by;   // "mpirun.openmpi --version", "/usr/lib/.../libmpi.so.40 of ./app"
  bool launcher = false;  // the command begins with this MPI's own launcher
};

// From the text that a launcher prints for --version, or MPI_Get_library_version; nothing for a text that names no MPI.
std::optional<Mpi> mpi_of_version_text(const std::string& text);

// Asks the launcher for its version where the command begins with one. Otherwise looks at the libraries that the programs in it are linked with, and
// at the mpi4py beside a Python. No MPI found: "posix".
Mpi detect_mpi(const std::vector<std::string>& command);

// The library to preload, from the directories where an installation has them (../lib, ../lib/holdfast beside the
// command). `asked` is --library: a path or a name ("openmpi4"). A library of another major version
// of the same implementation serves where there is none for this one; one sentence where there is none at all.
Result<std::string> find_library(const Mpi& mpi, const std::string& asked);

// Beside that library, the one with all calls of the same MPI. Without MPI it is the library itself.
Result<std::string> with_all_calls(const std::string& library);

// The name of the program that a command runs, behind a launcher, a wrapper and an interpreter: to be told apart from another one.
std::string program_of(const std::vector<std::string>& command);

// Goes through a launcher's command, word by word behind the first: whether they are its own, up to each program and behind each ':' again.
class OwnWords {
 public:
  bool are_own() const { return own_; }
  void pass(const std::string& word);

 private:
  bool own_ = true;
};

// The names of all libraries in this installation: openmpi4, mpich4, posix ...
std::vector<std::string> built_libraries();
// Launchers that a word reaches by the PATH, in its order; several words may lead to one file.
struct Launcher {
  std::string file;
  std::vector<std::string> words;
};
std::vector<Launcher> launchers_on_path();

}  // namespace holdfast::cli
