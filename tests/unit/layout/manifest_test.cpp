#include "layout/manifest.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include <nlohmann/json.hpp>

#include "layout/pack.hpp"
#include "layout/sealed_text.hpp"

namespace holdfast::layout {
namespace {

using Json = nlohmann::ordered_json;

ByteView view(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

Manifest example() {
  Manifest m;
  m.file_id = "00112233445566778899aabbccddeeff";
  m.set_id = "ffeeddccbbaa99887766554433221100";
  m.path = "/home/user/run 7/out.dat";
  m.directory = "out.dat-0a1b2c3d";
  m.geometry = {{4, 2, false}, Placement::interleaved, false, 7, 3, 65536, 32768};
  m.epoch = 9;
  m.settled_epoch = 8;
  m.size = 1234567;
  m.rows = 5;
  m.next_generation = 8;
  m.open_generations = {5, 7};
  m.journals = {"4.0", "7.12"};
  for (int i = 0; i < 7; ++i)
    m.members.push_back({std::string(31, 'a') + char('0' + i), "/mnt/t" + std::to_string(i), i == 2, i == 2 ? "EIO at write, \"quoted\"\n" : ""});
  m.path_state = {66305, 4711, 180, -5};
  m.mode = 0640;
  return m;
}

// `example()` with its JSON changed and sealed again, so that the reader behind the checksum sees it.
Result<Manifest> decode_with(const std::function<void(Json&)>& change) {
  std::string text = encode(example());
  Json json = Json::parse(*unseal("manifest", manifest_format, text));
  change(json);
  return decode(view(seal("manifest", manifest_format, json.dump())));
}

TEST(Manifest, what_is_written_is_read_back) {
  const Manifest m = example();
  auto read = decode(view(encode(m)));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, m);
}

TEST(Manifest, the_job_that_wrote_it_comes_back_and_may_be_unknown) {
  Manifest m = example();
  EXPECT_EQ(encode(m).find("\"job\""), std::string::npos) << "as writers from before wrote it";
  m.job = "0123456789abcdef";
  auto read = decode(view(encode(m)));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, m);
  m.job = "../../elsewhere!";
  EXPECT_EQ(decode(view(encode(m))).status().kind(), Kind::corrupt);
}

Manifest wide_example(int members) {
  Manifest m = example();
  m.pool = true;
  m.geometry.members = members;
  m.members.clear();
  for (int i = 0; i < members; ++i)
    m.members.push_back({std::string(28, 'a') + std::to_string(1000 + i), "n" + std::to_string(i) + ":/tmp/hf-n" + std::to_string(i), i == 2,
                         i == 2 ? "EIO at write, \"quoted\"\n" : ""});
  return m;
}

TEST(Manifest, of_more_members_than_a_set_can_have_is_of_a_format_of_its_own) {
  for (const int members : {max_members, max_members + 1, max_pool_members}) {
    const Manifest m = wide_example(members);
    const std::string text = encode(m);
    auto read = decode(view(text));
    ASSERT_TRUE(read.ok()) << read.status().sentence();
    EXPECT_EQ(*read, m);
    const bool wide = members > max_members;
    EXPECT_EQ(unseal("manifest", version_manifest_format, text).status().kind(), wide ? Kind::version : Kind::ok) << "who knows no such files";
    EXPECT_EQ(text.find("\"stale\":false") == std::string::npos, true) << "what is as usual needs no room";
    EXPECT_LT(text.size(), size_t(members) * (wide ? 100 : 200) + 1500);
  }
}

TEST(Manifest, of_many_members_is_on_a_pool_and_of_that_format) {
  const auto kind_of = [](const Manifest& m) { return decode(view(encode(m))).status().kind(); };
  Manifest on_a_set = wide_example(max_members + 1);
  on_a_set.pool = false;
  EXPECT_EQ(kind_of(on_a_set), Kind::corrupt);
  EXPECT_EQ(kind_of(wide_example(max_pool_members + 1)), Kind::corrupt);
  const auto sealed_as = [](const Manifest& m, int format) {
    return decode(view(seal("manifest", format, *unseal("manifest", wide_manifest_format, encode(m))))).status().kind();
  };
  EXPECT_EQ(sealed_as(wide_example(max_members + 1), pool_manifest_format), Kind::corrupt);
  EXPECT_EQ(sealed_as(wide_example(max_members), wide_manifest_format), Kind::corrupt);
  EXPECT_EQ(sealed_as(wide_example(max_members + 1), wide_manifest_format), Kind::ok);
}

TEST(Manifest, a_single_directorys_is_read_back) {
  Manifest m = example();
  m.geometry = {{1, 2, true}, Placement::separate, true, 3, 12, 1 << 20, 32768};
  m.set_id.clear();
  m.directory.clear();
  m.members.assign(3, {"", "/scratch", false, ""});
  m.open_generations.clear();
  m.journals.clear();
  auto read = decode(view(encode(m)));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, m);
}

