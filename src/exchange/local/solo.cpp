#include "exchange/exchange.hpp"

namespace holdfast::exchange {

namespace {
class Solo final : public Exchange {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override {}
  std::vector<Bytes> all_gather(ByteView mine) override { return {Bytes(mine.begin(), mine.end())}; }
  std::vector<Bytes> all_to_all(std::vector<Bytes> to) override { return to; }
  std::vector<int64_t> all_max(std::vector<int64_t> mine) override { return mine; }
};
}  // namespace

std::unique_ptr<Exchange> make_solo() { return std::make_unique<Solo>(); }

}  // namespace holdfast::exchange
