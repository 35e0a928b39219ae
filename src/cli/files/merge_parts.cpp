#include "cli/files/merge_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/shell_word.hpp"
#include "catalog/catalog.hpp"
#include "catalog/user_files.hpp"
#include "cli/command.hpp"
#include "cli/files/copy.hpp"
#include "cli/output.hpp"
#include "file/left_parts.hpp"

namespace holdfast::cli {

namespace {

// The bytes belong to one file; another that stands at its path now must not get them.
Status check_file(const std::string& path, const file::LeftParts& left, const MergeOfParts& options) {
  const auto refused = [&](const char* what) {
    return Status(Kind::stale, fmt::format("{}: the file {} the job that left {} for it in parts; nothing was changed; if they fit: holdfast merge "
                                           "--accept-changes {}; else discard them with --discard",
                                           path, what, plural(left.writes, "write"), shell_word(path)));
  };
  const auto now = catalog::look(path, true);
  if (!now)
    return Status(Kind::stale, fmt::format("{}: the file is gone, and {} for it are left in parts; put the file back, or throw them away: holdfast "
                                           "merge --discard {}",
                                           path, plural(left.writes, "write"), shell_word(path)));
  if (options.accept_changes) return Status();
  if (!left.lacking.ok())
    return Status(Kind::corrupt,
                  fmt::format("{}: {}; nothing was changed; to join what there is: holdfast merge --accept-changes {}; to throw it away: "
                              "--discard",
                              path, left.lacking.sentence(), shell_word(path)));
  const layout::PathState& then = left.note.main;
  if (then.known() && then.inode != now->inode && catalog::keeps_inode_numbers(path)) return refused("was replaced after");
  const bool was_joining = then.known() && then.change_ns == 0;  // what was changed then comes again
  const bool as_left = was_joining || (then.known() && then.size == now->size && then.change_ns == now->change_ns);
  return as_left ? Status() : refused("was changed after, or by another rank of,");
}

}  // namespace

Result<MergedParts> merge_parts(const std::string& path, MergeOfParts options) {
  const auto all = file::left_parts(path);
  HF_TRY(all.status());
  for (const file::LeftParts& left : *all)
    if (left.in_use) return Status(Kind::busy, fmt::format("{}: a job still writes to its parts; they are joined when it closes the file", path));
  MergedParts merged;
  if (!options.discard) {
    for (const file::LeftParts& left : *all) HF_TRY(check_file(path, left, options));
    for (const file::LeftParts& left : *all) HF_TRY(file::note_joining(left, path));  // it may be interrupted and begin anew
  }
  ProgressBar bar("joining " + path);
  for (const file::LeftParts& left : *all) {
    const auto progress = [&](uint64_t done) { return bar.update(done, std::max(done, left.bytes)) && !interrupted(); };
    const Status done = options.discard ? file::discard_left(left) : file::join_left(left, path, progress);
    if (!done.ok())
      return Status(done.kind(),
                    fmt::format("{}: {}; nothing is lost: the bytes stay in {}; when the cause is gone: holdfast merge {}", path, done.sentence(),
                                left.path, shell_word(path)),
                    done.sys_errno());
    if (options.discard) merged.discarded += std::max<uint64_t>(left.writes, 1);  // one may be there in part
    else merged.writes += left.writes, merged.bytes += left.bytes, merged.torn |= left.torn;
  }
  return merged;
}

std::string said_of_parts(const std::string& path) {
  const auto all = file::left_parts(path);
  if (!all || all->empty()) return "";
  uint64_t bytes = 0;
  for (const file::LeftParts& left : *all) {
    if (left.in_use) return fmt::format("{}: its replicas write to parts, which are joined when they close it", path);
    bytes += left.bytes;
  }
  return fmt::format("{}: not joined: {} lie in parts beside it; holdfast merge {}", path, human_bytes(bytes), shell_word(path));
}

}  // namespace holdfast::cli
