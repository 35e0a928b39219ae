#include "tree/former.hpp"

#include "catalog/catalog.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/user_files.hpp"
#include "layout/manifest.hpp"

namespace holdfast::tree {

// Whether this process has it open. If not, it has a hidden name from here on, which nothing has yet.
bool Former::find_open() {
  const auto located = catalog::locate(path_, settings_, {.ignore_edits = true});
  if (located && (open_ = openings_.find(located->manifest.file_id))) return true;
  hidden_ = catalog::parent_of(path_) + "/" + catalog::removed_name(located ? located->manifest.file_id : layout::random_id());
  return false;
}

Status Former::hide() {
  const Status moved = when_free([this] { return catalog::rename(path_, hidden_, settings_); });
  if (moved.ok() || moved.kind() == Kind::busy) return moved;
  hidden_.clear();
  const Status removed = catalog::remove(path_, settings_);
  is_gone_ = removed.ok();
  return removed;
}

Status Former::put_aside() {
  if (find_open()) return when_free([this] { return open_->unlink(); });
  return hide();
}

Status Former::give_way(const std::string& by) {
  if (find_open()) {
    HF_TRY(when_free([this] { return open_->unlink(); }));
    return put_there(by);
  }
  const Status replaced = when_free([&] { return catalog::replace(by, path_, hidden_, settings_); });
  if (replaced.ok() || replaced.kind() == Kind::busy) return replaced;
  HF_TRY(hide());
  return put_there(by);
}

Status Former::put_there(const std::string& by) {
  const Status status = when_free([&] { return catalog::rename(by, path_, settings_); });
  if (!status.ok()) put_back();
  return status;
}

void Former::put_back() {
  Status status = is_gone_ ? Status(Kind::stale, "it had been edited from outside, and is gone") : Status();
  if (open_) status = when_free([this] { return open_->rename(path_); });
  else if (!hidden_.empty()) status = when_free([this] { return catalog::rename(hidden_, path_, settings_); });
  if (!status.ok()) lines_.push_back({path_, "what was there before could not be put back: " + status.sentence()});
}

void Former::take_back(const std::string& by) {
  const Status away = when_free([&] { return catalog::rename(path_, by, settings_); });
  if (away.ok()) put_back();
  else lines_.push_back({path_, "what was there before could not be put back: " + away.sentence()});
}

void Former::remove() {
  if (!hidden_.empty()) (void)catalog::remove(hidden_, settings_);
}

}  // namespace holdfast::tree
