#include "engine/remake.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "engine/inspector.hpp"
#include "engine/last_manifest.hpp"
#include "engine/node_sums.hpp"

namespace holdfast::engine {

using layout::RowRecord;

namespace {

constexpr uint64_t asked_bytes = 1 << 20;     // checksums of so much are asked for at once
constexpr uint64_t ahead_bytes = 4 << 20;     // of a unit, over rows that are looked at before their lost units are asked for
constexpr uint64_t summed_bytes = 512 << 10;  // of a unit: until the first ones are there, and after the last ones are, half of the links are idle
constexpr size_t slices_at_once = 6, writes_at_once = 8;

// A unit that survives: what its blocks' checksums are in the new version, and whether they are what they were.
struct Survivor {
  std::vector<uint64_t> entries;
  bool whole = true;
};

// The blocks of a unit up to the last one that was written.
uint32_t end_of_written(const RowBlocks& blocks, const RowRecord& record, int unit) {
  uint32_t end = blocks.per_unit();
  while (end > 0 && !blocks.written(record, unit, end - 1)) --end;
  return end;
}

// The keys of both versions. First what the new one is to believe, then whether that is what the old one has: damage between the two is found.
struct BothKeys {
  RowBlocks now, before;

  Status take(MemberHandle& handle, const UnitSource& source, const RowRecord& record, int unit, Survivor& into) const {
    const uint32_t end = end_of_written(before, record, unit), step = std::max<uint32_t>(1, uint32_t(asked_bytes / before.bytes()));
    for (uint32_t first = 0; first < end; first += step) HF_TRY(take(handle, source, record, unit, first, std::min(step, end - first), into));
    return Status();
  }

 private:
  Status take(MemberHandle& handle, const UnitSource& source, const RowRecord& record, int unit, uint32_t first, uint32_t count,
              Survivor& into) const {
    target::CheckedBlocks asked{source.offset + first * before.bytes(), count, uint32_t(before.bytes()), now.key(), record.row, unit, first};
    auto fresh = handle.checksums(source.object, asked);
    if (fresh.status().kind() == Kind::unsupported) return read(handle, source, record, unit, asked, into);
    if (!fresh.ok()) return fresh.status();
    asked.key = before.key();
    const auto old = handle.checksums(source.object, asked);
    if (!old.ok()) return old.status();
    for (uint32_t i = 0; i < count; ++i) note(record, unit, first + i, (*fresh)[i], (*old)[i], into);
    return Status();
  }
  // Both of the same bytes.
  Status read(MemberHandle& handle, const UnitSource& source, const RowRecord& record, int unit, const target::CheckedBlocks& asked,
              Survivor& into) const {
    Bytes bytes(asked.count * before.bytes());
    HF_TRY(handle.read(source.object, asked.offset, bytes));
    for (uint32_t i = 0; i < asked.count; ++i) {
      const ByteView block = ByteView(bytes).subspan(i * before.bytes(), before.bytes());
      const uint32_t number = asked.first + i;
      note(record, unit, number, now.entry(record.row, unit, number, block), before.entry(record.row, unit, number, block), into);
    }
    return Status();
  }
  void note(const RowRecord& record, int unit, uint32_t block, uint64_t fresh, uint64_t old, Survivor& into) const {
    if (!before.written(record, unit, block)) return;
    into.entries[block] = RowBlocks::entry_of(fresh);
    into.whole &= before.entry(record, unit, block) == RowBlocks::entry_of(old);
  }
};

class Remaker {
 public:
  Remaker(const catalog::Located& of, catalog::Located& fresh, const Settings& settings)
      : path_(of.manifest.path),
        fresh_(fresh),
        look_(of, settings),
        onto_(fresh, settings),
        records_(onto_, fresh),
        sources_(look_.members, look_.records, look_.located, look_.journals, 0),
        keys_{RowBlocks(geometry(), records_.key()), sources_.blocks()},
        askers_(std::chrono::milliseconds(settings.deadline_ms)),
        sums_(askers_, look_.members, look_.located, sources_),
        objects_(size_t(onto_.count())) {
    for (int member = 0; member < onto_.count(); ++member)
      if (look_.members.available(member) && onto_.available(member) && of.members[size_t(member)].uuid == fresh.members[size_t(member)].uuid)
        kept_.add(member);
  }

  Status run() {
    const Status written = write();
    if (!written.ok()) call_lost_stale(onto_, fresh_.manifest);
    return written;
  }

 private:
  Status write() {
    HF_TRY(look_.status);
    HF_TRY(all_there());
    HF_TRY(may_keep_units());
    HF_TRY(link_any());
    HF_TRY(make_rows());
    HF_TRY(link_units());
    onto_.each([](int) -> MemberCall { return [](MemberHandle& handle) { return handle.settle(true); }; });
    HF_TRY(all_there());
    return write_last_manifest(onto_, fresh_, manifest().size);
  }

