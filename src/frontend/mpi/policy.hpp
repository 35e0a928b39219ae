// Which files are protected: decided by one rank at open, for all.
#pragma once
#include <map>
#include <string>

#include "base/config.hpp"
#include "frontend/mpi/errors.hpp"
#include "layout/manifest.hpp"
#include "real_mpi.h"
#include "tree/decide.hpp"

namespace holdfast::frontend {

// Looks at the path and the policy. Says once on stderr why a file that the policy names stays unprotected.
tree::Way decide(const std::string& path, int amode, const Settings& settings, Fault& fault);

// Once in a process, on stderr: hints of the program's that a file being made cannot follow, and what is done instead.
void say_once_of_hints(const std::string& path, const Settings& settings);

// The access modes that contradict themselves.
Fault check_amode(int amode);

std::map<std::string, std::string> hints_in_force(const Settings& settings, const layout::Manifest& manifest, int ranks);

// What MPI's own open of a file gets: the program's hints, and those that the user asked for outside the program. Of the latter only those that the
// program did not give and that an MPI understands (aggregators and stripes). Files that the policy does not name keep the program's alone.
class NativeHints {
 public:
  // Collective over `comm` where all its ranks ask for the same number of aggregators (`same`), as rank-local otherwise.
  NativeHints(MPI_Comm comm, MPI_Info program, const std::string& path, bool same);
  ~NativeHints();
  NativeHints(const NativeHints&) = delete;
  NativeHints& operator=(const NativeHints&) = delete;
  MPI_Info info() const { return own_ == MPI_INFO_NULL ? program_ : own_; }

 private:
  bool given(const char* key) const;
  void add(const char* key, const std::string& value);
  MPI_Info program_, own_ = MPI_INFO_NULL;
};

}  // namespace holdfast::frontend
