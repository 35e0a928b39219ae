#include "tree/list.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <cstring>

#include "base/raw_syscalls.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/user_files.hpp"
#include "tree/look.hpp"

namespace holdfast::tree {

using catalog::Appearance;

bool show_entry(int directory, char* name, unsigned char& type) {
  if (name[0] != '.' && type != DT_LNK) return true;
  switch (catalog::appearance_of(directory, name, type)) {
    case Appearance::itself: break;
    case Appearance::hidden: return false;
    case Appearance::file: type = DT_REG; break;
    case Appearance::file_by_sidecar: {
      const std::string shown(*catalog::file_of_sidecar(name));
      std::memcpy(name, shown.c_str(), shown.size() + 1);
      type = DT_REG;
      break;
    }
  }
  return true;
}

bool may_be_hidden(std::string_view name) { return catalog::file_of_sidecar(name) || catalog::is_removed_name(name) || catalog::is_locks_name(name); }

bool is_hidden(const std::string& path) {
  const std::string parent = catalog::parent_of(catalog::absolute_path(path));
  const raw::Fd directory(raw::openat(AT_FDCWD, parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return directory && catalog::appearance_of(directory.get(), catalog::name_of(path).c_str(), DT_UNKNOWN) == Appearance::hidden;
}

bool passes_hidden(const std::string& path, size_t root) {
  for (size_t slash = path.find('/', root); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const size_t end = path.find('/', slash + 1);
    const std::string_view name = std::string_view(path).substr(slash + 1, end == std::string::npos ? end : end - slash - 1);
    if (may_be_hidden(name) && is_hidden(path.substr(0, end))) return true;
  }
  return false;
}

std::string end_at_own_link(const std::string& path) {
  constexpr int most_links = 40;  // as the kernel
  std::string at = catalog::absolute_path(path);
  for (int i = 0; i < most_links; ++i) {
    if (is_link_of_ours(AT_FDCWD, at.c_str())) return at;
    const auto link = catalog::read_link(at);
    if (!link || link->empty()) return "";
    at = catalog::absolute_path(link->front() == '/' ? *link : catalog::parent_of(at) + "/" + *link);
  }
  return "";
}

}  // namespace holdfast::tree
