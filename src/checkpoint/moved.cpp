#include "checkpoint/moved.hpp"

#include <algorithm>

#include "catalog/growing.hpp"
#include "catalog/user_files.hpp"
#include "engine/remake.hpp"
#include "engine/write_once.hpp"

namespace holdfast::checkpoint {

std::vector<LocalFile> other_names(const LocalFiles& files, const std::string& path, std::initializer_list<State> states) {
  std::vector<LocalFile> names;
  struct stat file;
  if (catalog::environment().fstatat(AT_FDCWD, path.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0 || file.st_nlink < 2) return names;
  for (const State state : states)
    for (LocalName& name : files.list(state)) {
      const std::string there = files.path(state, name);
      const auto other = there == path ? Status(Kind::not_found, "") : catalog::look(there, false);
      if (other && other->device == file.st_dev && other->inode == file.st_ino) names.push_back({state, std::move(name)});
    }
  return names;
}

std::optional<LocalFile> other_name(const LocalFiles& files, const std::string& path) {
  auto names = other_names(files, path, {State::protecting, State::kept, State::restored});
  if (names.empty()) return {};
  const auto stored = std::find_if(names.begin(), names.end(), [](const LocalFile& one) { return one.state != State::protecting; });
  return std::move(stored == names.end() ? names.back() : *stored);
}

namespace {

// What was restored has the number 0 where it is of the checkpoint that the attempt began with.
bool is_version_of(const layout::Version& version, const LocalName& name, const Run& run) {
  if (version.run != run.id || version.roll || version.file != name.file || version.step != name.step) return false;
  if (name.number > 0) return version.attempt == run.attempt && version.number == name.number;
  if (version.is_single()) return false;  // of which of its versions that is nobody says
  return run.from && !run.from->drained && version.attempt == run.from->attempt && version.step == run.from->step;
}

// Whether the new version would have been laid out so as well.
bool is_as_asked(const layout::Manifest& manifest, const std::string& own, const Settings& settings) {
  const auto is_own = [&](const layout::ManifestMember& member) { return member.path == own; };
  const bool own_serves = std::any_of(manifest.members.begin(), manifest.members.end(), is_own);
  return manifest.geometry.scheme.name() == settings.protect.value_or("") && !(settings.units_remote && own_serves);
}

Status cannot(const std::string& file, const char* why) { return Status(Kind::unsupported, file + ": " + why); }

}  // namespace

Result<ProtectedNow> protect_moved(const std::string& path, const layout::Version& version, const LocalFile& other, const std::string& own,
                                   const Run& run, const std::vector<catalog::FoundVersion>& found, const Settings& settings) {
  const auto file = catalog::look(path, false);
  if (!file) return file.status();
  const auto is_it = [&](const catalog::FoundVersion& one) {
    const layout::Manifest& manifest = one.manifest;
    return is_version_of(*manifest.version, other.name, run) && manifest.size == file->size && one.is_complete() && !manifest.within &&
           is_as_asked(manifest, own, settings);
  };
  const auto one = std::find_if(found.begin(), found.end(), is_it);
  if (one == found.end()) return cannot(version.file, "no version of its former name is stored alone, and whole, as this one would be");
  const catalog::Located old = catalog::locate_version(one->manifest, settings);
  auto fresh = catalog::prepare_renamed(old, version, own, file->mode & 0777);
  if (!fresh) return fresh.status();
  const Status written = engine::remake(old, *fresh, settings);
  // What counts for others goes with its checkpoint, beside the one that is written then.
  if (!written && !engine::counts_for_others(*fresh)) (void)catalog::remove_version(*fresh);
  HF_TRY(written);
  catalog::release_growing(*fresh);
  return ProtectedNow{};
}

}  // namespace holdfast::checkpoint