TEST(Manifest, the_nodes_of_members_are_read_back_bounded_and_not_written_where_there_are_none) {
  EXPECT_EQ(encode(example()).find("nodes"), std::string::npos);
  Manifest m = example();
  for (uint32_t i = 0; i < 7; ++i) m.members[i].nodes = {3 * i, 3 * i + 1, uint32_t(max_start) - i};
  auto read = decode(view(encode(m)));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, m);
  for (const Json& bad : {Json(3), Json("3"), Json(nullptr), Json::array({-1}), Json::array({1.5}), Json::array({"3"}), Json::array({max_start + 1}),
                          Json::array({Json::array({1})}), Json(std::vector<int>(max_nodes + 1, 1))})
    EXPECT_EQ(decode_with([&](Json& json) { json["members"][1]["nodes"] = bad; }).status().kind(), Kind::corrupt) << bad.dump();
  EXPECT_EQ(name_of_nodes({}), "");
  EXPECT_EQ(name_of_nodes({4}), "node 4");
  EXPECT_EQ(name_of_nodes({4, 7}), "nodes 4, 7");
}

TEST(Manifest, names_that_are_not_utf8_are_read_back) {
  Manifest m = example();
  m.path = "/data/\xff\xfe caf\xe9";
  m.directory = "\xe9-01234567";
  m.members[0].path = "/mnt/\xed\xa0\x80";
  m.members[1].why = "cannot open /mnt/\xff";
  auto read = decode(view(encode(m)));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, m);
}

TEST(Manifest, a_reason_that_is_too_long_is_cut_and_never_makes_the_manifest_unreadable) {
  Manifest m = example();
  m.members[0].why = std::string(511, 'x') + "\xc3\xa9" + std::string(9000, 'y');  // the cut parts a character
  auto read = decode(view(encode(m)));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(read->members[0].why, m.members[0].why.substr(0, 512));
}

TEST(Manifest, every_truncation_is_refused) {
  const std::string text = encode(example());
  for (size_t bytes = 0; bytes < text.size(); ++bytes) ASSERT_EQ(decode(view(text).first(bytes)).status().kind(), Kind::corrupt) << bytes;
}

TEST(Manifest, every_altered_byte_is_refused) {
  std::string text = encode(example());
  for (size_t i = 0; i < text.size(); ++i) {
    for (int change = 1; change < 256; change <<= 1) {
      text[i] = char(text[i] ^ change);
      ASSERT_EQ(decode(view(text)).status().kind(), Kind::corrupt) << "byte " << i;
      text[i] = char(text[i] ^ change);
    }
  }
}

TEST(Manifest, bytes_after_its_end_are_refused) {
  EXPECT_EQ(decode(view(encode(example()) + "\n")).status().kind(), Kind::corrupt);
  EXPECT_EQ(decode(view(encode(example()) + encode(example()))).status().kind(), Kind::corrupt);
}

// Final: nobody writes it any more.
Manifest example_of(const Version& version) {
  Manifest manifest = example();
  manifest.pool = true;
  manifest.path.clear();
  manifest.open_generations.clear();
  manifest.journals.clear();
  manifest.lone = 0;
  manifest.cut_to.reset();
  manifest.version = version;
  return manifest;
}

