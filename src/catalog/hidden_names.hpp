// What Holdfast keeps beside the user's files, and no program is to see in a directory. These are sidecars, and files without a name that are still
// open somewhere.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"

namespace holdfast::catalog {

// ".NAME.holdfast": NAME. Allocates nothing.
std::optional<std::string_view> file_of_sidecar(std::string_view name);
// The name in the same directory of a file that was unlinked while it was open.
std::string removed_name(const std::string& file_id);
bool is_removed_name(std::string_view name);
// The name, beside where it would stand, of what programs lock of a file that nothing stands at the path of yet (lock_file.hpp).
std::string locks_name(const std::string& file_id);
bool is_locks_name(std::string_view name);
// The name under which a sidecar is made before it gets its own: left there by a creator that died.
std::string new_sidecar_name();
std::string new_sidecar_beside(const std::string& path);  // in the same directory as that one
bool is_new_sidecar_name(std::string_view name);

// How an entry of a directory appears to a program.
enum class Appearance : uint8_t {
  itself,
  hidden,
  file,            // a link to a whole copy
  file_by_sidecar  // nothing stands at the path, and the sidecar says that the file is there: its entry appears as NAME
};
// `directory`: a descriptor, `type`: the entry's d_type. A system call for links and for names of sidecars, none for others.
Appearance appearance_of(int directory, const char* name, unsigned char type);

// Where in `directory` the file with this id is: by the sidecars, whatever has become of its name. Empty where it is not there.
std::string path_by_id(const std::string& directory, const std::string& file_id);

// Some file in `directory` that by its sidecar lies on one of these targets (absolute paths). Empty where there is none.
std::string path_over_targets(const std::string& directory, const std::vector<std::string>& targets);

// The content has changed: the time of what stands at the path says so, where nothing else has set it.
void show_change(const std::string& path);

// Whoever reads a file that has no name any more holds this until he closes it: see `remove_leftovers`. -1 where there is no such lock.
int hold_removed(const std::string& path);
// Makes a directory empty that shows nothing: removes sidecars that belong to no file, and files without a name that nobody has open.
// Touches nothing where the directory shows something.
Status remove_leftovers(const std::string& directory, const Settings& settings);

}  // namespace holdfast::catalog
