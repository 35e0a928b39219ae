#include "checkpoint/protect.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "catalog/environment.hpp"
#include "catalog/growing.hpp"
#include "catalog/user_files.hpp"
#include "engine/buffers.hpp"
#include "engine/protected_file.hpp"
#include "engine/remake.hpp"
#include "engine/write_once.hpp"
#include "exchange/exchange.hpp"
#include "layout/pack.hpp"

namespace holdfast::checkpoint {

std::string degraded(const std::string& file, int lost, bool no_more) {
  return fmt::format("{}: protected, but {} of its targets {} lost{}", file, lost, lost == 1 ? "is" : "are",
                     no_more ? ", and no further loss is tolerated" : "");
}

namespace {

constexpr uint64_t fetched_at_once = 16 << 20;
constexpr int most_times = 4;  // that a version is begun

Status read_all_at(int file, const std::string& path, uint64_t offset, ByteSpan into) {
  const auto got = catalog::read_at(file, path, offset, into);
  if (!got) return got.status();
  return *got == into.size() ? Status() : Status(Kind::io, path + " has become shorter while it was protected");
}

// What is to be written: a file, or a pack of some.
struct ToStore {
  layout::Version version;
  uint64_t bytes = 0;
  uint32_t mode = 0600;
  engine::ReadContent read;
  std::vector<layout::Packed> pack = {};
};

int lost_members_of(const catalog::Located& version) {
  const auto& members = version.manifest.members;
  return int(std::count_if(members.begin(), members.end(), [](const layout::ManifestMember& member) { return member.stale; }));
}

// Nodes that are lost on the way, or have no room, are left out the next time.
class Writing {
 public:
  Writing(const ToStore& content, const std::string& own, const Settings& settings) : content_(content), own_(own), settings_(settings) {}

  Result<ProtectedNow> run() {
    Status worst;
    for (int time = 0; time < most_times; ++time) {
      const size_t known = left_out_.size();
      auto located = catalog::prepare_version(content_.version, own_, content_.bytes, content_.mode, settings_, known_ ? &known_->manifest : nullptr,
                                              &left_out_);
      Status written = located ? write(*located) : located.status();
      if (written) return ended_with(std::move(*located));
      if (worst) worst = std::move(written);
      if (left_out_.size() == known) break;
    }
    // What bears no more loss is better than nothing, and what nobody can read now may be read when nodes come back.
    const bool is_read = known_ && lost_members_of(*known_) <= known_->manifest.geometry.scheme.m;
    if (is_read) return ended_with(*std::exchange(known_, std::nullopt));
    return worst;
  }

 private:
  Status write(catalog::Located& located) {
    if (!content_.pack.empty()) layout::fill(located.manifest, content_.pack);
    Status written = engine::write_once(located, content_.bytes, content_.read, settings_);
    if (written) return written;
    for (const layout::ManifestMember& member : located.manifest.members)
      if (member.stale) left_out_.emplace(member.path, Status(written.kind(), member.why));
    if (engine::counts_for_others(located)) keep_better(located);
    else (void)catalog::remove_version(located);
    return written;
  }

  ProtectedNow ended_with(catalog::Located version) {
    catalog::release_growing(version);
    if (known_) (void)catalog::remove_version(*known_);
    return {lost_members_of(version)};
  }

  // One that lacks more goes: who knows of it finds the other one.
  void keep_better(const catalog::Located& other) {
    const bool is_worse = known_ && lost_members_of(other) > lost_members_of(*known_);
    if (known_) (void)catalog::remove_version(is_worse ? other : *known_);
    if (!is_worse) known_ = other;
  }

  const ToStore& content_;
  const std::string& own_;
  const Settings& settings_;
  catalog::LeftOut left_out_;
  std::optional<catalog::Located> known_;  // to others, who may have dropped older ones since: there until there is another one
};

Result<ProtectedNow> write_version(const ToStore& content, const std::string& own, const Settings& settings) {
  return Writing(content, own, settings).run();
}

}  // namespace

Result<ProtectedNow> protect(const std::string& path, const layout::Version& version, const std::string& own, const Settings& settings,
                             const HasNames& has_names) {
  const catalog::Descriptor file(catalog::environment().openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0));
  if (!file) return Status::from_errno(errno, path);
  struct stat state;
  if (catalog::environment().fstat(file.get(), &state) != 0) return Status::from_errno(errno, path);
  if (has_names && state.st_nlink > 1)
    if (auto now = has_names()) return now;
  const auto read = [&](uint64_t offset, ByteSpan into) { return read_all_at(file.get(), path, offset, into); };
  return write_version({version, uint64_t(state.st_size), state.st_mode & 0777, read}, own, settings);
}