TEST(Manifest, a_version_of_a_checkpoint_comes_back_and_is_final) {
  Manifest version = example_of(Version{"0123456789abcdef", 3, 30, 2, 6, 1, "/ck/ck.30.2"});
  for (const char* field : {"written", "turn", "attempt_id"})
    EXPECT_EQ(encode(version).find(field), std::string::npos) << "left out where it is not known";
  version.version->written = 17;
  version.version->turn = 5;
  version.version->attempt.id = 0xfedcba9876543210;
  const auto read = decode(view(encode(version)));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, version);
  EXPECT_TRUE(read->is_final());
  EXPECT_FALSE(decode(view(encode(example())))->is_final());
  Manifest of_another = version;
  of_another.version->writer = 6;
  EXPECT_EQ(*decode(view(encode(of_another))), of_another);
  Manifest written = version;
  written.journals = {"3.0"};
  EXPECT_EQ(decode(view(encode(written))).status().kind(), Kind::corrupt) << "it has no writers";
  Manifest rank = version;
  rank.version->rank = 6;
  EXPECT_EQ(decode(view(encode(rank))).status().kind(), Kind::corrupt);
  Manifest run = version;
  run.version->run = "../../escape.....";
  EXPECT_EQ(decode(view(encode(run))).status().kind(), Kind::corrupt);
  const std::string text = *unseal("manifest", version_manifest_format, encode(version));
  for (const char* bad : {"0000000000000000", "fedcba987654321", "fedcba98765432100", "FEDCBA9876543210", "../../escape...."}) {
    std::string forged = text;
    forged.replace(forged.find("fedcba9876543210"), 16, bad);
    EXPECT_EQ(decode(view(seal("manifest", version_manifest_format, forged))).status().kind(), Kind::corrupt) << bad;
  }
}

TEST(Manifest, a_version_that_is_of_no_checkpoint_comes_back_and_has_no_rank) {
  Manifest version = example_of(Version{"0123456789abcdef", 3, 0, 0, 0, 1, "/results/a.dat"});
  EXPECT_TRUE(version.version->is_single());
  EXPECT_EQ(*decode(view(encode(version))), version);
  version.version->rank = 1;
  EXPECT_EQ(decode(view(encode(version))).status().kind(), Kind::corrupt);
}

// Three files of one step in one protected file: the second is empty, and the third a roll.
Manifest pack_example() {
  Manifest pack = example();
  pack.pool = true;
  pack.path.clear();
  pack.open_generations.clear();
  pack.journals.clear();
  pack.lone = 0;
  pack.cut_to.reset();
  pack.size = 1000;
  const Version first{"0123456789abcdef", {3, 0xfedcba9876543210}, 30, 3, 3, 1, "/ck/30/a.0", 17, 5, 3, 0, "/ck/a.0"};
  Version second = first, roll = first;
  second.file = "/ck/30/a.1", second.writer = 1, second.number = 2;
  roll.file = "/roll.30.of.0", roll.roll = Roll{false, {{"/ck/30/a.0", 1, 17}}};
  fill(pack, {{first, 0, 990, 0640}, {second, 990, 0, 0600}, {roll, 995, 5, 0600}});
  return pack;
}

TEST(Manifest, of_a_pack_comes_back_and_each_of_its_files_is_a_version) {
  const std::string text = encode(pack_example());
  const auto read = decode(view(text));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, pack_example());
  EXPECT_TRUE(read->is_final());
  EXPECT_EQ(unseal("manifest", wide_manifest_format, text).status().kind(), Kind::version) << "who knows no packs";
  const auto pack = std::make_shared<const Manifest>(*read);
  std::set<std::string> ids{pack->file_id};
  for (size_t i = 0; i < 3; ++i) {
    const Manifest file = file_in(pack, i);
    EXPECT_EQ(*file.version, pack->pack[i].version);
    EXPECT_EQ(std::make_tuple(file.size, file.offset_within, file.mode),
              std::make_tuple(pack->pack[i].bytes, pack->pack[i].offset, pack->pack[i].mode));
    EXPECT_EQ(file.file_id.size(), 32u);
    EXPECT_EQ(file.file_id.substr(24), pack->file_id.substr(24)) << "its node";
    EXPECT_TRUE(ids.insert(file.file_id).second);
    EXPECT_EQ(&stored(file), pack.get());
  }
  EXPECT_EQ(versions_in(*pack), 3u);
  EXPECT_EQ(file_in(pack, 1).file_id, file_in(std::make_shared<const Manifest>(*read), 1).file_id) << "the same for everybody";
}

