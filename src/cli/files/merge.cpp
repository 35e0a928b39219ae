// holdfast merge PATH…: puts into each file what jobs have left in the record logs of its shared file pointer, or in the parts of its replicas.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "catalog/user_files.hpp"
#include "cli/command.hpp"
#include "cli/files/copy.hpp"
#include "cli/files/merge_parts.hpp"
#include "cli/output.hpp"
#include "file/open.hpp"
#include "frontend/typemap.hpp"
#include "layers/plain/plain_file.hpp"
#include "layers/shared_records/left_records.hpp"
#include "layers/shared_records/names.hpp"
#include "target/address.hpp"

namespace holdfast::cli {

namespace {

using layers::LeftRecords;
using layers::LeftSession;

struct MergeOptions {
  std::vector<std::string> paths;
  bool json = false, discard = false, accept_changes = false, break_locks = false;
  SettingsOptions settings;
};

// Where the records go, open to be written: a plain or a protected file.
class Main {
 public:
  static Result<Main> open(const std::string& path, const std::optional<catalog::Located>& located, const Settings& settings) {
    Main main;
    if (located) {
      auto file = file::Alone::open({*located, false}, {.write = true}, settings);
      if (!file) return file.status();
      main.protected_.emplace(std::move(*file));
    } else {
      main.descriptor_ = layers::open_again(path, true);
      if (!main.descriptor_) return Status::from_errno(errno, path + " cannot be opened to write");
      main.plain_ = layers::plain_file(main.descriptor_.get(), path);
    }
    return main;
  }
  FileLayer& operator*() const { return plain_ ? *plain_ : static_cast<FileLayer&>(**protected_); }
  // Durable, whatever a close is to do: the logs go next.
  Status finish() {
    const Status synced = (**this).sync(), closed = protected_ ? protected_->close() : Status();
    return synced.ok() ? closed : synced;
  }

 private:
  raw::Fd descriptor_;
  std::unique_ptr<FileLayer> plain_;
  std::optional<file::Alone> protected_;
};

// The view of a session as the file's bytes. What it says was checked field by field; what follows from it for a position is checked here.
Result<std::vector<Extent>> extents_in_file(const layout::SessionView& view, const Extent& extent) {
  frontend::Typemap map;
  for (const layout::ViewRun& run : view.runs) map.add({run.disp, run.length, run.count, run.stride, frontend::Basic::raw});
  map.set_bounds(0, int64_t(view.extent));
  map.finish();
  const __int128 copies = extent.end() / map.size() + 1;
  if (copies * __int128(view.extent) + map.true_ub() + __int128(view.disp) > __int128(INT64_MAX) || extent.end() < extent.offset)
    return Status(Kind::corrupt, "a record would lie beyond any file's end");
  return frontend::extents_of(map, int64_t(view.disp), extent.offset, extent.length);
}

// One PATH.
class Merging {
 public:
  Merging(std::string path, const MergeOptions& options, const Settings& settings) : path_(std::move(path)), options_(options), settings_(settings) {}

  Status run() {
    if (catalog::kind_of(path_) != catalog::PathKind::protected_file) {
      auto joined = merge_parts(path_, {options_.discard, options_.accept_changes});
      HF_TRY(joined.status());
      parts_ = *joined;
    }
    auto found = find_what_is_over();
    if (!found) return found.status();
    const std::vector<LeftSession>& sessions = *found;
    if (sessions.empty()) return Status();
    if (options_.discard) return discard(sessions);
    const auto old = std::find_if(sessions.begin(), sessions.end(), [](const LeftSession& s) { return s.superseded && s.records > 0; });
    if (old != sessions.end())
      return Status(
          Kind::stale,
          fmt::format("{}: {} of an earlier run were not merged before a later run, which may have taken their places; nothing was changed; "
                      "to discard them: holdfast merge --discard {}",
                      path_, plural(old->records, "record"), path_));
    for (const LeftSession& session : sessions) HF_TRY(merge(session));
    return Status();
  }

  Status break_locks() {
    auto broken = left_->break_locks();
    if (broken && !options_.json)
      for (const std::string& sentence : *broken) show("{}: removed {}\n", path_, sentence);
    return broken.status();
  }