Result<ProtectedNow> protect_roll(const layout::Version& version, const std::string& own, const Settings& settings) {
  constexpr uint64_t for_the_rest = 128 << 10;  // of a manifest
  layout::Manifest manifest;
  manifest.version = version;
  if (layout::encode(manifest).size() + for_the_rest > layout::max_manifest_bytes || version.roll->files.size() > layout::max_rolled_files)
    return Status(Kind::invalid,
                  fmt::format("checkpoint {} has {} files, more than can be listed; write fewer and larger ones, or use patterns without wildcards",
                              version.step, version.roll->files.size()));
  const auto nothing = [](uint64_t, ByteSpan) { return Status(); };
  return write_version({version, 0, 0600, nothing}, own, settings);
}

uint64_t index_bytes_of(const layout::Version& version) {
  constexpr uint64_t for_numbers = 256, for_a_line = 48;
  uint64_t bytes = for_numbers + version.file.size() + version.stem.size();
  if (version.roll)
    for (const layout::Roll::File& file : version.roll->files) bytes += for_a_line + file.path.size();
  return bytes;
}

namespace {

// The contents of several files as one, read from its beginning to its end.
class OneAfterAnother {
 public:
  Status add(const ToPack& file) {
    layout::Packed& packed = files_.emplace_back(layout::Packed{file.version, bytes_, 0, 0600});
    paths_.push_back(file.path);
    if (file.is_roll()) return {};
    const auto state = catalog::look(file.path, false);
    if (!state) return state.status();
    packed.bytes = state->size, packed.mode = state->mode & 0777;
    bytes_ += packed.bytes;
    return {};
  }
  uint64_t bytes() const { return bytes_; }
  const std::vector<layout::Packed>& files() const { return files_; }

  Status read(uint64_t offset, ByteSpan into) {
    if (offset < files_[at_].offset) at_ = 0;  // once more from the beginning
    while (!into.empty()) {
      const layout::Packed& file = files_[at_];
      if (offset >= file.offset + file.bytes) {
        ++at_;
        continue;
      }
      const ByteSpan part = into.first(size_t(std::min<uint64_t>(into.size(), file.offset + file.bytes - offset)));
      HF_TRY(read_part(offset - file.offset, part));
      offset += part.size(), into = into.subspan(part.size());
    }
    return {};
  }

 private:
  Status read_part(uint64_t offset, ByteSpan into) {
    const std::string& path = paths_[at_];
    if (!open_ || opened_ != at_) {
      open_ = catalog::Descriptor(catalog::environment().openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0));
      if (!open_) return Status::from_errno(errno, path);
      opened_ = at_;
    }
    return read_all_at(open_.get(), path, offset, into);
  }

  std::vector<layout::Packed> files_;
  std::vector<std::string> paths_;
  uint64_t bytes_ = 0;
  size_t at_ = 0, opened_ = 0;
  catalog::Descriptor open_;
};

}  // namespace

Result<ProtectedNow> protect_together(const std::vector<ToPack>& files, const std::string& own, const Settings& settings) {
  OneAfterAnother content;
  for (const ToPack& file : files) HF_TRY(content.add(file));
  layout::Version version = files.front().version;
  version.roll.reset();
  const auto read = [&content](uint64_t offset, ByteSpan into) { return content.read(offset, into); };
  return write_version({version, content.bytes(), 0600, read, content.files()}, own, settings);
}

namespace {

// A version that is read from its beginning to its end.
class Reading {
 public:
  static Result<Reading> of(const layout::Manifest& manifest, const Settings& settings) {
    Reading reading;
    reading.alone_ = exchange::make_solo();
    auto file = engine::ProtectedFile::open(catalog::locate_version(manifest, settings), {.read = true, .write = false}, settings, *reading.alone_);
    if (!file) return file.status();
    reading.file_ = std::move(*file);
    reading.begin_ = manifest.offset_within;
    return reading;
  }
  Status read(uint64_t offset, ByteSpan into) {
    const Extent extent{begin_ + offset, into.size()};
    const auto got = file_->read({&extent, 1}, into);
    HF_TRY(got.status());
    // Its manifest says how much there is, and who removes a version meanwhile leaves less.
    return *got == into.size() ? Status() : Status(Kind::lost, fmt::format("{} of {} bytes are there", offset + *got, offset + into.size()));
  }
  Status close() { return file_->close(); }

 private:
  std::unique_ptr<exchange::Exchange> alone_;
  std::unique_ptr<engine::ProtectedFile> file_;
  uint64_t begin_ = 0;  // in a pack
};

}  // namespace

