#include "catalog/entry.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cctype>
#include <cerrno>
#include <string_view>

#include "catalog/catalog.hpp"
#include "catalog/environment.hpp"
#include "catalog/sidecar.hpp"

namespace holdfast::catalog {

namespace {

constexpr size_t id_digits = 8;
constexpr size_t longest_stem = 64;

bool parse_own_link(Entry& entry) {
  if (!is_own_link(entry.leads_to)) return false;
  const std::string directory = parent_of(entry.leads_to);
  entry.link_directory = name_of(directory);
  entry.link_target = parent_of(directory);
  return true;
}

void look_at_content(Entry& entry, const std::string& path) {
  entry.kind = EntryKind::regular;
  if (entry.state.size == 0) entry.kind = EntryKind::empty;
  if (entry.state.size < stub_line.size() || entry.state.size > max_stub_bytes) return;
  auto content = read_beginning(path, max_stub_bytes);
  if (!content) {
    entry.kind = EntryKind::other;
    entry.status = content.status();
    return;
  }
  if (content->find_first_not_of('\0') == std::string::npos) entry.kind = EntryKind::zeros;
  if (!content->starts_with(stub_line)) return;
  entry.kind = EntryKind::stub;
  auto stub = decode_stub(*content);
  if (stub) entry.stub = std::move(*stub);
  else entry.stub_status = stub.status();
}

// The kernel follows the directories of a path by itself, links among them. Only a path that is relative or ends in no name is resolved first.
std::string beside(const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  const bool names_a_file = path.starts_with('/') && !name.empty() && name != "." && name != "..";
  return sidecar_of(names_a_file ? path : absolute_path(path));
}

// A link in its place counts: whoever opens the file is told of it. Asked at every open through MPI-IO of any file, so it makes no sentences.
bool has_sidecar(const std::string& path) {
  const std::string sidecar = beside(path);
  struct stat found;
  if (environment().fstatat(AT_FDCWD, sidecar.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return S_ISLNK(found.st_mode) || look(sidecar + "/manifest", false);
}

PathKind kind_at(const std::string& path, bool thorough, int depth) {
  const Entry entry = look_at_entry(path);
  switch (entry.kind) {
    case EntryKind::other: return PathKind::other;
    case EntryKind::stub:
    case EntryKind::own_link: return PathKind::protected_file;
    case EntryKind::absent:
    case EntryKind::empty:
    case EntryKind::zeros:
    case EntryKind::regular: break;
    case EntryKind::other_link: {
      if (has_sidecar(path)) return PathKind::protected_file;
      if (depth >= longest_link_chain) return PathKind::other;
      const bool relative = entry.leads_to.front() != '/';
      return kind_at(relative ? parent_of(absolute_path(path)) + "/" + entry.leads_to : entry.leads_to, thorough, depth + 1);
    }
  }
  if (entry.kind == EntryKind::regular && !thorough) return PathKind::plain;
  if (has_sidecar(path)) return PathKind::protected_file;
  if (entry.kind == EntryKind::absent) return PathKind::absent;
  return entry.kind == EntryKind::empty ? PathKind::empty : PathKind::plain;
}

}  // namespace

namespace {

Entry look_once(const std::string& path) {
  Entry entry;
  auto state = look(path, false);
  if (!state) {
    if (state.status().sys_errno() != ENOENT) {
      entry.kind = EntryKind::other;
      entry.status = state.status();
    }
    return entry;
  }
  entry.state = *state;
  if (state->link()) {
    auto leads_to = read_link(path);
    if (leads_to) entry.leads_to = std::move(*leads_to);
    entry.kind = parse_own_link(entry) ? EntryKind::own_link : EntryKind::other_link;
    if (entry.leads_to.empty()) entry.kind = EntryKind::other;
  } else if (state->regular()) {
    look_at_content(entry, path);
  } else {
    entry.kind = EntryKind::other;
  }
  return entry;
}

}  // namespace

// What is renamed between two of our calls is looked for again.
Entry look_at_entry(const std::string& path) {
  constexpr int most_looks = 5;
  Entry entry = look_once(path);
  for (int look = 1; look < most_looks && entry.status.sys_errno() == ENOENT; ++look) entry = look_once(path);
  return entry;
}

bool is_second_name(const Entry& entry, const std::string& absolute) {
  return entry.kind == EntryKind::other_link && !look(sidecar_of(absolute) + "/manifest", false);
}

bool is_another_file(const layout::PathState& left, const layout::PathState& now, const std::string& path) {
  return now.device == left.device && now.inode != left.inode && keeps_inode_numbers(path);
}

bool has_rotted(const Entry& entry, const layout::PathState& left, const std::string& path) {
  const layout::PathState now = entry.state.path_state();
  const bool damaged = entry.kind == EntryKind::stub && entry.stub_status.kind() == Kind::corrupt;
  return damaged && left.known() && now.size == left.size && now.change_ns == left.change_ns && !is_another_file(left, now, path);
}

bool is_file_directory(std::string_view name) {
  if (name.size() < id_digits + 2 || name[name.size() - id_digits - 1] != '-') return false;
  return name.find_first_not_of("0123456789abcdef", name.size() - id_digits) == std::string_view::npos;
}

bool is_own_link(std::string_view leads_to) {
  if (leads_to.empty() || leads_to.front() != '/') return false;
  const size_t slash = leads_to.rfind('/');
  const std::string_view unit = leads_to.substr(slash + 1), above = leads_to.substr(0, slash);
  if (!unit.starts_with("unit") || unit.size() < 5 || unit.find_first_not_of("0123456789", 4) != std::string_view::npos) return false;
  const size_t next = above.rfind('/');
  return next != std::string_view::npos && next > 0 && is_file_directory(above.substr(next + 1));
}

std::string file_directory_name(const std::string& path, const std::string& file_id) {
  std::string stem;
  for (char c : name_of(path).substr(0, longest_stem)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || (c == '.' && !stem.empty());
    stem += plain ? c : '_';
  }
  return stem + "-" + file_id.substr(0, id_digits);
}

PathKind kind_of(const std::string& path, bool thorough) { return kind_at(path, thorough, 0); }

}  // namespace holdfast::catalog