  nlohmann::json json() const {
    nlohmann::json all = {{"path", path_},
                          {"records", records_},
                          {"bytes", bytes_},
                          {"torn", torn_},
                          {"discarded", discarded_ + parts_.discarded},
                          {"kept_for", kept_for_},
                          {"uncertainty_ns", uncertainty_ns_}};
    if (parts_.writes > 0) all["joined_writes"] = parts_.writes, all["joined_bytes"] = parts_.bytes;
    return all;
  }
  void print() const {
    if (parts_.discarded > 0) show("{}: {} in parts thrown away\n", path_, plural(parts_.discarded, "write"));
    if (parts_.writes > 0) show("{}: {} joined, {}\n", path_, plural(parts_.writes, "write"), human_bytes(parts_.bytes));
    if (parts_.torn) show("  the last one was not over when the job ended\n");
    if (records_ + discarded_ + torn_ == 0 && parts_.writes + parts_.discarded + parts_.torn > 0) return;
    if (discarded_ > 0) show("{}: {} thrown away\n", path_, plural(discarded_, "record"));
    else if (records_ == 0) show("{}: nothing to merge\n", path_);
    else show("{}: {} merged, {}\n", path_, plural(records_, "record"), human_bytes(bytes_));
    if (uncertainty_ns_ > 0) show("  the order between nodes is true within {:.1f} us\n", double(uncertainty_ns_) / 1000);
    if (torn_ > 0)
      show("  {} not whole and left out: the first in {}\n", torn_ == 1 ? "1 record was" : fmt::format("{} records were", torn_), torn_in_);
    if (kept_for_.empty()) return;
    std::string files;
    for (const std::string& file : kept_for_) files += " " + shell_word(file);
    show("  the log stays until the records of all its files are merged: holdfast merge{}\n", files);
  }

 private:
  // What a job has written last is found once it is known to have ended, so all is looked for again then.
  Result<std::vector<LeftSession>> find_what_is_over() {
    std::set<std::string> over;
    for (bool first = true;; first = false) {
      HF_TRY(find());
      std::vector<LeftSession> sessions = left_->sessions();
      if (first && options_.break_locks && !sessions.empty()) HF_TRY(break_locks());
      const size_t known = over.size();
      for (const LeftSession& session : sessions) {
        if (over.contains(session.id)) continue;
        HF_TRY(wait_until_over(session));
        over.insert(session.id);
      }
      if (over.size() == known) return sessions;
    }
  }

  // A process that was killed has its locks for as long as it takes to end.
  Status wait_until_over(const LeftSession& session) const {
    constexpr std::chrono::milliseconds patience{2000}, between{20};
    for (auto waited = std::chrono::milliseconds(0);; waited += between) {
      Status status = left_->check_not_running(session);
      if (status.kind() != Kind::busy || waited >= patience) return status;
      std::this_thread::sleep_for(between);
    }
  }

  Status find() {
    const auto kind = catalog::kind_of(path_);
    Result<std::shared_ptr<layers::Shelf>> shelf(Kind::internal, "");
    if (kind == catalog::PathKind::protected_file) {
      auto located = catalog::locate(path_, settings_);
      if (!located) return located.status();
      located_ = std::move(*located);
      shelf = layers::shelf_on_targets(*located_);
    } else {
      shelf = layers::shelf_beside(catalog::resolved_path(path_), 0600);
    }
    HF_TRY(look_in(shelf));
    // Earlier versions kept them beside the link.
    if (left_->sessions().empty() && !located_ && catalog::resolved_path(path_) != path_) HF_TRY(look_in(layers::shelf_beside(path_, 0600)));
    if (left_->sessions().empty() && kind == catalog::PathKind::absent)
      return Status(Kind::not_found, path_ + ": there is no such file, and no records that were left for it");
    return Status();
  }

  Status look_in(const Result<std::shared_ptr<layers::Shelf>>& shelf) {
    if (!shelf) return shelf.status();
    auto left = LeftRecords::find(
        *shelf, [this](const std::string& log) { return common_log(log); }, [this](const layout::Session& other) { return is_left(other); });
    if (!left) return left.status();
    left_ = std::move(*left);
    return Status();
  }

