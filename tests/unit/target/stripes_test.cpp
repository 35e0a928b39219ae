#include "target/stripes.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "target/directory.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::target {
namespace {

template <class T>
void put(std::string& blob, size_t offset, T value) {
  ASSERT_LE(offset + sizeof value, blob.size());
  std::memcpy(blob.data() + offset, &value, sizeof value);
}

// What getxattr of lustre.lov gives for a plain file on `nodes`.
std::string lov(uint32_t magic, uint32_t unit, const std::vector<uint32_t>& nodes) {
  const size_t head = magic == 0x0BD30BD0 ? 48 : 32;
  std::string blob(head + 24 * nodes.size(), '\0');
  put(blob, 0, magic);
  put(blob, 4, uint32_t(1));
  put(blob, 24, unit);
  put(blob, 28, uint16_t(nodes.size()));
  for (size_t i = 0; i < nodes.size(); ++i) put(blob, head + 24 * i + 20, nodes[i]);
  return blob;
}

std::string composite(const std::string& component, uint64_t end = std::numeric_limits<uint64_t>::max(), uint16_t entries = 1) {
  std::string blob(32 + 48, '\0');
  put(blob, 0, uint32_t(0x0BD60BD0));
  put(blob, 14, entries);
  put(blob, 32 + 16, end);
  put(blob, 32 + 24, uint32_t(blob.size()));
  put(blob, 32 + 28, uint32_t(component.size()));
  return blob + component;
}

TEST(Stripes, CephLayoutsAreRead) {
  auto layout = parse_ceph_layout("stripe_unit=65536 stripe_count=4 object_size=4194304 pool=cephfs_data");
  ASSERT_TRUE(layout);
  EXPECT_EQ(*layout, (Stripes{65536, 4, true, {}}));
  EXPECT_EQ(layout->distinct_nodes(), 1);  // objects are placed by a hash
  EXPECT_FALSE(parse_ceph_layout("stripe_unit=65536"));
  EXPECT_FALSE(parse_ceph_layout("stripe_unit=x stripe_count=4"));
  EXPECT_FALSE(parse_ceph_layout(""));
}

TEST(Stripes, LustreLayoutsAreReadWithTheirNodes) {
  for (uint32_t magic : {0x0BD10BD0u, 0x0BD30BD0u}) {
    auto layout = parse_lustre_layout(lov(magic, 1 << 20, {7, 8, 0, 1}));
    ASSERT_TRUE(layout);
    EXPECT_EQ(*layout, (Stripes{1 << 20, 4, false, {7, 8, 0, 1}}));
    EXPECT_EQ(layout->distinct_nodes(), 4);
  }
  EXPECT_EQ(parse_lustre_layout(lov(0x0BD10BD0, 65536, {3, 3}))->distinct_nodes(), 1);
}

TEST(Stripes, ACompositeLayoutOfOneComponentIsAPlainOneAndAllOthersAreUnknown) {
  const std::string plain = lov(0x0BD10BD0, 65536, {2, 5});
  EXPECT_EQ(parse_lustre_layout(composite(plain)), parse_lustre_layout(plain));
  EXPECT_FALSE(parse_lustre_layout(composite(plain, 1 << 20)));  // ends before the file does
  EXPECT_FALSE(parse_lustre_layout(composite(plain, std::numeric_limits<uint64_t>::max(), 2)));
  EXPECT_FALSE(parse_lustre_layout(composite(composite(plain))));
  std::string far = composite(plain);
  put(far, 32 + 24, uint32_t(0xfffffff0));
  EXPECT_FALSE(parse_lustre_layout(far));
}

TEST(Stripes, WhatSaysLessThanItsNodesIsUnknown) {
  const std::string good = lov(0x0BD10BD0, 65536, {0, 1, 2});
  for (size_t bytes = 0; bytes < good.size(); ++bytes) EXPECT_FALSE(parse_lustre_layout(good.substr(0, bytes))) << bytes;
  auto with = [&](size_t at, auto value) {
    std::string blob = good;
    put(blob, at, value);
    return blob;
  };
  EXPECT_FALSE(parse_lustre_layout(with(28, uint16_t(0))));
  EXPECT_FALSE(parse_lustre_layout(with(28, uint16_t(4))));       // more than are listed
  EXPECT_FALSE(parse_lustre_layout(with(28, uint16_t(0xffff))));  // "all"
  EXPECT_FALSE(parse_lustre_layout(with(24, uint32_t(0))));
  EXPECT_FALSE(parse_lustre_layout(with(4, uint32_t(0x100))));  // on the metadata server
  EXPECT_FALSE(parse_lustre_layout(std::string(64, 'x')));
}

TEST(Stripes, NoBytesWhateverAreReadBeyondTheirEnd) {
  std::mt19937 random(1);
  const std::string seeds[] = {lov(0x0BD10BD0, 65536, {0, 1, 2}), lov(0x0BD30BD0, 65536, {4}), composite(lov(0x0BD10BD0, 65536, {2, 5}))};
  for (int i = 0; i < 30000; ++i) {
    std::string blob = seeds[random() % std::size(seeds)];
    for (int change = 0; change < 4; ++change) blob[random() % std::min<size_t>(blob.size(), 90)] = char(random());
    blob.resize(random() % (blob.size() + 1));
    // Its own block of memory, so that a sanitizer sees a step beyond it.
    const std::vector<char> exact(blob.begin(), blob.end());
    auto layout = parse_lustre_layout(std::string_view(exact.data(), exact.size()));
    if (layout) {
      EXPECT_EQ(layout->nodes.size(), size_t(layout->count));
    }
  }
}

TEST(Stripes, ARequestNamesSizeCountAndStart) {
  const std::string any = encode_lustre_wish({65536, 4, any_node}), at_three = encode_lustre_wish({1 << 20, 2, 3});
  auto half = [](const std::string& blob, size_t at) { return uint8_t(blob[at]) | uint8_t(blob[at + 1]) << 8; };
  EXPECT_EQ(any.size(), 32u);
  EXPECT_EQ(half(any, 28), 4);
  EXPECT_EQ(half(any, 30), 0xffff);
  EXPECT_EQ(half(at_three, 28), 2);
  EXPECT_EQ(half(at_three, 30), 3);
  EXPECT_EQ(half(at_three, 26), 1 << 4);
}

// A start of 0 in an attribute means "any" there.
TEST(Stripes, TheFirstNodeIsAskedForByAList) {
  const std::string blob = encode_lustre_wish({65536, 2, 0});
  ASSERT_EQ(blob.size(), 48u + 2 * 24);
  EXPECT_EQ(blob.substr(0, 4), std::string("\xd0\x0b\xd5\x0b", 4));
  EXPECT_EQ(blob[48 + 20], 0);
  EXPECT_EQ(blob[48 + 24 + 20], 1);
}

TEST(Stripes, OrangeFsNumbersAreRead) {
  EXPECT_EQ(parse_orangefs_layout("6")->count, 6);
  EXPECT_FALSE(parse_orangefs_layout("0"));
  EXPECT_FALSE(parse_orangefs_layout("many"));
}

// Ordinary file systems store anything under user.*; that must not pass for striping.
TEST(Stripes, APlainFileSystemIsOneNode) {
  TemporaryDirectory here;
  auto directory = open_directory(here.path()).value();
  EXPECT_EQ(directory->make_striped("o", {65536, 4, any_node}).value(), Stripes());
  EXPECT_EQ(directory->stripes("o").value(), Stripes());
}

}  // namespace
}  // namespace holdfast::target
