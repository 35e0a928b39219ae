#include "checkpoint/directory_mark.hpp"

#include <fcntl.h>

#include <algorithm>

#include <fmt/format.h>

#include "catalog/environment.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr std::string_view made_prefix = ".holdfast-made-", removed_prefix = ".holdfast-removed-";

std::string path_of(const std::string& directory, const Run& run, DirectoryMark mark) {
  const auto prefix = mark == DirectoryMark::made ? made_prefix : removed_prefix;
  return fmt::format("{}/{}{}.{}", directory, prefix, run.id, text_of(run.attempt));
}

}  // namespace

bool is_directory_mark(std::string_view name) { return name.starts_with(made_prefix) || name.starts_with(removed_prefix); }

DirectoryMark directory_mark(const std::string& directory, const Run& run) {
  for (const DirectoryMark mark : {DirectoryMark::made, DirectoryMark::removed})
    if (catalog::look(path_of(directory, run, mark), false)) return mark;
  return DirectoryMark::none;
}

Status mark_directory(const std::string& directory, const Run& run, DirectoryMark mark) {
  const bool is_made = mark == DirectoryMark::made;
  const std::string at = path_of(directory, run, mark);
  const std::string before = path_of(directory, run, is_made ? DirectoryMark::removed : DirectoryMark::made);
  Status marked = catalog::move(before, at);
  if (marked.kind() == Kind::not_found) {
    const catalog::Descriptor fd(catalog::environment().openat(AT_FDCWD, at.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    marked = fd ? Status() : Status::from_errno(errno, at);
  }
  return marked;
}

void remove_marks(const std::string& directory) {
  const auto names = catalog::list_directory(directory);
  if (!names) return;
  for (const std::string& name : *names)
    if (is_directory_mark(name)) (void)catalog::unlink_file(directory + "/" + name);
}

bool clear_of_marks(const std::string& directory) {
  const auto names = catalog::list_directory(directory);
  if (!names || names->empty() || !std::all_of(names->begin(), names->end(), is_directory_mark)) return false;
  remove_marks(directory);
  return true;
}

}  // namespace holdfast::checkpoint
