// holdfast import SRC [DST]: an existing plain file becomes a protected one. SRC is left as it is until the
// protected file has been read back, compared and verified. Where DST is SRC it is replaced by one rename.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/node_path.hpp"
#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "catalog/stub.hpp"
#include "catalog/user_files.hpp"
#include "cli/command.hpp"
#include "cli/files/copy.hpp"
#include "cli/job/pool.hpp"
#include "cli/job/program.hpp"
#include "cli/output.hpp"
#include "tree/conversion.hpp"

namespace holdfast::cli {

namespace {

struct ImportOptions {
  std::string source, destination;
  bool json = false;
  SettingsOptions settings;
};

struct Source {
  std::string path;
  Descriptor descriptor;
  struct stat before = {};

  bool unchanged() const {
    struct stat now = {};
    return ::fstat(descriptor.get(), &now) == 0 && now.st_size == before.st_size &&
           std::memcmp(&now.st_mtim, &before.st_mtim, sizeof now.st_mtim) == 0;
  }
  Status as_it_was() const {
    return unchanged() ? Status() : Status(Kind::io, path + " was changed while it was read: nothing was changed, run it again");
  }
  // For a file that is to take its place: what is written to it from here on would be lost.
  Status nobody_writes() const {
    if (tree::is_leased_to_writers(descriptor.get()))
      return Status(Kind::busy, path + " is open for writing: close it there and run it again, or name another path for the protected file", EBUSY);
    return as_it_was();
  }
  Status has_one_name() const {
    if (before.st_nlink == 1) return Status();
    return Status(Kind::invalid,
                  fmt::format("{} has {} names (hard links), and all but this one would stay plain: remove the others, or name another path "
                              "for the protected file",
                              path, before.st_nlink));
  }
};

// Plain, or protected once and changed from outside since.
Result<Source> open_source(const std::string& path, const Settings& settings) {
  if (catalog::kind_of(path) == catalog::PathKind::protected_file) {
    auto located = catalog::locate(path, settings);
    if (located) return Status(Kind::exists, fmt::format("{} is protected already: see holdfast status {}", path, shell_word(path)));
    if (located.status().kind() != Kind::stale) return located.status();
  }
  Source source{path, Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), {}};
  if (!source.descriptor.open() || ::fstat(source.descriptor.get(), &source.before) != 0) return Status::from_errno(errno, path + " cannot be read");
  if (!S_ISREG(source.before.st_mode)) return Status(Kind::invalid, path + " is not a regular file: name one");
  std::string head(catalog::stub_line.size(), '\0');
  if (::pread(source.descriptor.get(), head.data(), head.size(), 0) > 0 && head == catalog::stub_line)
    return Status(Kind::invalid, fmt::format("{} is the stub of a protected file, not its content: see holdfast status {}", path, shell_word(path)));
  return source;
}

Status copy_in(const Source& source, engine::ProtectedFile& file, const engine::Progress& progress) {
  const uint64_t size = uint64_t(source.before.st_size), row = file.located().manifest.geometry.row_bytes();
  Bytes buffer(std::max<uint64_t>(1, (16 << 20) / row) * row);
  for (uint64_t offset = 0; offset < size;) {
    const uint64_t want = std::min<uint64_t>(buffer.size(), size - offset);
    auto got = read_whole(source.descriptor.get(), ByteSpan(buffer).first(want), source.path);
    if (!got) return got.status();
    if (*got != want) return Status(Kind::io, source.path + " became shorter while it was read: nothing was changed, run it again");
    const Extent extent{offset, want};
    const ByteView piece(buffer.data(), want);
    // Zeros stay holes; the size is set below.
    if (!all_zero(piece)) HF_TRY(file.write_all({&extent, 1}, piece));
    offset = extent.end();
    if (!progress(offset, size)) return stopped();
  }
  return file.set_size(size);
}

Status compare(const Source& source, engine::ProtectedFile& file, const engine::Progress& progress) {
  const Status different(Kind::corrupt, source.path + " and what was stored of it differ: nothing was changed, run it again");
  const auto size = file.size();
  if (!size || *size != uint64_t(source.before.st_size) || ::lseek(source.descriptor.get(), 0, SEEK_SET) != 0) return different;
  Bytes original;
  HF_TRY(read_through(file, progress, [&](uint64_t, ByteView piece) -> Status {
    original.resize(piece.size());
    auto got = read_whole(source.descriptor.get(), original, source.path);
    if (!got) return got.status();
    return *got == piece.size() && std::equal(piece.begin(), piece.end(), original.begin()) ? Status() : different;
  }));
  return source.as_it_was();
}

// Everything up to the point where the protected file is known to be whole.
Status fill(const Source& source, const std::string& path, const Settings& settings) {
  {
    auto fresh = file::Alone::open(path, {.write = true, .make = true, .exclusive = true, .mode = source.before.st_mode & 0777}, settings);
    if (!fresh) return fresh.status();
    ProgressBar bar("import " + source.path);
    HF_TRY(copy_in(source, **fresh, bar.callback()));
    HF_TRY(fresh->close());
  }
  {
    auto again = open_to_read(path, settings);
    if (!again) return again.status();
    ProgressBar bar("compare " + source.path);
    HF_TRY(compare(source, **again, bar.callback()));
    HF_TRY(again->close());
  }
  auto located = catalog::locate(path, settings);
  if (!located) return located.status();
  ProgressBar bar("verify " + source.path);
  auto report = engine::verify(*located, settings, bar.callback());
  if (!report) return report.status();
  if (report->stopped) return stopped();
  if (report->status.health == engine::Health::lost || report->lost_rows)
    return Status(Kind::lost, fmt::format("{} could not be stored safely: mend the targets (holdfast targets) and run it again", source.path));
  return Status();
}

// As `drain` gives them back: whose it is, as far as this user may say so.
void give_to_owner(const std::string& path, const struct stat& before, const Settings& settings) {
  if (before.st_uid == ::geteuid() && before.st_gid == ::getegid()) return;
  const auto located = catalog::locate(path, settings);
  std::vector<std::string> places{path, catalog::sidecar_of(path)};
  if (located && !located->single())
    for (const catalog::Member& member : located->members)
      if (member.usable() && !names_a_node(member.path)) places.push_back(member.path + "/" + located->manifest.directory);
  std::error_code ignored;
  for (const std::string& place : places) {
    (void)!::lchown(place.c_str(), before.st_uid, before.st_gid);
    if (!std::filesystem::is_directory(place, ignored)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place, ignored))
      (void)!::lchown(entry.path().c_str(), before.st_uid, before.st_gid);
  }
}

