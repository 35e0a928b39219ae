#include "layers/protected/agreement.hpp"

#include <cstring>

#include "exchange/agree.hpp"

namespace holdfast::layers {

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

Status agree(exchange::Exchange& ranks, Members& members, const Status& mine) {
  if (ranks.size() == 1) return mine;
  // For each member: does any rank miss it, does any rank still have it? Both: a loss that has to be spread.
  const int count = members.count();
  std::vector<int64_t> facts(1 + 2 * count);
  facts[0] = !mine.ok();
  for (int member = 0; member < count; ++member) facts[1 + 2 * member + members.available(member)] = 1;
  facts = ranks.all_max(std::move(facts));
  for (int member = 0; member < count; ++member)
    if (facts[1 + 2 * member] && facts[2 + 2 * member]) spread_loss(ranks, members, member);
  return facts[0] ? exchange::first_failure(ranks, mine) : Status();
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

}  // namespace holdfast::layers
