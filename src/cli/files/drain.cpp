// holdfast drain FILE...: protected files become plain ones, for storage that will be gone soon.
#include "cli/files/drain.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/node_path.hpp"
#include "base/say.hpp"
#include "catalog/catalog.hpp"
#include "catalog/entry.hpp"
#include "catalog/give_way.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "cli/command.hpp"
#include "cli/files/copy.hpp"
#include "cli/job/program.hpp"
#include "cli/output.hpp"
#include "engine/give_way.hpp"

namespace holdfast::cli {

namespace {

struct DrainOptions {
  std::vector<std::string> files;
  bool json = false;
  SettingsOptions settings;
};

// Beside the file, so that it can take its place. Its name is short however long the file's is. Removed where it does not come to that.
class Copy {
 public:
  explicit Copy(const std::string& path) : path_(directory_of(path) + "/.drain-XXXXXX"), out_(::mkostemp(path_.data(), O_CLOEXEC)) {}
  ~Copy() {
    if (out_.open() && !taken_) ::unlink(path_.c_str());
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  Status state() const { return out_.open() ? Status() : Status::from_errno(errno, path_ + " cannot be created"); }
  const std::string& path() const { return path_; }
  int get() const { return out_.get(); }
  void is_taken() { taken_ = true; }

 private:
  std::string path_;
  Descriptor out_;
  bool taken_ = false;
};

// As natively: whoever reads it sees when it was written, and whose it is as far as this user may say so.
Status take_looks(int fd, const layout::Manifest& manifest) {
  struct stat now = {};
  if (::fchmod(fd, catalog::mode_at_path(manifest)) != 0) return Status::from_errno(errno, manifest.path + " cannot be given its permissions");
  if (::stat(manifest.path.c_str(), &now) != 0) return {};
  (void)!::fchown(fd, now.st_uid, now.st_gid);
  catalog::say_made_from(fd, manifest.file_id);
  const timespec times[2] = {now.st_atim, now.st_mtim};
  (void)::futimens(fd, times);
  return {};
}

int drain(const DrainOptions& options) {
  catch_interrupts();
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  int code = exit_ok;
  nlohmann::json done = nlohmann::json::array();
  for (const std::string& file : options.files) {
    const auto bytes = drain_file(file, *settings);
    if (!bytes && interrupted()) return fail(bytes.status(), exit_stopped);
    if (!bytes) code = std::max(code, fail_for(file, bytes.status(), *settings));
    else if (options.json) done.push_back({{"path", path_from_here(file)}, {"bytes", *bytes}});
    else show("{} is plain now ({})\n", file, human_bytes(*bytes));
  }
  if (options.json) print_json(done);
  return code;
}

}  // namespace

Result<uint64_t> drain_file(const std::string& path, const Settings& settings) {
  auto opened = open_to_read(path_from_here(path), settings);
  if (!opened) return opened.status();
  engine::ProtectedFile& file = **opened;
  const layout::Manifest manifest = file.located().manifest;
  Copy copy(manifest.path);
  HF_TRY(copy.state());
  ProgressBar bar("drain " + path);
  HF_TRY(copy_out(file, copy.get(), copy.path(), bar.callback()));
  HF_TRY(take_looks(copy.get(), manifest));
  const auto size = file.size();
  HF_TRY(opened->close());
  HF_TRY(engine::give_way_to_plain(manifest.path, copy.path(), manifest.epoch, settings));
  copy.is_taken();
  return size;
}

namespace {

// A set may have directories that all nodes share as well.
bool is_lost_with_its_nodes(const layout::Manifest& manifest) {
  const auto on_nodes =
      std::count_if(manifest.members.begin(), manifest.members.end(), [](const layout::ManifestMember& member) { return names_a_node(member.path); });
  return on_nodes > manifest.geometry.scheme.m;
}

}  // namespace

Result<std::vector<FileOnNodes>> files_on_nodes(const Settings& settings) {
  const auto set =
      settings.local.empty() ? catalog::open_set(settings.targets, settings) : catalog::look_at_pool(settings.local, settings.deadline_ms);
  if (!set) return set.status();
  const auto manifests = catalog::list_set(*set);
  if (!manifests) return manifests.status();
  std::vector<FileOnNodes> files;
  for (const layout::Manifest& manifest : *manifests) {
    if (!is_lost_with_its_nodes(manifest)) continue;
    const catalog::Entry entry = catalog::look_at_entry(manifest.path);
    if (entry.kind == catalog::EntryKind::stub && entry.stub.file_id == manifest.file_id) files.push_back({manifest.path, manifest.job});
  }
  std::sort(files.begin(), files.end(), [](const FileOnNodes& a, const FileOnNodes& b) { return a.path < b.path; });
  return files;
}

void add_drain(CLI::App& app, int& code) {
  auto options = std::make_shared<DrainOptions>();
  CLI::App* sub = app.add_subcommand("drain", "Make protected files plain ones at their paths, for storage that will be gone soon");
  sub->add_option("FILE", options->files, "Protected files")->required()->type_name("");
  sub->add_flag("--json", options->json, "For machines");
  options->settings.add_finding(*sub);
  sub->footer("Example:\n  holdfast drain out.dat\nWhat a program has open for writing is left as it is.");
  sub->callback([options, &code] { code = drain(*options); });
}

}  // namespace holdfast::cli
