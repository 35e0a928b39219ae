#include "cli/job/plain_before.hpp"

#include <chrono>

#include "catalog/entry.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::cli {

PlainBefore::PlainBefore()
    : began_ns_(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count()) {}

void PlainBefore::replaced(const std::string& path) {
  const std::lock_guard lock(mutex_);
  replaced_.insert(path);
}

void PlainBefore::remove(const std::vector<checkpoint::DrainedCheckpoint>& drained, const std::set<std::string>& kept) {
  const std::lock_guard lock(mutex_);
  for (const std::string& path : kept) replaced_.erase(path);
  for (const checkpoint::DrainedCheckpoint& one : drained)
    for (const checkpoint::DrainedFile& file : one.files) replaced_.erase(file.path);
  for (const std::string& path : replaced_) {
    const auto kind = catalog::look_at_entry(path).kind;
    const auto state = catalog::look(path, false);
    const bool plain = kind == catalog::EntryKind::regular || kind == catalog::EntryKind::empty || kind == catalog::EntryKind::zeros;
    if (plain && state && state->change_ns < began_ns_) (void)catalog::unlink_file(path);
  }
}

}  // namespace holdfast::cli
