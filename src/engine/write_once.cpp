#include "engine/write_once.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include <fmt/format.h>

#include "engine/manifest_store.hpp"
#include "engine/row_writer.hpp"

namespace holdfast::engine {

using layout::Manifest;

namespace {

constexpr uint64_t most_bytes = 32 << 20;  // of content in memory; redundancy and what the lanes hold come to that
constexpr uint64_t batch_bytes = 8 << 20;
constexpr uint64_t only_generation = 1;

class OnceWriter {
 public:
  OnceWriter(catalog::Located& located, uint64_t bytes, const ReadContent& read, const Settings& settings)
      : located_(located),
        bytes_(bytes),
        read_(read),
        members_(located, settings),
        records_(members_, located),
        writer_(members_, records_, located) {}

  Status run() {
    const Status written = write();
    if (!written.ok()) name_lost(located_.manifest);
    return written;
  }

 private:
  Status write() {
    HF_TRY(check_losses(members_, located_.manifest));
    HF_TRY(write_rows());
    members_.each([](int) -> MemberCall { return [](MemberHandle& handle) { return handle.settle(true); }; });
    HF_TRY(enough_left());
    return write_last_manifest();
  }
  void name_lost(Manifest& manifest) const {
    for (int member = 0; member < members_.count(); ++member)
      if (!members_.available(member)) {
        manifest.members[size_t(member)].stale = true;
        manifest.members[size_t(member)].why = members_.why(member);
      }
  }
  const layout::Geometry& geometry() const { return located_.manifest.geometry; }

  // A degraded file is worth having as long as it bears one more loss; a code that bears only one, or none, is to be whole at its K units.
  Status enough_left() const {
    const int m = geometry().scheme.m, may_lack = std::max(0, m - 1);
    if (members_.lost_count() <= may_lack) return {};
    return Status(members_.lost_for_space() ? Kind::no_space : Kind::lost,
                  fmt::format("{}: {} of its {} targets are lost, and {} would bear no further loss: {}", located_.manifest.path,
                              members_.lost_count(), members_.count(), geometry().scheme.name(), members_.describe_lost()));
  }

  // Rows are read and coded while those before them are on their way to the members.
  Status write_rows() {
    const uint64_t row_bytes = geometry().row_bytes(), rows = divide_up(bytes_, row_bytes);
    const uint64_t at_once = std::clamp<uint64_t>(batch_bytes / row_bytes, 1, std::max<uint64_t>(rows, 1));
    const uint64_t most_underway = std::max<uint64_t>(most_bytes / (at_once * row_bytes), 1) - 1;
    std::deque<Underway> underway;
    Status status;
    for (uint64_t first = 0; first < rows && status.ok(); first += at_once) {
      status = begin_batch(first, std::min(at_once, rows - first), underway);
      while (status.ok() && underway.size() > most_underway) status = finish_first(underway);
    }
    while (!underway.empty())
      if (Status finished = finish_first(underway); status.ok()) status = std::move(finished);
    return status;
  }

  struct Underway {
    std::vector<CodedRow> rows;
    Members::Begun calls;
  };

  Status begin_batch(uint64_t first, uint64_t count, std::deque<Underway>& underway) {
    const uint64_t row_bytes = geometry().row_bytes();
    // Of its own for each batch: a call that has outlived its deadline may still read from the last one.
    const auto content = std::make_shared<Buffer>(count * row_bytes);
    if (!content->valid()) return Status(Kind::internal, "no memory for a row");
    const uint64_t begin = first * row_bytes, valid = std::min(count * row_bytes, bytes_ - begin);
    HF_TRY(read_(begin, content->span().first(size_t(valid))));
    std::memset(content->data() + valid, 0, size_t(count * row_bytes - valid));
    underway.push_back({code(first, count, content), {}});
    underway.back().calls = writer_.begin_in_place(underway.back().rows);
    return {};
  }

  Status finish_first(std::deque<Underway>& underway) {
    Status status = writer_.finish_in_place(underway.front().rows, underway.front().calls);
    underway.pop_front();
    return status.ok() ? enough_left() : status;
  }

  std::vector<CodedRow> code(uint64_t first, uint64_t count, const std::shared_ptr<Buffer>& content) const {
    std::vector<CodedRow> coded;
    for (uint64_t i = 0; i < count; ++i) {
      RowImage image;
      image.row = first + i;
      image.valid = std::min(geometry().row_bytes(), bytes_ - image.row * geometry().row_bytes());
      for (int unit = 0; unit < geometry().scheme.k; ++unit)
        image.data.push_back(content->data() + i * geometry().row_bytes() + uint64_t(unit) * geometry().unit_bytes);
      coded.push_back(writer_.code(image, only_generation));
      keep_with(coded.back(), content);
    }
    return coded;
  }

  // A call that hangs outlives this one, and the content has to outlive the call.
  static void keep_with(CodedRow& row, const std::shared_ptr<Buffer>& content) {
    const auto both = std::make_shared<std::pair<std::shared_ptr<Buffer>, std::shared_ptr<Buffer>>>(row.redundancy, content);
    row.redundancy = std::shared_ptr<Buffer>(both, content.get());
  }

  Status write_last_manifest() {
    Manifest manifest = located_.manifest;
    manifest.size = bytes_;
    manifest.rows = divide_up(bytes_, geometry().row_bytes());
    manifest.epoch = manifest.settled_epoch = 1;
    manifest.next_generation = only_generation + 1;
    name_lost(manifest);
    const int stale = members_.lost_count();
    Manifest told = manifest;
    told.path.clear();
    const auto text = std::make_shared<const std::string>(layout::encode(told));
    members_.each([&](int member) -> MemberCall {
      return [text, name = located_.meta_name(member, "manifest")](MemberHandle& handle) {
        return handle.target().put(name, std::as_bytes(std::span(*text)), true);
      };
    });
    // One copy is enough to read the file: one is there after as many further losses as the manifest says that it bears.
    const int copies = members_.count() - members_.lost_count();
    if (copies <= geometry().scheme.m - stale)
      return Status(members_.lost_for_space() ? Kind::no_space : Kind::lost,
                    fmt::format("{}: only {} of its targets took its manifest: {}", manifest.path, copies, members_.describe_lost()));
    HF_TRY(enough_left());
    located_.manifest = std::move(manifest);
    return {};
  }

  catalog::Located& located_;
  const uint64_t bytes_;
  const ReadContent& read_;
  Members members_;
  RecordStore records_;
  RowWriter writer_;
};

}  // namespace

Status write_once(catalog::Located& located, uint64_t bytes, const ReadContent& read, const Settings& settings) {
  if (!located.manifest.is_final()) return Status(Kind::internal, "only a version of a checkpoint is written once");
  return OnceWriter(located, bytes, read, settings).run();
}

Result<int> make_final(const catalog::Located& located, const layout::Version& version, const Settings& settings) {
  Members members(located, settings);
  auto reading = read_manifest(members, located, settings);
  if (!reading) return reading.status();
  lose_stale_members(members, *reading);
  Manifest& manifest = reading->manifest;
  if (!manifest.journals.empty() || !manifest.open_generations.empty() || manifest.cut_to)
    return Status(Kind::busy, fmt::format("{}: not all who have opened it have closed it", version.file));
  manifest.lone = 0;
  manifest.version = version;
  manifest.path.clear();
  HF_TRY(write_manifest(members, located, manifest, true));
  return members.lost_count();
}

}  // namespace holdfast::engine