Status fetch(const layout::Manifest& manifest, const std::string& path, const Settings& settings, const engine::Progress& progress, bool over) {
  auto version = Reading::of(manifest, settings);
  if (!version) return version.status();
  catalog::Descriptor file;
  if (over) file = catalog::Descriptor(catalog::environment().openat(AT_FDCWD, path.c_str(), O_WRONLY | O_CLOEXEC, 0));
  if (over && !file) (void)catalog::unlink_file(path);  // one that its permissions keep from being written
  if (!file)
    file = catalog::Descriptor(catalog::environment().openat(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, manifest.mode));
  if (!file) return Status::from_errno(errno, path);
  (void)catalog::environment().fchmod(file.get(), manifest.mode & 0777);  // whatever this process's mask is
  engine::Buffer piece(std::min({fetched_at_once, settings.buffer_bytes, manifest.size}));
  if (!piece.valid() && manifest.size > 0) return Status(Kind::internal, "no memory for a piece of " + path);
  for (uint64_t at = 0; at < manifest.size; at += piece.size()) {
    const ByteSpan part = piece.span().first(size_t(std::min<uint64_t>(piece.size(), manifest.size - at)));
    HF_TRY(version->read(at, part));
    HF_TRY(catalog::write_at(file.get(), path, at, part));
    if (progress && !progress(at + part.size(), manifest.size)) return Status(Kind::internal, "stopped");
  }
  return version->close();
}

namespace {

// What came of writing a version that takes the place of another one. It is there on all of its nodes, or removed; those that failed meanwhile, or have no
// room, are taken out of `nodes`.
Status end_of(Status written, const catalog::Located& fresh, std::vector<std::string>& nodes) {
  const auto& members = fresh.manifest.members;
  const int stale = lost_members_of(fresh);
  if (written && stale > 0)
    written =
        Status(Kind::lost, fmt::format("{} of the {} nodes that it was to go to were lost meanwhile: run it again", stale, fresh.members.size()));
  if (written) catalog::release_growing(fresh);
  if (written) return written;
  for (const layout::ManifestMember& member : members)
    if (member.stale) std::erase(nodes, member.path);
  (void)catalog::remove_version(fresh);
  return stale > 0 && written.kind() == Kind::lost ? Status(Kind::io, written.sentence()) : written;  // nothing of the content is lost
}

// What was lost alone, beside what survives.
Status make_lost_anew(const catalog::Located& old, std::vector<std::string>& nodes, const Settings& settings) {
  auto fresh = catalog::prepare_successor(old, nodes, settings);
  if (!fresh) return fresh.status();
  Status written = engine::remake(old, *fresh, settings);
  return end_of(std::move(written), *fresh, nodes);
}

// All of it, over the first of `nodes`.
Status write_anew(const layout::Manifest& manifest, std::vector<std::string>& nodes, const Settings& settings) {
  auto old = Reading::of(manifest, settings);
  if (!old) return old.status();
  Settings over = settings;
  over.local = nodes;
  over.protect = manifest.geometry.scheme.name();
  over.units_remote = false;  // no node of these writes it: one is as good as the other
  auto fresh = catalog::prepare_version(*manifest.version, nodes[(manifest.version->rank + manifest.version->writer) % nodes.size()], manifest.size,
                                        manifest.mode, over, &manifest);
  if (!fresh) return fresh.status();
  fresh->manifest.pack = manifest.pack;
  Status written = engine::write_once(
      *fresh, manifest.size, [&](uint64_t offset, ByteSpan into) { return old->read(offset, into); }, over);
  return end_of(std::move(written), *fresh, nodes);
}

}  // namespace

Status renew(const layout::Manifest& version, const std::vector<std::string>& nodes, const Settings& settings) {
  const layout::Manifest& manifest = layout::stored(version);
  const size_t width = size_t(manifest.geometry.scheme.width());
  if (nodes.size() < width)
    return Status(Kind::io,
                  fmt::format("{} needs {} nodes and {} answer: start agents on more of them", manifest.geometry.scheme.name(), width, nodes.size()));
  const catalog::Located old = catalog::locate_version(manifest, settings);
  std::vector<std::string> left = nodes;
  Status written;
  for (size_t before = left.size() + 1; left.size() < before && left.size() >= width;) {
    before = left.size();
    written = make_lost_anew(old, left, settings);
    if (!written && left.size() == before) written = write_anew(manifest, left, settings);
    if (written) break;
  }
  HF_TRY(written);
  return catalog::remove_version(catalog::locate_version(manifest, settings));
}

std::vector<Protected> protected_of(const std::vector<catalog::FoundVersion>& found, const std::set<std::string>& damaged) {
  std::vector<Protected> all;
  for (const catalog::FoundVersion& one : found) {
    const bool readable = one.readable() && !damaged.contains(one.manifest.file_id);
    all.push_back({*one.manifest.version, one.manifest.file_id, one.manifest.size, readable, one.is_complete(), one.endures(), one.on});
  }
  return all;
}

}  // namespace holdfast::checkpoint
