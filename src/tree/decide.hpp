// The one policy: which files are protected, get buffers or stripes, or stay as they are, whatever way a program has to them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/catalog.hpp"
#include "target/stripes.hpp"

namespace holdfast::tree {

// What differs between the ways to a file.
struct Scope {
  bool all_without_globs;     // where no glob is given every file is meant, else none: a program opens many files that are not its data
  bool leaves_system_files;   // devices, the kernel's own files, shared memory, and what launcher and MPI keep for themselves are never meant
  bool heeds_mounts;          // --mounts narrows what is meant
  bool follows_directories;   // globs are held against where the path's directories lead, else against the path as the program says it
  bool refuses_by_settings;   // settings that contradict each other refuse a creation: a program's hints have come to them
  bool torn_is_never_a_file;  // an open that wants to be the first makes a torn creation anew, else it is told that there is a file
};
inline constexpr Scope mpi_io{.all_without_globs = true,
                              .leaves_system_files = false,
                              .heeds_mounts = false,
                              .follows_directories = false,
                              .refuses_by_settings = true,
                              .torn_is_never_a_file = true};
inline constexpr Scope plain_calls{.all_without_globs = false,
                                   .leaves_system_files = true,
                                   .heeds_mounts = true,
                                   .follows_directories = true,
                                   .refuses_by_settings = false,
                                   .torn_is_never_a_file = false};

// Devices, the kernel's own files, shared memory, and what launcher and MPI keep for themselves.
bool is_of_the_system(const std::string& path);
// A temporary file that this process alone knows. Its number is in the path, standing by itself, and the path lies where such files are kept.
bool is_of_this_process(const std::string& path);
// It lies below a directory for temporary files.
bool is_temporary(const std::string& path);
// Whether the policy speaks of a file at this absolute path at all, whatever is asked for it. Nothing but a look at the settings where there
// are no globs.
bool is_meant(const Settings& settings, const std::string& path, const Scope& scope);
// Whether a file that is made there is to be protected.
bool is_named(const Settings& settings, const std::string& path, const Scope& scope);
// Whether a plain file there gets buffers. Where files are protected, those are the ones that get them.
bool is_buffered(const Settings& settings, const std::string& path, const Scope& scope);
// The stripes that the user asked for, for a plain file that is made there.
std::optional<target::StripeWish> stripes_of_plain(const Settings& settings, const std::string& path, const Scope& scope);

// What stands at a path. The last two are known of files that are open already.
struct Standing {
  catalog::PathKind kind = catalog::PathKind::absent;
  bool has_second_names = false;  // which would lead elsewhere from then on
  bool is_mapped = false;         // shared, by this program
};
struct Opening {
  bool writes = false, creates = false, exclusive = false;
};

enum class Way : uint8_t {
  as_without,  // as without Holdfast
  find,        // protected already
  make,        // to be protected
  refuse,
};

struct Decision {
  Way way = Way::as_without;
  Status refusal;      // without a sentence where the error itself says it all
  std::string remark;  // on what the policy names and leaves as it is: for a line that begins with the path
};

// What an open of `path`, where that stands, is to be. `decide_named`: of one that the policy is known to name, which need not be asked again.
Decision decide(const std::string& path, const Standing& there, const Opening& opening, const Settings& settings, const Scope& scope);
Decision decide_named(const std::string& path, const Standing& there, const Opening& opening, const Settings& settings, const Scope& scope);

}  // namespace holdfast::tree
