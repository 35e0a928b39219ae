#include "engine/agreement.hpp"

#include <cstring>

#include "exchange/agree.hpp"

namespace holdfast::engine {

namespace {

// Collective: the first rank's reason becomes everybody's.
void spread_loss(exchange::Exchange& ranks, Members& members, int member) {
  const std::string mine = members.available(member) ? "" : members.why(member);
  for (const Bytes& bytes : ranks.all_gather(std::as_bytes(std::span(mine))))
    if (!bytes.empty()) {
      members.lose(member, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      return;
    }
  members.lose(member, "lost by another rank of this job");
}

}  // namespace

Losses count_losses(std::span<const int64_t> by_member) {
  Losses losses;
  for (int64_t state : by_member) losses.all += state > 0, losses.for_good += state > 1;
  return losses;
}

Status agree(exchange::Exchange& ranks, Members& members, const Status& mine) {
  if (ranks.size() == 1) return mine;
  // For each member: does any rank miss it, does any rank still have it? Both: a loss that has to be spread.
  const size_t count = size_t(members.count());
  std::vector<int64_t> facts = members.losses();
  for (size_t member = 0; member < count; ++member) facts.push_back(facts[member] == 0);
  facts.push_back(!mine.ok());
  facts = ranks.all_max(std::move(facts));
  const bool contested = count_losses(std::span(facts).first(count)).contested(members.may_miss());
  for (size_t member = 0; member < count; ++member) {
    if (facts[member] == 0 || (contested && facts[member] == 1)) continue;
    if (facts[count + member]) spread_loss(ranks, members, int(member));
    members.give_up(int(member));
  }
  members.set_contested(contested);
  return facts.back() ? exchange::first_failure(ranks, mine) : Status();
}

Result<layout::Manifest> share_manifest(exchange::Exchange& ranks, const Result<layout::Manifest>& mine) {
  if (ranks.size() == 1) return mine;
  Bytes bytes;
  if (ranks.rank() == 0) {
    bytes = exchange::pack(mine.status());
    if (mine.ok()) {
      const std::string text = layout::encode(*mine);
      const auto view = std::as_bytes(std::span(text));
      bytes.insert(bytes.end(), view.begin(), view.end());
    }
  }
  const Bytes shared = std::move(ranks.all_gather(bytes)[0]);
  int32_t kind;
  std::memcpy(&kind, shared.data(), sizeof kind);
  if (Kind(kind) != Kind::ok) return exchange::unpack(shared);
  return layout::decode(ByteView(shared).subspan(8));
}

}  // namespace holdfast::engine