  // Whether a note says that this session's records are still to be merged. What cannot be looked at may have some.
  bool is_left(const layout::Session& other) const {
    Result<std::shared_ptr<layers::Shelf>> shelf(Kind::not_found, "");
    if (other.file_id.empty()) {
      shelf = layers::shelf_beside(other.path, 0600);
    } else {
      auto located = catalog::locate(other.path, settings_);
      if (!located) return located.status().kind() != Kind::not_found;
      shelf = layers::shelf_on_targets(*located);
    }
    if (!shelf) return shelf.status().kind() != Kind::not_found;
    auto names = (*shelf)->list();
    return !names || std::any_of(names->begin(), names->end(), [&](const std::string& name) {
      const auto parsed = layers::parse_record_name(name);
      return parsed && parsed->session == other.id;
    });
  }

  // "/directory/.NAME.holdfast-records/single-…", or a name on the targets.
  Result<std::pair<std::shared_ptr<layers::Shelf>, std::string>> common_log(const std::string& log) const {
    const std::string name = catalog::name_of(log);
    if (located_) return std::pair(located_->single() ? layers::shelf_on_targets(*located_) : layers::shelf_of_set(*located_), name);
    const std::string directory = catalog::parent_of(log);
    auto above = target::open(catalog::parent_of(directory));
    std::vector<layers::Shelf::Holder> holders;
    if (above.ok()) holders.push_back({*above, nullptr, catalog::name_of(directory) + "/"});
    else if (above.status().kind() != Kind::not_found) return above.status();  // gone: its logs were merged, or it never wrote one
    return std::pair(std::make_shared<layers::Shelf>(std::move(holders), 1, directory), name);
  }

  // The records belong to one file; another that stands at its path now must not get them.
  Status check_same_file(const LeftSession& session) const {
    if (!session.described) return Status();
    if (located_) {
      if (located_->manifest.file_id == session.about.file_id) return Status();
    } else if (session.about.file_id.empty()) {
      auto now = catalog::look(path_, true);
      if (!now)
        return Status(Kind::stale,
                      fmt::format("{}: the file is gone, and {} for it are left in {}; put the file back, or discard the records: holdfast merge "
                                  "--discard {}",
                                  path_, plural(session.records, "record"), left_->shelf().where(), path_));
      const bool same = now->inode == session.about.inode || !catalog::keeps_inode_numbers(path_);
      const bool as_left = !session.note.closed || !session.note.main.known() ||
                           (now->size == session.note.main.size && now->change_ns == session.note.main.change_ns);
      if (options_.accept_changes || (same && as_left)) return Status();
      if (same)
        return Status(
            Kind::stale,
            fmt::format("{}: the file was changed after the run that left {} for it; if they still fit: holdfast merge --accept-changes {}; "
                        "else discard them with --discard",
                        path_, plural(session.records, "record"), path_));
    }
    return Status(Kind::stale,
                  fmt::format("{}: the file was replaced after the run that left {} for it; nothing was changed; if they fit: holdfast merge "
                              "--accept-changes {}; else discard them with --discard",
                              path_, plural(session.records, "record"), path_));
  }

  Status merge(const LeftSession& session) {
    if (session.superseded) return remove_logs(session);  // nothing of it is pending: that was asked before
    if (session.described) HF_TRY(check_same_file(session));
    auto main = Main::open(catalog::resolved_path(path_), located_, settings_);
    if (!main) return main.status();
    ProgressBar bar("merging " + path_);
    auto place = [&](const layout::SessionView& view, std::span<const Extent> extents, ByteView packed, bool filling) {
      return place_in(**main, view, extents, packed, filling);
    };
    auto merged =
        left_->merge(session, !located_, place, [&](uint64_t done) { return bar.update(done, std::max(done, session.bytes)) && !interrupted(); });
    Status status = merged.status();
    if (status.ok()) status = main->finish();
    if (!status.ok())
      return Status(status.kind(),
                    fmt::format("{}: {}; nothing is lost: the records stay in {}; when the cause is gone: holdfast merge {}", path_,
                                status.sentence(), left_->shelf().where(), shell_word(path_)),
                    status.sys_errno());
    records_ += session.records;
    bytes_ += session.bytes;
    torn_ += session.torn;
    if (torn_in_.empty()) torn_in_ = session.torn_in;
    uncertainty_ns_ = std::max(uncertainty_ns_, session.uncertainty_ns);
    return remove_logs(session);
  }

