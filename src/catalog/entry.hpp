// What stands at the user's path, by looking at it alone.
#pragma once
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "catalog/stub.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

inline constexpr int longest_link_chain = 8;

enum class EntryKind : uint8_t {
  absent,
  empty,
  zeros,  // as small as a stub, and nothing but zeros: what a power cut can leave of one
  regular,
  stub,
  own_link,
  other_link,
  other
};

struct Entry {
  EntryKind kind = EntryKind::absent;
  FileState state;          // of the entry itself
  Stub stub;                // EntryKind::stub
  Status stub_status;       // EntryKind::stub that was cut or edited
  std::string leads_to;     // links
  std::string link_target;  // EntryKind::own_link: <link_target>/<link_directory>/unit<j>
  std::string link_directory;
  Status status;  // EntryKind::other: why nothing can be said, where it could not be looked at
};

Entry look_at_entry(const std::string& path);
// A link of the user's own: a second name of what it leads to, where it does not stand in the place of a file's own entry.
bool is_second_name(const Entry& entry, const std::string& absolute);
// Another file than the one that was left. Devices are numbered anew at each mount and on each node; inodes are told apart only where the
// numbers last.
bool is_another_file(const layout::PathState& left, const layout::PathState& now, const std::string& path);
// A note that is damaged, and that nobody has touched since it was left so: its storage has lost it, not a program.
bool has_rotted(const Entry& entry, const layout::PathState& left, const std::string& path);
// Nobody's content: what a power cut can leave of a stub that was never made durable.
inline bool holds_nothing(const Entry& entry) { return entry.kind == EntryKind::empty || entry.kind == EntryKind::zeros; }
// "NAME-0123abcd": the directory of a file on its targets.
bool is_file_directory(std::string_view name);
// "<target>/NAME-0123abcd/unit<j>": a link that Holdfast made to a whole copy. Allocates nothing.
bool is_own_link(std::string_view leads_to);
std::string file_directory_name(const std::string& path, const std::string& file_id);

}  // namespace holdfast::catalog
