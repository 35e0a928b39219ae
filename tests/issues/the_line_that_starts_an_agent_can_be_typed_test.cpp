// Of a directory with a space in its name the line started an agent of two others.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "target/address.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast {
namespace {

TEST(LineThatStartsAnAgent, can_be_typed_whatever_its_directory_is_called) {
  const target::TemporaryDirectory home;
  setenv("HOLDFAST_AGENTS", home.path().c_str(), 1);
  const auto opened = target::open("n1:/nvme/my own");
  unsetenv("HOLDFAST_AGENTS");
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().sentence().find("holdfast agents start --node n1 '/nvme/my own'"), std::string::npos) << opened.status().sentence();
}

}  // namespace
}  // namespace holdfast