TEST(Manifest, a_pack_that_makes_no_sense_is_refused) {
  const std::vector<std::pair<const char*, std::function<void(Json&)>>> forgeries{
      {"no files", [](Json& j) { j["pack"] = Json::array(); }},
      {"no list", [](Json& j) { j["pack"] = 3; }},
      {"nothing said", [](Json& j) { j.erase("pack"); }},
      {"no version", [](Json& j) { j.erase("version"); }},
      {"a file that is a number", [](Json& j) { j["pack"][1] = 1; }},
      {"files that overlap", [](Json& j) { j["pack"][1]["offset"] = 989; }},
      {"a file beyond the end", [](Json& j) { j["pack"][2]["bytes"] = 6; }},
      {"a file that begins beyond it", [](Json& j) { j["pack"][2]["offset"] = 1001; }},
      {"so many bytes that they overflow", [](Json& j) { j["pack"][0]["bytes"] = ~0ull; }},
      {"set-uid", [](Json& j) { j["pack"][0]["mode"] = 04755; }},
      {"a relative path", [](Json& j) { j["pack"][0]["file"] = "ck"; }},
      {"a rank of none", [](Json& j) { j["pack"][0]["rank"] = 4; }},
      {"too many", [](Json& j) { j["pack"] = std::vector<Json>(max_packed_files + 1, j["pack"][1]); }},
  };
  const Json whole = Json::parse(*unseal("manifest", pack_manifest_format, encode(pack_example())));
  for (const auto& [name, forge] : forgeries) {
    Json json = whole;
    forge(json);
    EXPECT_EQ(decode(view(seal("manifest", pack_manifest_format, json.dump()))).status().kind(), Kind::corrupt) << name;
  }
  EXPECT_TRUE(decode(view(seal("manifest", version_manifest_format, whole.dump())))->pack.empty()) << "a version of before has none";
}

TEST(Manifest, a_newer_format_says_so_and_names_the_mend) {
  auto read = decode(view(seal("manifest", newest_manifest_format + 1, "{\"anything\": []}")));
  EXPECT_EQ(read.status().kind(), Kind::version);
  EXPECT_NE(read.status().sentence().find("install a newer Holdfast"), std::string::npos) << read.status().sentence();
}

TEST(Manifest, keys_that_nobody_knows_are_tolerated) {
  auto read = decode_with([](Json& json) { json["later"] = Json::array({1, "x", nullptr}); });
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, example());
}

TEST(Manifest, a_missing_key_is_refused) {
  const Json whole = Json::parse(*unseal("manifest", manifest_format, encode(example())));
  for (const auto& item : whole.items()) {
    const std::string key = item.key();
    auto read = decode_with([&](Json& json) { json.erase(key); });
    EXPECT_EQ(read.status().kind(), Kind::corrupt) << key;
    EXPECT_NE(read.status().sentence().find(key), std::string::npos) << read.status().sentence();
  }
}

TEST(Manifest, a_value_of_another_type_is_refused) {
  const Json whole = Json::parse(*unseal("manifest", manifest_format, encode(example())));
  for (const auto& item : whole.items()) {
    const std::string key = item.key();
    for (const Json& other : {Json(nullptr), Json(-1.5), Json(1e300), Json::parse("{\"x\":{}}"), Json(true)})
      EXPECT_EQ(decode_with([&](Json& json) { json[key] = other; }).status().kind(), Kind::corrupt) << key << " = " << other.dump();
  }
}

struct Forgery {
  const char* name;
  std::function<void(Json&)> change;
};

