#include "file/coordinated/pieces.hpp"

#include <cstring>

namespace holdfast::file {

namespace {

constexpr uint64_t failed = ~uint64_t(0);

}  // namespace

void Readers::give(int reader, uint64_t index, const Had& had, ByteView bytes) const {
  const uint64_t count = had.has && had.status.ok() ? had.count : failed;
  Bytes piece(sizeof count + (count == failed ? 0 : bytes.size()));
  std::memcpy(piece.data(), &count, sizeof count);
  if (piece.size() > sizeof count) std::memcpy(piece.data() + sizeof count, bytes.data(), bytes.size());
  sharing_->give(teams_[size_t(reader)], file_.subject, index, piece);
}

bool Readers::take(uint64_t index, Had& had, ByteSpan into) const {
  const auto piece = sharing_->take(file_.subject, index, living_.epoch);
  uint64_t count = failed;
  if (!piece || piece->size() != sizeof count + into.size()) return false;
  std::memcpy(&count, piece->data(), sizeof count);
  std::memcpy(into.data(), piece->data() + sizeof count, into.size());
  had = {true, Status(), count};
  return count <= into.size();
}

}  // namespace holdfast::file
