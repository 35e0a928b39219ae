#include "agent/sum.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "coding/kernel.hpp"

namespace holdfast::agent {

void IdlePeer::keep(const std::string& address, std::unique_ptr<Peer> peer) {
  std::lock_guard lock(mutex_);
  address_ = address, peer_ = std::move(peer);
}

std::unique_ptr<Peer> IdlePeer::take(const std::string& address) {
  std::lock_guard lock(mutex_);
  return address == address_ ? std::exchange(peer_, nullptr) : nullptr;
}

Result<std::shared_ptr<Sum>> Sum::begin(std::shared_ptr<target::Object> own, std::span<const target::SumTerm> terms, uint64_t bytes,
                                        const OpenPeer& open, std::shared_ptr<IdlePeer> idle) {
  std::shared_ptr<Sum> sum(new Sum(std::move(own), terms[0], bytes));
  sum->idle_ = std::move(idle);
  if (terms.size() > 1) HF_TRY(sum->begin_with_peer(terms.subspan(1), open));
  return sum;
}

// One that was kept may have ended since.
Status Sum::begin_with_peer(std::span<const target::SumTerm> rest, const OpenPeer& open) {
  if (!open) return Status(Kind::unsupported, "this agent asks no others");
  peer_address_ = rest[0].address;
  peer_ = idle_->take(peer_address_);
  if (peer_ && peer_->begin(rest, bytes_).ok()) return {};
  auto fresh = open(peer_address_);
  if (!fresh.ok()) return fresh.status();
  peer_ = std::move(*fresh);
  return peer_->begin(rest, bytes_);
}

Status Sum::next(ByteSpan piece) {
  if (peer_) HF_TRY(peer_->receive(piece));
  else std::memset(piece.data(), 0, piece.size());
  const uint64_t own = done_ < term_.bytes ? std::min<uint64_t>(piece.size(), term_.bytes - done_) : 0;
  if (own > 0) {
    part_.resize(own);
    const iovec into{part_.data(), part_.size()};
    const auto got = own_->read(term_.offset + done_, {&into, 1});
    if (!got.ok()) return got.status();
    coding::add_times(term_.coefficient, part_.data(), piece.data(), *got);
  }
  done_ += piece.size();
  if (peer_ && done_ == bytes_) idle_->keep(peer_address_, std::move(peer_));
  return {};
}

}  // namespace holdfast::agent
