#include "engine/node_sums.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "catalog/environment.hpp"
#include "coding/kernel.hpp"

namespace holdfast::engine {

using layout::RowRecord;

namespace {

constexpr int most_failures = 2;  // each may take as long as a call may

// How many of the blocks, from the first on, were written. Nothing where others behind them were too.
std::optional<uint64_t> written_at_the_beginning(const RowBlocks& check, const RowRecord& record, int unit, uint32_t first, uint32_t blocks) {
  uint32_t written = 0;
  while (written < blocks && check.written(record, unit, first + written)) ++written;
  if (check.any_written(record, unit, first + written, blocks - written)) return std::nullopt;
  return written;
}

}  // namespace

SumAskers::SumAskers(std::chrono::milliseconds deadline)
    : SumAskers({[](const std::string& address) { return catalog::environment().open_beside(address); },
                 [deadline](const std::string& address) { return catalog::environment().lane_beside(address, deadline); }}) {}

SumAskers::~SumAskers() {
  for (auto& [address, at] : by_address_) let_go(at);
}

void SumAskers::let_go(At& at) {
  for (Asker& one : at.askers) one.lane->let_go(std::move(one.target));
}

// In a file on many nodes rows begin at many of them, one after another.
SumAskers::At& SumAskers::at(const std::string& address) {
  if (!by_address_.contains(address) && by_address_.size() >= most_agents) {
    const auto oldest = std::min_element(by_address_.begin(), by_address_.end(),
                                         [](const auto& one, const auto& other) { return one.second.asked_last < other.second.asked_last; });
    let_go(oldest->second);
    by_address_.erase(oldest);
  }
  At& found = by_address_[address];
  found.asked_last = ++asked_;
  return found;
}

std::shared_ptr<SumAskers::Asked> SumAskers::ask(std::vector<target::SumTerm> terms, uint64_t bytes) {
  if (failures_ >= most_failures) return nullptr;
  const std::string address = terms[0].address;
  At& there = at(address);
  if (there.askers.size() < askers_of_an_agent) there.askers.push_back({ways_.lane(address), std::make_shared<std::shared_ptr<target::Target>>()});
  const Asker& one = there.askers[there.next++ % askers_of_an_agent];
  auto asked = std::make_shared<Asked>(bytes);
  if (!asked->sum.valid()) return nullptr;
  // The call owns what it fills in as well, for it may hang.
  asked->ticket = one.lane->submit([held = asked, target = one.target, open = ways_.open, address, terms = std::move(terms)]() -> Status {
    if (!*target) {
      auto opened = open(address);
      if (!opened.ok()) return opened.status();
      *target = std::move(*opened);
    }
    const Status made = (*target)->sum(terms, held->sum.span());
    if (!made.ok()) *target = nullptr;
    return made;
  });
  return asked;
}

bool SumAskers::wait(Asked& asked) {
  const bool made = std::exchange(asked.ticket, nullptr)->wait().ok();
  failures_ = made ? 0 : failures_ + 1;
  return made;
}

struct NodeSums::Unit {
  struct Here {  // what this process reads itself
    explicit Here(uint64_t bytes) : part(bytes) {}
    Buffer part;
    unsigned char coefficient = 0;
    std::shared_ptr<target::Ticket> ticket;
  };
  int unit = 0;
  uint32_t first = 0, blocks = 0;
  std::vector<std::shared_ptr<Here>> here;
  std::shared_ptr<SumAskers::Asked> there;
};

NodeSums::NodeSums(SumAskers& askers, Members& members, const catalog::Located& located, const RowSources& sources)
    : askers_(askers),
      members_(members),
      located_(located),
      sources_(sources),
      code_(coding::Code::make(sources.geometry().scheme.k, sources.geometry().scheme.m)) {
  for (const catalog::Member& member : located.members) possible_ |= member.usable() && !member.target->address_for_agents().empty();
}

std::string NodeSums::address_of(int member) const { return located_.members[size_t(member)].target->address_for_agents(); }

std::tuple<bool, bool, int> NodeSums::rank_of(uint64_t row, int unit) const {
  const int member = sources_.member_of(row, unit);
  return {members_.avoid(member), !address_of(member).empty(), member};
}

std::shared_ptr<NodeSums::Unit> NodeSums::begin(const RowRecord& record, uint32_t first_block, uint32_t blocks, int unit, uint64_t but) {
  const size_t k = size_t(sources_.geometry().scheme.k);
  std::vector<int> survivors = sources_.reading_order(record.row, 0, but | 1ull << unit);
  if (!possible_ || survivors.size() < k) return nullptr;
  // What lies here comes over no link. The others in an order of their own, so that most rows go the same way from node to node.
  std::stable_sort(survivors.begin(), survivors.end(), [&](int one, int other) { return rank_of(record.row, one) < rank_of(record.row, other); });
  survivors.resize(k);
  const auto coefficients = code_->coefficients(survivors, unit);
  if (!coefficients.ok()) return nullptr;
  auto asked = std::make_shared<Unit>();
  asked->unit = unit, asked->first = first_block, asked->blocks = blocks;
  const uint64_t c = sources_.blocks().bytes();
  std::vector<target::SumTerm> terms;
  for (size_t i = 0; i < k; ++i) {
    const auto written = written_at_the_beginning(sources_.blocks(), record, survivors[i], first_block, blocks);
    if (!written) return nullptr;
    if (*written == 0) continue;
    const UnitSource source = sources_.of(record.row, survivors[i]);
    const uint64_t at = source.offset + first_block * c, bytes = source.stored(first_block * c, *written * c);
    const std::string address = address_of(source.member);
    if (!address.empty()) {
      terms.push_back({address, source.object, at, bytes, (*coefficients)[i]});
      continue;
    }
    auto here = std::make_shared<Unit::Here>(bytes);
    if (!here->part.valid()) return nullptr;
    here->coefficient = (*coefficients)[i];
    here->ticket = members_.submit(source.member, [kept = here, object = source.object, at](MemberHandle& handle) {
      return handle.read(object, at, kept->part.span());
    });
    asked->here.push_back(std::move(here));
  }
  if (!terms.empty()) asked->there = askers_.ask(std::move(terms), blocks * c);
  return asked->there ? asked : nullptr;
}

bool NodeSums::finish(const RowRecord& record, Unit& asked, ByteSpan into) {
  bool whole = askers_.wait(*asked.there);
  if (whole) std::memcpy(into.data(), asked.there->sum.data(), into.size());
  for (const auto& one : asked.here) {
    if (!std::exchange(one->ticket, nullptr)->wait().ok()) whole = false;
    else if (whole) coding::add_times(one->coefficient, one->part.data(), into.data(), one->part.size());
  }
  const RowBlocks& check = sources_.blocks();
  for (uint32_t i = 0; whole && i < asked.blocks; ++i) {
    const ByteSpan block = into.subspan(i * check.bytes(), check.bytes());
    if (!check.written(record, asked.unit, asked.first + i)) std::memset(block.data(), 0, block.size());
    else whole = check.holds(record, asked.unit, asked.first + i, block);
  }
  return whole;
}

}  // namespace holdfast::engine
