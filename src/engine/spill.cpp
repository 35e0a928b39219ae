#include "engine/spill.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "coding/checksum.hpp"

namespace holdfast::engine {

Spill::Spill(Members& members, const catalog::Located& located, int rank) : members_(members), located_(located), rank_(rank) {}

void Spill::belong_to(uint64_t opener) { name_ = fmt::format("spill.{}.{}", opener, rank_); }

// m + 1 members that answer, other ones for other ranks; a holder that was lost is made up for by another.
void Spill::choose_holders() {
  int sound = 0;
  for (int holder : holders_) sound += members_.available(holder);
  for (int i = 0; i < members_.count() && sound <= located_.manifest.geometry.scheme.m; ++i) {
    const int member = (rank_ + i) % members_.count();
    if (!members_.available(member) || std::find(holders_.begin(), holders_.end(), member) != holders_.end()) continue;
    holders_.push_back(member);
    ++sound;
  }
}

Result<uint64_t> Spill::write(ByteView bytes) {
  choose_holders();
  const uint64_t at = end_;
  std::vector<std::pair<int, std::shared_ptr<target::Ticket>>> tickets;
  for (int holder : holders_)
    if (members_.available(holder))
      tickets.emplace_back(holder, members_.submit(holder, [bytes, at, name = located_.meta_name(holder, name_)](MemberHandle& handle) {
        return handle.write(name, at, bytes);
      }));
  members_.wait_all(tickets);
  const bool any = std::any_of(holders_.begin(), holders_.end(), [&](int holder) { return members_.available(holder); });
  if (!any)
    return Status(Kind::lost, fmt::format("{}: no target takes what does not fit in memory: {}", located_.manifest.path, members_.describe_lost()));
  end_ += bytes.size();
  return at;
}

Status Spill::read(const SpilledRange& range, std::byte* into) {
  for (int holder : holders_) {
    if (!members_.available(holder)) continue;
    auto buffer = std::make_shared<Bytes>(range.end - range.begin);
    Status status = members_
                        .submit(holder, [buffer, at = range.offset,
                                         name = located_.meta_name(holder, name_)](MemberHandle& handle) { return handle.read(name, at, *buffer); })
                        ->wait();
    if (status.kind() == Kind::timed_out) members_.lose(holder, status);
    if (!status.ok() || coding::plain_checksum(*buffer) != range.checksum) continue;
    std::memcpy(into, buffer->data(), buffer->size());
    return Status();
  }
  return Status(Kind::lost, fmt::format("{}: what was parked on targets for want of memory cannot be read back: {}", located_.manifest.path,
                                        members_.describe_lost()));
}

void Spill::clear() {
  if (empty()) return;
  for (int holder : holders_)
    if (members_.available(holder))
      (void)members_
          .submit(holder,
                  [name = located_.meta_name(holder, name_)](MemberHandle& handle) {
                    handle.forget(name);
                    return handle.target().remove(name);
                  })
          ->wait();
  holders_.clear();
  end_ = 0;
}

}  // namespace holdfast::engine