  Status remove_logs(const LeftSession& session) {
    const Status status = left_->discard(session);
    kept_for_ = left_->kept_for();
    return status;
  }

  static Status place_in(FileLayer& main, const layout::SessionView& view, std::span<const Extent> extents, ByteView packed, bool filling) {
    std::vector<Extent> in_file;
    for (const Extent& extent : extents) {
      auto some = extents_in_file(view, extent);
      if (!some) return some.status();
      in_file.insert(in_file.end(), some->begin(), some->end());
    }
    if (!filling) return main.write(in_file, packed);
    Bytes mixed(packed.begin(), packed.end());
    uint64_t at = 0;
    for (const Extent& extent : in_file) {
      Bytes there(extent.length);
      const auto got = main.read({&extent, 1}, there);
      if (!got) return got.status();
      layers::keep_what_is_there(ByteSpan(mixed).subspan(at, extent.length), ByteView(there).first(*got), extent.offset);
      at += extent.length;
    }
    return main.write(in_file, mixed);
  }

  Status discard(const std::vector<LeftSession>& sessions) {
    for (const LeftSession& session : sessions) {
      discarded_ += session.records;
      HF_TRY(remove_logs(session));
    }
    return Status();
  }

  std::string path_;
  const MergeOptions& options_;
  const Settings& settings_;
  std::optional<catalog::Located> located_;
  std::unique_ptr<LeftRecords> left_;
  MergedParts parts_;
  uint64_t records_ = 0, bytes_ = 0, torn_ = 0, discarded_ = 0, uncertainty_ns_ = 0;
  std::string torn_in_;
  std::set<std::string> kept_for_;
};

int merge_all(const MergeOptions& options) {
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  catch_interrupts();
  int code = exit_ok;
  nlohmann::json files = nlohmann::json::array();
  for (const std::string& path : options.paths) {
    Merging merging(path_from_here(path), options, *settings);
    const Status status = merging.run();
    if (!status.ok()) {
      code = std::max(code, interrupted() ? int(exit_stopped) : fail_for(path, status, *settings));
      continue;
    }
    if (options.json) files.push_back(merging.json());
    else merging.print();
  }
  if (options.json) print_json({{"files", files}});
  return code;
}

}  // namespace

void add_merge(CLI::App& app, int& code) {
  auto options = std::make_shared<MergeOptions>();
  auto* sub = app.add_subcommand("merge", "Put into files what jobs have left in the logs of shared file pointers, or in replicas' parts");
  sub->add_option("PATH", options->paths, "Files that were written through a shared file pointer, or by replicas, each its own part")->required();
  sub->add_flag("--discard", options->discard, "Throw the records or parts away instead, those of earlier runs too");
  sub->add_flag("--accept-changes", options->accept_changes, "Merge although the file was changed or replaced after the run");
  sub->add_flag("--break-locks", options->break_locks, "First remove the logs' locks by name, such as those of jobs that died on other nodes");
  sub->add_flag("--json", options->json, "The outcome for a machine");
  options->settings.add_finding(*sub);
  sub->footer(
      "Example:\n  holdfast merge events.log\n"
      "For files written with holdfast_shared_pointer=individual or single: after a run with holdfast_merge=later, or one that was\n"
      "killed. For plain files of replicas with --write-protocol distributed-separate: after a job that was killed. It may be\n"
      "interrupted and run again.\n"
      "Exit status: 0 merged, or there was nothing to merge; 2 refused or unreadable; 3 any other error.");
  sub->callback([options, &code] { code = merge_all(*options); });
}

}  // namespace holdfast::cli