TEST(Manifest, forged_values_are_refused) {
  const std::vector<Forgery> forgeries{
      {"directory that climbs", [](Json& j) { j["directory"] = "../x"; }},
      {"directory of dots", [](Json& j) { j["directory"] = ".."; }},
      {"directory with a slash", [](Json& j) { j["directory"] = "a/b"; }},
      {"absolute directory", [](Json& j) { j["directory"] = "/etc"; }},
      {"no directory", [](Json& j) { j["directory"] = ""; }},
      {"directory with a NUL", [](Json& j) { j["directory"] = std::string("a\0b", 3); }},
      {"directory that climbs in hex",
       [](Json& j) {
         j["directory"] = Json{{"hex", "2e2e"}};
       }},
      {"slash in hex",
       [](Json& j) {
         j["directory"] = Json{{"hex", "612f62"}};
       }},
      {"odd hex",
       [](Json& j) {
         j["path"] = Json{{"hex", "2f6"}};
       }},
      {"long directory", [](Json& j) { j["directory"] = std::string(256, 'a'); }},
      {"relative path", [](Json& j) { j["path"] = "out.dat"; }},
      {"long path", [](Json& j) { j["path"] = "/" + std::string(4096, 'a'); }},
      {"relative member", [](Json& j) { j["members"][0]["path"] = "x"; }},
      {"short id", [](Json& j) { j["file_id"] = "0011"; }},
      {"no id", [](Json& j) { j["file_id"] = ""; }},
      {"upper case id", [](Json& j) { j["file_id"] = std::string(32, 'A'); }},
      {"uuid that is a path", [](Json& j) { j["members"][0]["uuid"] = "../../../../../../../../etc/pass"; }},
      {"member that is a number", [](Json& j) { j["members"][0] = 1; }},
      {"one member too few", [](Json& j) { j["members"].erase(6); }},
      {"no members", [](Json& j) { j["members"] = Json::array(); }},
      {"65 members",
       [](Json& j) {
         for (int i = 0; i < 58; ++i) j["members"].push_back(j["members"][0]);
         j["geometry"]["members"] = 65;
       }},
      {"negative size", [](Json& j) { j["size"] = -1; }},
      {"durable epoch of the future", [](Json& j) { j["settled_epoch"] = 10; }},
      {"size beyond a file", [](Json& j) { j["size"] = 1ull << 63; }},
      {"size whose rows overflow", [](Json& j) { j["size"] = (1ull << 63) - 1; }},
      {"rows that overflow", [](Json& j) { j["rows"] = 1ull << 50; }},
      {"number beyond 64 bits", [](Json& j) { j["epoch"] = Json::parse("18446744073709551616"); }},
      {"generation nought", [](Json& j) { j["next_generation"] = 0; }},
      {"open generation nought", [](Json& j) { j["open_generations"] = {0}; }},
      {"open generation of the future", [](Json& j) { j["open_generations"] = {8}; }},
      {"too many open generations", [](Json& j) { j["open_generations"] = std::vector<int>(4097, 1); }},
      {"journal that climbs", [](Json& j) { j["journals"] = {"../1.0"}; }},
      {"journal without rank", [](Json& j) { j["journals"] = {"1."}; }},
      {"journal without generation", [](Json& j) { j["journals"] = {".1"}; }},
      {"journal of three parts", [](Json& j) { j["journals"] = {"1.2.3"}; }},
      {"journal with an endless number", [](Json& j) { j["journals"] = {std::string(21, '1') + ".1"}; }},
      {"too many journals", [](Json& j) { j["journals"] = std::vector<std::string>(16385, "1.1"); }},
      {"unknown scheme", [](Json& j) { j["geometry"]["scheme"] = "raid5"; }},
      {"absurd scheme", [](Json& j) { j["geometry"]["scheme"] = "rs:33+2"; }},
      {"scheme wider than the members", [](Json& j) { j["geometry"]["scheme"] = "rs:6+2"; }},
      {"unknown placement", [](Json& j) { j["geometry"]["placement"] = "anywhere"; }},
      {"unit of nothing", [](Json& j) { j["geometry"]["unit_bytes"] = 0; }},
      {"unit of a terabyte", [](Json& j) { j["geometry"]["unit_bytes"] = 1ull << 40; }},
      {"unit of odd bytes", [](Json& j) { j["geometry"]["unit_bytes"] = 65537; }},
      {"block that does not divide", [](Json& j) { j["geometry"]["block_bytes"] = 24576; }},
      {"block of nothing", [](Json& j) { j["geometry"]["block_bytes"] = 0; }},
      {"start beyond the members", [](Json& j) { j["geometry"]["start"] = 7; }},
      {"set-uid and more", [](Json& j) { j["mode"] = 010000; }},
      {"a list instead of all", [](Json& j) { j = Json::array({j}); }},
      {"time beyond 64 bits", [](Json& j) { j["path_state"]["change_ns"] = 1ull << 63; }},
  };
  for (const Forgery& forgery : forgeries) {
    auto read = decode_with(forgery.change);
    EXPECT_EQ(read.status().kind(), Kind::corrupt) << forgery.name;
  }
}