  const layout::Manifest& manifest() const { return look_.located.manifest; }
  const layout::Geometry& geometry() const { return fresh_.manifest.geometry; }
  bool is_kept(int member) const { return kept_.has(member); }
  Status cannot(const std::string& why) const { return Status(Kind::unsupported, fmt::format("{}: {}", path_, why)); }

  Status all_there() const {
    if (onto_.lost_count() == 0) return {};
    return Status(onto_.lost_for_space() ? Kind::no_space : Kind::lost, fmt::format("{} of the {} nodes that {} was to go to were lost meanwhile: {}",
                                                                                    onto_.lost_count(), onto_.count(), path_, onto_.describe_lost()));
  }

  // What a version cannot have that was written once: then nothing is taken for granted.
  Status may_keep_units() const {
    const layout::Manifest& old = manifest();
    if (!old.is_final() || !old.journals.empty() || !old.open_generations.empty() || old.cut_to) return cannot("it is not closed");
    if (!(old.geometry == geometry()) || old.rows != divide_up(old.size, geometry().row_bytes())) return cannot("it is laid out otherwise");
    return {};
  }

  // Before anything else is done: whether what is there can be kept at all.
  Status link_any() {
    return link(
        [this](int member) {
          std::set<int> all;
          for (int object = 0; object < layout::object_count(geometry()); ++object)
            if (layout::holds(geometry(), member, object)) all.insert(object);
          return all;
        },
        true);
  }
  // Once more, of all whose units count: who was started anew meanwhile has lost the name again, or says so.
  Status link_units() {
    return link([this](int member) { return objects_[size_t(member)]; }, false);
  }
  Status link(const std::function<std::set<int>(int member)>& objects_of, bool may_lack) {
    const std::vector<Status> answers = onto_.ask_each([&](int member) -> MemberCall {
      if (!is_kept(member)) return {};
      std::vector<std::pair<std::string, std::string>> names;
      for (const int object : objects_of(member)) names.emplace_back(look_.located.data_name(object), fresh_.data_name(object));
      return [names, may_lack](MemberHandle& handle) -> Status {
        for (const auto& [from, to] : names)
          if (Status linked = handle.target().link(from, to); !linked.ok() && !(may_lack && linked.kind() == Kind::not_found)) return linked;
        return {};
      };
    });
    for (int member = 0; member < onto_.count(); ++member) {
      if (answers[size_t(member)].kind() == Kind::unsupported) return answers[size_t(member)];
      if (!answers[size_t(member)].ok()) onto_.lose(member, answers[size_t(member)]);
    }
    return all_there();
  }

  // ---- rows: some are looked at while the lost units of those before them are on their way

  struct Row {
    RowRecord old, fresh;
    std::vector<std::shared_ptr<Survivor>> survivors;  // by unit
    std::vector<std::shared_ptr<target::Ticket>> tickets;
  };
  struct Slice {  // of a lost unit
    std::shared_ptr<Row> row;
    int unit;
    uint32_t first, blocks;
    bool last;  // of the row
    std::shared_ptr<NodeSums::Unit> sum;
  };

  Status make_rows() {
    const size_t ahead = size_t(std::clamp<uint64_t>(ahead_bytes / geometry().unit_bytes, 2, 16));
    for (uint64_t row = 0; row < manifest().rows; ++row) {
      HF_TRY(look_at(row));
      while (looked_at_.size() > ahead) HF_TRY(ask_for_first());
    }
    while (!looked_at_.empty()) HF_TRY(ask_for_first());
    while (!slices_.empty()) HF_TRY(finish_first());
    return end_writes(0);
  }

  Status look_at(uint64_t number) {
    auto record = look_.rows.record(number);
    if (!record.ok()) return record.status();
    if (record->hole() || !manifest().is_synced(record->generation)) return cannot(fmt::format("row {} was never written", number));
    auto row = std::make_shared<Row>();
    row->fresh = {number, only_generation, std::vector<uint64_t>(record->checksums.size(), 0)};
    row->old = std::move(*record);
    const size_t width = size_t(geometry().scheme.width());
    row->survivors.resize(width), row->tickets.resize(width);
    for (int unit = 0; unit < geometry().scheme.width(); ++unit) {
      const UnitSource source = sources_.of(number, unit);
      if (!is_kept(source.member)) continue;
      if (end_of_written(keys_.before, row->old, unit) > 0) objects_[size_t(source.member)].insert(layout::place(geometry(), number, unit).object);
      auto survivor = std::make_shared<Survivor>();
      survivor->entries.resize(geometry().blocks_per_unit());
      row->survivors[size_t(unit)] = survivor;
      row->tickets[size_t(unit)] = look_.members.submit(source.member, [survivor, row, source, unit, keys = keys_](MemberHandle& handle) {
        return keys.take(handle, source, row->old, unit, *survivor);
      });
    }
    looked_at_.push_back(std::move(row));
    return {};
  }

