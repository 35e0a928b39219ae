#include "checkpoint/drain.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "catalog/entry.hpp"
#include "catalog/environment.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/drained.hpp"
#include "checkpoint/protect.hpp"

namespace holdfast::checkpoint {

using catalog::Descriptor;
using catalog::environment;

namespace {

constexpr const char* growing_prefix = ".holdfast-drain-";
constexpr const char* lock_name = "lock";
constexpr int most_tries = 10;

// The lock last: without it the directory is nobody's, and must be empty.
void remove_all(const std::string& directory) {
  if (const auto names = catalog::list_directory(directory))
    for (const std::string& name : *names)
      if (name != lock_name) (void)catalog::unlink_file(directory + "/" + name);
  (void)catalog::unlink_file(fmt::format("{}/{}", directory, lock_name));
  (void)environment().unlinkat(AT_FDCWD, directory.c_str(), AT_REMOVEDIR);
}

// The kernel lets go of a lock when its holder dies.
bool lock(const Descriptor& file) { return environment().lock_whole(file.get()) == 0; }

// Where the files of one directory grow: in a directory of its own there, from where a rename brings each to its place.
class Growing {
 public:
  explicit Growing(const std::string& directory) {
    remove_left(directory);
    // Before it is locked another drain may take it for one that was left.
    for (int time = 0; time < most_tries; ++time)
      if (make(directory)) return;
  }
  ~Growing() { remove_all(path_); }
  Growing(const Growing&) = delete;
  const Status& status() const { return status_; }
  std::string next() { return fmt::format("{}/{}", path_, ++count_); }

 private:
  bool make(const std::string& directory) {
    path_ = fmt::format("{}/{}{}", directory, growing_prefix, layout::random_id().substr(0, 8));
    status_ = catalog::make_directory(path_);
    if (!status_) return true;
    lock_ = Descriptor(environment().openat(AT_FDCWD, (path_ + "/" + lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock_) status_ = Status::from_errno(errno, path_);
    // Where the file system has no locks nobody can take it either, and what a killed drain leaves stays.
    return lock_ && (lock(lock_) || errno != EWOULDBLOCK);
  }

  static void remove_left(const std::string& directory) {
    const auto names = catalog::list_directory(directory);
    if (!names) return;
    for (const std::string& name : *names) {
      if (!name.starts_with(growing_prefix)) continue;
      const std::string left = directory + "/" + name;
      const Descriptor held(environment().openat(AT_FDCWD, (left + "/" + lock_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0));
      if (held && lock(held)) remove_all(left);
      if (!held && errno == ENOENT) (void)environment().unlinkat(AT_FDCWD, left.c_str(), AT_REMOVEDIR);
    }
  }

  std::string path_;
  Descriptor lock_;
  Status status_;
  unsigned count_ = 0;
};

// What stands there may be replaced: nothing, or a plain file.
Status check_place(std::string& place) {
  catalog::Entry entry = catalog::look_at_entry(place);
  if (entry.kind == catalog::EntryKind::other_link) entry = catalog::look_at_entry(place = catalog::resolved_path(place));
  switch (entry.kind) {
    case catalog::EntryKind::absent:
    case catalog::EntryKind::empty:
    case catalog::EntryKind::zeros:
    case catalog::EntryKind::regular: return {};
    case catalog::EntryKind::stub:
    case catalog::EntryKind::own_link:
      return Status(Kind::exists, fmt::format("{} is a protected file: make it plain with 'holdfast drain', or remove it", place));
    default: return Status(Kind::exists, fmt::format("{} is no plain file: move it out of the way", place));
  }
}

class Drain {
 public:
  // What is done while is_drain_beside() the files: when all have grown there, and when so many have their places, or all and for good.
  struct Also {
    std::function<void(const std::vector<std::string>& grown)> before;
    std::function<void(size_t placed, bool done)> after;
  };
  Drain(const Settings& settings, const engine::Progress& progress) : settings_(settings), progress_(progress) {}

  Result<Drained> run(const std::vector<layout::Manifest>& files, const Place& place, const Also& also) {
    for (const layout::Manifest& file : files) {
      auto to = place(file.version ? file.version->file : file.path);
      if (!to) return to.status();
      HF_TRY(check_place(*to));
      drained_.files.push_back(std::move(*to));
      drained_.bytes += file.size;
    }
    for (size_t i = 0; i < files.size(); ++i) HF_TRY(grow(files[i], drained_.files[i]));
    if (also.before) also.before(grown_);
    size_t placed = 0;
    const Status done = place_all(placed);
    if (also.after) also.after(placed, done.ok());
    if (!done) return done;
    return std::move(drained_);
  }

 private:
  Status grow(const layout::Manifest& file, const std::string& to) {
    const std::string directory = catalog::parent_of(to);
    auto& growing = growing_[directory];
    if (!growing) {
      HF_TRY(catalog::make_with_parents(directory));
      growing = std::make_unique<Growing>(directory);
    }
    HF_TRY(growing->status());
    grown_.push_back(growing->next());
    const uint64_t before = done_;
    HF_TRY(fetch(file, grown_.back(), settings_, [&](uint64_t bytes, uint64_t) { return progress_(done_ = before + bytes, drained_.bytes); }));
    return catalog::sync_file(grown_.back());
  }

  Status place_all(size_t& placed) {
    for (; placed < grown_.size(); ++placed) HF_TRY(catalog::move(grown_[placed], drained_.files[placed]));
    for (const auto& [directory, growing] : growing_) HF_TRY(catalog::sync_directory(directory));
    return {};
  }

  const Settings& settings_;
  const engine::Progress& progress_;
  Drained drained_;
  uint64_t done_ = 0;
  std::vector<std::string> grown_;
  std::map<std::string, std::unique_ptr<Growing>> growing_;
};

}  // namespace

Result<std::string> own_place(const std::string& file) { return file; }

Result<Drained> drain(const std::vector<layout::Manifest>& files, const Place& place, const Settings& settings, const engine::Progress& progress) {
  return Drain(settings, progress).run(files, place, {});
}

Result<Drained> drain_to_own_places(const std::vector<layout::Manifest>& files, const Ages& ages, const Settings& settings,
                                    const engine::Progress& progress, const std::function<layout::Attempt()>& running) {
  const auto keep = [&](const Result<DrainedCheckpoint>& record) {
    if (record && !record->files.empty())
      (void)keep_record(*record, settings.local, settings.deadline_ms, false, running ? running() : layout::Attempt());
  };
  const bool are_singles =
      std::any_of(files.begin(), files.end(), [](const layout::Manifest& file) { return file.version && file.version->is_single(); });
  Drain::Also also;
  if (are_singles) also.before = [&](const std::vector<std::string>& grown) { keep(about_to_be_drained(files, grown)); };
  also.after = [&](size_t placed, bool done) {
    if (done || are_singles) keep(drained_now({files.begin(), files.begin() + std::ptrdiff_t(placed)}, ages));
  };
  return Drain(settings, progress).run(files, own_place, also);
}

bool is_drain_beside(const std::string& path) {
  const auto names = catalog::list_directory(catalog::parent_of(path));
  return !names || std::any_of(names->begin(), names->end(), [](const std::string& name) { return name.starts_with(growing_prefix); });
}

}  // namespace holdfast::checkpoint