TEST(Manifest, what_is_deeply_nested_or_too_large_is_refused) {
  for (const std::string& text : {std::string(500000, '['), std::string(400000, '{'), std::string(2 << 20, ' ')})
    EXPECT_EQ(decode(view(seal("manifest", manifest_format, text))).status().kind(), Kind::corrupt);
  std::string nested = std::string(200000, '[') + std::string(200000, ']');
  EXPECT_EQ(decode(view(seal("manifest", manifest_format, nested))).status().kind(), Kind::corrupt);
}

TEST(Manifest, a_generation_is_synced_once_its_writer_has_synced) {
  Manifest m;
  m.next_generation = 5;
  m.open_generations = {2, 4};
  EXPECT_FALSE(m.is_synced(0));
  EXPECT_TRUE(m.is_synced(1));
  EXPECT_FALSE(m.is_synced(2));
  EXPECT_TRUE(m.is_synced(3));
  EXPECT_FALSE(m.is_synced(4));
  EXPECT_FALSE(m.is_synced(5));
}

TEST(Manifest, ids_are_32_hex_digits_and_differ) {
  std::set<std::string> ids;
  std::set<uint64_t> keys;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = random_id();
    EXPECT_EQ(id.size(), 32u);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
    ids.insert(id);
    keys.insert(file_key(id));
  }
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(keys.size(), 1000u);
}

TEST(SealedText, another_kinds_file_is_refused) {
  EXPECT_EQ(unseal("target", 1, seal("manifest", 1, "{}")).status().kind(), Kind::corrupt);
  auto read = unseal("target", 1, seal("target", 1, "{}"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, "{}\n");
}

// ---------------------------------------------------------------- the newest of several copies

// A writer was killed when it had reached member a only; the next one could not reach a, marked it stale and moved d to e.
TEST(NewestManifest, of_one_epoch_is_not_on_a_member_that_another_calls_stale) {
  Manifest killed, next;
  killed.epoch = next.epoch = 11;
  for (const char* uuid : {"a", "b", "c", "d"}) killed.members.push_back({uuid, "/" + std::string(uuid), false, "", {}});
  for (const char* uuid : {"a", "b", "c", "e"}) next.members.push_back({uuid, "/" + std::string(uuid), false, "", {}});
  next.members[0].stale = true;
  const ManifestCopy copies[] = {{&killed, "a"}, {&next, "b"}, {&next, "c"}, {&next, "e"}};
  EXPECT_EQ(newest_of(copies), &next);
  Manifest older = killed, newer = killed;
  older.epoch = 10, newer.epoch = 12;
  const ManifestCopy with_others[] = {{&older, "d"}, {&next, ""}, {&killed, "a"}};
  EXPECT_EQ(newest_of(with_others), &next);
  const ManifestCopy with_a_newer_one[] = {{&next, "b"}, {&newer, "a"}};
  EXPECT_EQ(newest_of(with_a_newer_one), &newer) << "an epoch that is higher counts, on whichever member";
  EXPECT_EQ(newest_of({}), nullptr);
}

}  // namespace
}  // namespace holdfast::layout