  Status ask_for_first() {
    const std::shared_ptr<Row> row = std::move(looked_at_.front());
    looked_at_.pop_front();
    const uint32_t per_unit = geometry().blocks_per_unit(), step = std::max<uint32_t>(1, uint32_t(summed_bytes / geometry().block_bytes));
    std::vector<Slice> slices;
    for (int unit = 0; unit < geometry().scheme.width(); ++unit) {
      if (row->survivors[size_t(unit)]) {
        HF_TRY(row->tickets[size_t(unit)]->wait());
        const Survivor& survivor = *row->survivors[size_t(unit)];
        if (!survivor.whole)
          return cannot(fmt::format("a unit of row {} is damaged on {}", row->old.row, look_.members.path(sources_.member_of(row->old.row, unit))));
        std::copy(survivor.entries.begin(), survivor.entries.end(), row->fresh.checksums.begin() + std::ptrdiff_t(unit * per_unit));
        continue;
      }
      const uint32_t end = end_of_written(keys_.before, row->old, unit);
      for (uint32_t first = 0; first < end; first += step) slices.push_back({row, unit, first, std::min(step, end - first), false, nullptr});
    }
    if (slices.empty()) return write_record(*row);
    slices.back().last = true;
    for (Slice& slice : slices) {
      while (slices_.size() >= slices_at_once) HF_TRY(finish_first());
      slice.sum = sums_.begin(row->old, slice.first, slice.blocks, slice.unit, 0);
      slices_.push_back(std::move(slice));
    }
    return {};
  }

  // By the nodes' sum, or from any K units that verify.
  Status finish_first() {
    const Slice slice = std::move(slices_.front());
    slices_.pop_front();
    const uint64_t c = geometry().block_bytes;
    const auto buffer = std::make_shared<Buffer>(slice.blocks * c);
    if (!buffer->valid()) return Status(Kind::internal, "no memory for a unit");
    const ByteSpan bytes = buffer->span();
    if (!slice.sum || !sums_.finish(slice.row->old, *slice.sum, bytes)) {
      std::vector<std::byte*> into(size_t(geometry().scheme.width()), nullptr);
      into[size_t(slice.unit)] = bytes.data();
      HF_TRY(look_.rows.reconstruct(slice.row->old, slice.first, slice.blocks, into.data()));
    }
    const size_t entries = size_t(slice.unit) * geometry().blocks_per_unit() + slice.first;
    for (uint32_t i = 0; i < slice.blocks; ++i)
      if (keys_.before.written(slice.row->old, slice.unit, slice.first + i))
        slice.row->fresh.checksums[entries + i] = keys_.now.entry(slice.row->old.row, slice.unit, slice.first + i, bytes.subspan(i * c, c));
    const layout::UnitPlace place = layout::place(geometry(), slice.row->old.row, slice.unit);
    begin_to_write(place.member, fresh_.data_name(place.object), place.offset + slice.first * c, buffer, bytes);
    return slice.last ? write_record(*slice.row) : end_writes(writes_at_once);
  }

  Status write_record(const Row& row) {
    const auto slot = std::make_shared<Bytes>(records_.encode(std::span(&row.fresh, 1)));
    for (const int member : records_.holders(row.fresh.row))
      begin_to_write(member, records_.object_name(member), row.fresh.row * records_.slot_bytes(), slot, *slot);
    return end_writes(writes_at_once);
  }

  // `kept` is what the bytes lie in.
  void begin_to_write(int member, std::string name, uint64_t offset, std::shared_ptr<const void> kept, ByteView bytes) {
    if (!onto_.available(member)) return;
    writes_.emplace_back(member, onto_.submit(member, [kept = std::move(kept), bytes, name = std::move(name), offset](MemberHandle& handle) {
      return handle.write(name, offset, bytes);
    }));
  }

  Status end_writes(size_t but) {
    for (; writes_.size() > but; writes_.pop_front())
      if (const Status status = writes_.front().second->wait(); !status.ok()) onto_.lose(writes_.front().first, status);
    return all_there();
  }

  const std::string path_;
  catalog::Located& fresh_;
  Inspector look_;  // where content comes from
  Members onto_;
  RecordStore records_;  // of what is made
  RowSources sources_;
  const BothKeys keys_;
  SumAskers askers_;
  NodeSums sums_;
  MemberSet kept_;                      // members whose units stay where they are
  std::vector<std::set<int>> objects_;  // of these: in which they are
  std::deque<std::shared_ptr<Row>> looked_at_;
  std::deque<Slice> slices_;
  std::deque<std::pair<int, std::shared_ptr<target::Ticket>>> writes_;  // by member
};

}  // namespace

Status remake(const catalog::Located& of, catalog::Located& fresh, const Settings& settings) {
  if (!of.manifest.is_final() || !fresh.manifest.is_final()) return Status(Kind::internal, "only a version of a checkpoint is made anew");
  return Remaker(of, fresh, settings).run();
}

}  // namespace holdfast::engine
