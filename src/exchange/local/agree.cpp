#include "exchange/agree.hpp"

#include <cstring>

namespace holdfast::exchange {

Status agree(Exchange& ranks, const Status& mine) {
  if (ranks.size() == 1 || ranks.all_max({!mine.ok()})[0] == 0) return mine;
  const std::string& sentence = mine.sentence();
  Bytes bytes(8 + sentence.size());
  const int32_t head[2] = {int32_t(mine.kind()), mine.sys_errno()};
  std::memcpy(bytes.data(), head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, sentence.data(), sentence.size());
  for (const Bytes& other : ranks.all_gather(bytes)) {
    int32_t their[2];
    std::memcpy(their, other.data(), sizeof their);
    if (Kind(their[0]) != Kind::ok)
      return Status(Kind(their[0]), std::string(reinterpret_cast<const char*>(other.data()) + 8, other.size() - 8), their[1]);
  }
  return Status(Kind::internal, "a rank failed without saying why");
}

}  // namespace holdfast::exchange
