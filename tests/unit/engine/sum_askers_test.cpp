// A repair's ways to the agents that rebuild units for it: few at a time, and none any more where they fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "engine/node_sums.hpp"
#include "target/lane.hpp"
#include "target/target.hpp"

namespace holdfast::engine {
namespace {

// Whose sums are the coefficients of their terms.
class AddingTarget final : public target::Target {
 public:
  AddingTarget(std::string address, int& open, bool& fails) : address_(std::move(address)), open_(open), fails_(fails) { ++open_; }
  ~AddingTarget() override { --open_; }
  std::string describe() const override { return address_; }
  std::string address_for_agents() const override { return address_; }
  Status sum(std::span<const target::SumTerm> terms, ByteSpan into) override {
    if (fails_) return Status(Kind::lost, "it is gone");
    EXPECT_EQ(terms[0].address, address_);
    std::fill(into.begin(), into.end(), std::byte(terms[0].coefficient));
    return {};
  }
  Result<std::shared_ptr<target::Object>> open(const std::string&, target::OpenMode, target::Pages) override { return none(); }
  Result<target::Stripes> make_striped(const std::string&, const target::StripeWish&) override { return none(); }
  Result<target::Stripes> stripes(const std::string&) override { return none(); }
  Status put(const std::string&, ByteView, bool) override { return none(); }
  Result<Bytes> get(const std::string&, uint64_t) override { return none(); }
  Status make_directory(const std::string&) override { return none(); }
  Status remove(const std::string&) override { return none(); }
  Status remove_directory(const std::string&) override { return none(); }
  Status set_aside(const std::string&) override { return none(); }
  Result<std::vector<std::string>> list(const std::string&) override { return none(); }
  Result<target::Space> space() override { return none(); }
  Status check_identity() override { return {}; }
  Result<std::unique_ptr<target::Lock>> try_lock(const std::string&, target::Hold) override { return none(); }

 private:
  static Status none() { return Status(Kind::unsupported, "it only adds"); }
  const std::string address_;
  int& open_;
  bool& fails_;
};

class Askers : public testing::Test {
 protected:
  static std::string address(int node) { return "n" + std::to_string(node) + ":/d"; }
  bool ask(int node) {
    const auto asked = askers.ask({{address(node), "o", 0, 100, uint8_t(node)}}, 100);
    if (!asked || !askers.wait(*asked)) return false;
    const ByteSpan sum = asked->sum.span();
    return std::all_of(sum.begin(), sum.end(), [&](std::byte one) { return one == std::byte(node); });
  }

  int open = 0;
  bool fails = false;
  SumAskers askers{SumAskers::Ways{[this](const std::string& where) {
                                     return Result<std::shared_ptr<target::Target>>(std::make_shared<AddingTarget>(where, open, fails));
                                   },
                                   [](const std::string&) { return target::make_inline_lane(); }}};
};

TEST_F(Askers, are_at_few_agents_at_a_time) {
  for (int round = 0; round < 3; ++round)
    for (int node = 1; node <= 60; ++node)
      for (int times = 0; times < 5; ++times) {
        ASSERT_TRUE(ask(node));
        ASSERT_LE(open, int(SumAskers::most_agents * SumAskers::askers_of_an_agent));
      }
  EXPECT_EQ(open, int(SumAskers::most_agents * SumAskers::askers_of_an_agent));
}

TEST_F(Askers, stay_with_the_agents_that_they_have) {
  for (int times = 0; times < 100; ++times) ASSERT_TRUE(ask(1 + times % 2));
  EXPECT_EQ(open, int(2 * SumAskers::askers_of_an_agent));
}

// A sum may take as long as a call may: a repair does not wait for many.
TEST_F(Askers, ask_no_more_after_two_failures_in_a_row) {
  fails = true;
  EXPECT_FALSE(ask(1));
  fails = false;
  EXPECT_TRUE(ask(1));
  fails = true;
  EXPECT_FALSE(ask(1));
  EXPECT_FALSE(ask(2));
  fails = false;
  EXPECT_FALSE(ask(1));
  EXPECT_EQ(askers.ask({{address(1), "o", 0, 100, 1}}, 100), nullptr);
}

}  // namespace
}  // namespace holdfast::engine
