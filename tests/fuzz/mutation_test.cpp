// The fuzzers' targets under a seeded mutator that every compiler can build: always run, always the same inputs.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "fuzz/targets.hpp"
#include "layout/pack.hpp"

namespace holdfast::fuzz {
namespace {

layout::Manifest example(bool single) {
  layout::Manifest m;
  m.file_id = "00112233445566778899aabbccddeeff";
  m.path = "/home/user/\xff out.dat";
  m.geometry = {{4, 2, false}, layout::Placement::interleaved, single, 6, 3, 65536, 32768};
  if (!single) {
    m.set_id = "ffeeddccbbaa99887766554433221100";
    m.directory = "out.dat-0a1b2c3d";
  }
  m.epoch = 9, m.size = 1234567, m.rows = 5, m.next_generation = 8;
  m.open_generations = {5, 7};
  m.journals = {"4.0", "7.12"};
  m.members.assign(6, {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "/mnt/t", true, "EIO"});
  return m;
}

// Two small files of a checkpoint.
layout::Manifest pack_example() {
  layout::Manifest m = example(false);
  m.path.clear(), m.open_generations.clear(), m.journals.clear();
  m.pool = true;
  const layout::Version first{"0123456789abcdef", 3, 30, 0, 2, 1, "/ck/30.0"}, second{"0123456789abcdef", 3, 30, 1, 2, 1, "/ck/30.1"};
  layout::fill(m, {{first, 0, 4000, 0644}, {second, 4000, 5000, 0644}});
  return m;
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  void change(std::string& text) {
    for (uint64_t times = below(2) ? 1 : 2 + below(3); times > 0; --times) change_once(text);
  }

 private:
  // Words that parsers and arithmetic stumble over.
  static constexpr const char* words[] = {"-1",
                                          "0",
                                          "1e308",
                                          "-0.0",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "4294967296",
                                          "65",
                                          "4097",
                                          "null",
                                          "true",
                                          "[]",
                                          "{}",
                                          "\"\"",
                                          "[[[[[[[[",
                                          "}}",
                                          "\"..\"",
                                          "\"/\"",
                                          "\"a/b\"",
                                          "\"\\u0000\"",
                                          "\"\\ud800\"",
                                          "\xff",
                                          "\"rs:32+8\"",
                                          "\"mirror:8\"",
                                          "\"separate\"",
                                          "\\",
                                          "\n#holdfast-manifest 2 ",
                                          "{\"hex\":\"2e2e\"}",
                                          "{\"hex\":\"zz\"}",
                                          "4096",
                                          "268435456",
                                          "false"};

  uint64_t below(uint64_t limit) { return limit ? random_() % limit : 0; }

  // Where a JSON value begins and ends, roughly: between ':' and ',' or the line's end.
  void replace_value(std::string& text) {
    const size_t colon = text.find(':', below(text.size()));
    if (colon == std::string::npos) return;
    const size_t end = text.find_first_of(",\n]}", colon);
    text.replace(colon + 1, (end == std::string::npos ? text.size() : end) - colon - 1, words[below(std::size(words))]);
  }

  void change_once(std::string& text) {
    if (text.empty()) text = "{}";
    const size_t at = below(text.size());
    switch (below(8)) {
      case 0: text[at] = char(text[at] ^ (1 << below(8))); break;
      case 1: text[at] = char(random_()); break;
      case 2: text.erase(at, 1 + below(16)); break;
      case 3: text.insert(at, words[below(std::size(words))]); break;
      case 4: text.insert(at, text.substr(below(text.size()), below(200))); break;
      case 5: text.resize(at); break;
      default: replace_value(text); break;
    }
  }

  std::mt19937_64 random_;
};

TEST(Fuzz, the_manifest_reader_behind_the_checksum_survives_any_text) {
  for (bool single : {false, true}) {
    const std::string text = *layout::unseal("manifest", layout::manifest_format, layout::encode(example(single)));
    int accepted = 0;
    for (uint64_t seed = 0; seed < 6000; ++seed) {
      std::string changed = text;
      Mutator(seed).change(changed);
      sealed_manifest(changed);
      const std::string sealed = layout::seal("manifest", layout::manifest_format, changed);
      accepted += layout::decode(std::as_bytes(std::span(sealed.data(), sealed.size()))).ok();
    }
    EXPECT_GT(accepted, 60) << "the mutations are too coarse to reach what comes after the first complaint";
    EXPECT_LT(accepted, 5000);
  }
}

TEST(Fuzz, the_reader_of_packs_behind_the_checksum_survives_any_text) {
  const std::string text = *layout::unseal("manifest", layout::pack_manifest_format, layout::encode(pack_example()));
  int accepted = 0;
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    std::string changed = text;
    Mutator(seed).change(changed);
    const std::string sealed = layout::seal("manifest", layout::pack_manifest_format, changed);
    manifest_text(sealed);
    accepted += layout::decode(std::as_bytes(std::span(sealed.data(), sealed.size()))).ok();
  }
  EXPECT_GT(accepted, 60) << "the mutations are too coarse to reach what comes after the first complaint";
  EXPECT_LT(accepted, 5000);
}

TEST(Fuzz, the_manifest_reader_survives_any_bytes) {
  const std::string text = layout::encode(example(false));
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    std::string changed = text;
    Mutator(seed).change(changed);
    manifest_text(changed);
  }
}

TEST(Fuzz, the_record_reader_survives_any_bytes) {
  std::mt19937_64 random(1);
  layout::Geometry g{{4, 2, false}, layout::Placement::interleaved, false, 6, 0, 4096, 4096};
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes(3 + layout::record_slot_bytes(g), std::byte{0});
    bytes[0] = std::byte{3}, bytes[1] = std::byte{1};
    layout::RowRecord record{3, 1 + random() % 9, {}};
    if (random() % 4) record.checksums.assign(6, random());
    layout::encode_record(g, 7, record, bytes.data() + 3);
    for (uint64_t times = random() % 4; times > 0; --times) bytes[random() % bytes.size()] = std::byte(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    record_slot(bytes);
  }
}

TEST(Fuzz, the_readers_of_record_logs_survive_anything) {
  layout::Session session;
  session.id = "00112233445566778899aabbccddeeff";
  session.path = "/home/user/\xff out.dat";
  session.node = "boot time";
  session.ranks = 4, session.rank = 3;
  session.view.runs = {{8, 8, 4, 64}, {512, 16, 1, 0}};
  session.view.extent = 1024;
  const std::string text = *layout::unseal("session", layout::session_format, layout::encode(session));
  int accepted = 0;
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    std::string changed = text;
    Mutator(seed).change(changed);
    sealed_session(changed);
    const std::string sealed = layout::seal("session", layout::session_format, changed);
    accepted += layout::decode_session(std::as_bytes(std::span(sealed))).ok();
  }
  EXPECT_GT(accepted, 60);
  EXPECT_LT(accepted, 5000);
  std::array<std::byte, layout::entry_header_bytes> header;
  layout::encode_entry(7, 8, {}, header.data());
  for (size_t bit = 0; bit < 8 * header.size(); ++bit) {
    auto changed = header;
    changed[bit / 8] ^= std::byte(1 << bit % 8);
    log_entry(changed);
    EXPECT_FALSE(layout::decode_entry(7, 8, changed).ok()) << "bit " << bit;
  }
  for (size_t bytes = 0; bytes <= header.size(); ++bytes) log_entry(ByteView(header).first(bytes));
}

}  // namespace
}  // namespace holdfast::fuzz
