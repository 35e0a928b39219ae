#include "exchange/agree.hpp"

#include <cstring>

namespace holdfast::exchange {

namespace {

constexpr size_t kHeadBytes = 8;  // kind and errno, 32 bits each

}  // namespace

Bytes pack(const Status& status) {
  Bytes bytes(kHeadBytes + status.sentence().size());
  const int32_t head[2] = {int32_t(status.kind()), status.sys_errno()};
  std::memcpy(bytes.data(), head, kHeadBytes);
  std::memcpy(bytes.data() + kHeadBytes, status.sentence().data(), status.sentence().size());
  return bytes;
}

Status unpack(ByteView bytes) {
  int32_t head[2];
  std::memcpy(head, bytes.data(), kHeadBytes);
  return Status(Kind(head[0]), std::string(reinterpret_cast<const char*>(bytes.data()) + kHeadBytes, bytes.size() - kHeadBytes), head[1]);
}

Status first_failure(Exchange& ranks, const Status& mine) {
  for (const Bytes& bytes : ranks.all_gather(pack(mine)))
    if (Status status = unpack(bytes); !status.ok()) return status;
  return Status(Kind::internal, "a rank failed without saying why");
}

Status agree(Exchange& ranks, const Status& mine) {
  if (ranks.size() == 1 || ranks.all_max({!mine.ok()})[0] == 0) return mine;
  return first_failure(ranks, mine);
}

}  // namespace holdfast::exchange