Status take_place(const Source& source, const std::string& path, const std::string& to, const Settings& settings) {
  HF_TRY(source.nobody_writes());
  HF_TRY(catalog::rename(path, to, settings));
  give_to_owner(to, source.before, settings);  // the rename has written manifests, too
  const timespec times[2] = {source.before.st_atim, source.before.st_mtim};
  for (const int flags : {0, AT_SYMLINK_NOFOLLOW})
    (void)::utimensat(AT_FDCWD, to.c_str(), times, flags);  // the entry of a mirror is a link to a copy
  // What stands there looks like this from now on, and nobody takes it for changed from outside.
  auto there = catalog::locate(to, settings, {.ignore_edits = true});
  return there ? there->path_keeper->publish(there->manifest, true) : there.status();
}

// A directory beside SRC in which the protected file grows under its own name; gone again when it is empty.
class Scratch {
 public:
  explicit Scratch(const std::string& beside) {
    if (beside.empty()) return;
    directory_ = directory_of(beside) + "/.import-XXXXXX";
    if (!::mkdtemp(directory_.data())) status_ = Status::from_errno(errno, directory_of(beside) + " cannot be written");
  }
  ~Scratch() {
    if (!directory_.empty()) ::rmdir(directory_.c_str());
  }
  Scratch(const Scratch&) = delete;
  const std::string& directory() const { return directory_; }
  const Status& status() const { return status_; }

 private:
  std::string directory_;
  Status status_;
};

// A protected file that was changed from outside is protected again as it was, where the user says nothing else.
void take_from_before(const std::string& path, Settings& settings) {
  if (settings.protects() || catalog::kind_of(path) != catalog::PathKind::protected_file) return;
  settings = tree::made_like(path, settings, true);
}

Result<uint64_t> import_file(const std::string& from, const std::string& to, const Settings& settings) {
  if (!settings.protects())
    return Status(Kind::invalid, "no scheme is named: say how to protect it, for example --protect mirror:2 --targets /mnt/a,/mnt/b");
  HF_TRY(settings.check());
  auto source = open_source(from, settings);
  if (!source) return source.status();
  const bool in_place = from == to;
  if (!in_place && catalog::kind_of(to) != catalog::PathKind::absent && catalog::kind_of(to) != catalog::PathKind::empty)
    return Status(Kind::exists, fmt::format("{} exists: choose another name, or remove it first", to));
  if (in_place) HF_TRY(source->has_one_name());
  if (in_place) HF_TRY(source->nobody_writes());
  const Scratch scratch(in_place ? to : "");
  if (!scratch.status()) return scratch.status();
  const std::string path = in_place ? scratch.directory() + "/" + base_name(to) : to;
  Status status = fill(*source, path, settings);
  if (status && in_place) status = take_place(*source, path, to, settings);
  if (!status) {
    if (catalog::kind_of(path) == catalog::PathKind::protected_file) (void)catalog::remove(path, settings);
    return status;
  }
  return uint64_t(source->before.st_size);
}

int run_import(const ImportOptions& options) {
  catch_interrupts();  // before anything is made that would have to be cleaned away
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  // What a link leads to: the link stays one.
  const std::string from = options.destination.empty() ? catalog::resolved_path(path_from_here(options.source)) : path_from_here(options.source);
  const std::string to = options.destination.empty() ? from : path_from_here(options.destination);
  take_from_before(from, *settings);
  if (const auto nodes = resolve_pool(*settings, {}); !nodes) return fail_for(options.source, nodes.status()), int(exit_error);
  if (Status opened = open_pool(*settings); !opened) return fail_for(options.source, opened), int(exit_error);
  auto bytes = import_file(from, to, *settings);
  if (!bytes) return interrupted() ? fail(bytes.status(), exit_stopped) : (fail_for(options.source, bytes.status()), int(exit_error));
  if (options.json) print_json({{"source", from}, {"destination", to}, {"bytes", *bytes}, {"scheme", *settings->protect}});
  else show("{} is protected with {} ({}, verified)\n", to, *settings->protect, human_bytes(*bytes));
  return exit_ok;
}

}  // namespace

void add_import(CLI::App& app, int& code) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* sub = app.add_subcommand("import", "Protect an existing plain file");
  sub->add_option("SRC", options->source, "Plain file")->required()->type_name("");
  sub->add_option("DST", options->destination, "The protected file's path; none: SRC itself")->type_name("");
  sub->add_flag("--json", options->json, "The outcome for a machine");
  options->settings.add_making(*sub);
  sub->footer("Example:\n  holdfast import results.dat --protect mirror:2 --targets /mnt/a,/mnt/b");
  sub->callback([options, &code] { code = run_import(*options); });
}

}  // namespace holdfast::cli
