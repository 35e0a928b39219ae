// A file system that lost power has forgotten what it was not told to keep. What stood at the path then was refused as "changed from outside",
// and the advice given would have adopted the damage.
#include <fcntl.h>
#include <sys/stat.h>

#include "catalog/hidden_names.hpp"
#include "catalog/sidecar.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::catalog {
namespace {

constexpr size_t content_bytes = 100001;

class PowerCut : public Scene {
 protected:
  PowerCut() { settings.striping_unit = 65536; }

  Bytes content() const {
    Bytes bytes(content_bytes);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(1 + i % 251);
    return bytes;
  }
  void write_protected(const std::string& name) {
    const bool fresh = kind_of(user(name)) != PathKind::protected_file;
    write_into(fresh ? create(user(name), settings, 0644) : locate(user(name), settings), fresh);
  }
  // As a program does that opens with O_CREAT.
  void write_over(const std::string& name) {
    auto made = create(user(name), settings, 0644);
    const bool fresh = bool(made);
    if (made.status().kind() == Kind::exists) made = locate(user(name), settings);
    write_into(std::move(made), fresh);
  }
  void write_into(Result<Located> located, bool fresh) {
    auto alone = exchange::make_solo();
    ASSERT_TRUE(located) << located.status().sentence();
    auto file = engine::ProtectedFile::open(std::move(*located), {.read = true, .write = true, .fresh = fresh}, settings, *alone);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    const Bytes bytes = content();
    const Extent extent{0, bytes.size()};
    ASSERT_TRUE((*file)->write_all({&extent, 1}, bytes).ok());
    ASSERT_TRUE((*file)->close().ok());
  }
  void expect_content(const std::string& name) {
    auto alone = exchange::make_solo();
    auto located = locate(user(name), settings);
    ASSERT_TRUE(located) << located.status().sentence();
    auto file = engine::ProtectedFile::open(std::move(*located), {.read = true}, settings, *alone);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    Bytes bytes(content_bytes);
    const Extent extent{0, bytes.size()};
    auto got = (*file)->read({&extent, 1}, bytes);
    ASSERT_TRUE(got.ok()) << got.status().sentence();
    EXPECT_EQ(bytes, content());
  }
  bool is_found(const std::string& name) const { return bool(locate(user(name), Settings())); }
  bool is_refused(const std::string& name) const { return locate(user(name), Settings()).status().kind() == Kind::stale; }

  // The sidecar's record of the path, as another moment would have left it.
  template <class Change>
  void change_record(const std::string& name, Change change) {
    const std::string text = read(sidecar(name) + "/manifest");
    auto manifest = layout::decode(std::as_bytes(std::span(text.data(), text.size())));
    ASSERT_TRUE(manifest);
    change(*manifest);
    write(sidecar(name) + "/manifest", layout::encode(*manifest));
  }
  // As if the file system knew an earlier change as the last one. (No call sets the time of a change back.)
  void forget_last_change(const std::string& name) {
    change_record(name, [](layout::Manifest& manifest) { manifest.path_state.change_ns += 3600'000'000'000; });
  }
  void make_mirror() {
    targets(2, "mirror:2");
    write_protected("f");
  }
  void overwrite_byte(size_t at) {
    const int file = ::open(user("f").c_str(), O_RDWR);
    ASSERT_EQ(::pwrite(file, "\xff", 1, off_t(at)), 1);
    ::close(file);
  }
  uint64_t padded() const { return round_up(content_bytes, 32768); }
};

TEST_F(PowerCut, an_emptied_stub_is_ours_unless_it_was_emptied_since) {
  targets(3, "rs:2+1");
  write_protected("f");
  const std::string stub = read(user("f"));
  fs::resize_file(user("f"), 0);
  EXPECT_TRUE(is_refused("f"));
  forget_last_change("f");
  expect_content("f");
  write_protected("f");
  EXPECT_EQ(read(user("f")), stub);
  expect_content("f");
}

TEST_F(PowerCut, a_stub_of_zeros_is_nobodys_and_is_put_back) {
  targets(3, "rs:2+1");
  write_protected("f");
  const std::string stub = read(user("f"));
  write(user("f"), std::string(stub.size(), '\0'));
  EXPECT_EQ(kind_of(user("f"), false), PathKind::protected_file);
  expect_content("f");
  write_protected("f");
  EXPECT_EQ(read(user("f")), stub);
}

TEST_F(PowerCut, a_sidecar_without_a_record_leaves_an_empty_stub_to_us) {
  targets(3, "rs:2+1");
  write_protected("f");
  fs::resize_file(user("f"), 0);
  change_record("f", [](layout::Manifest& manifest) { manifest.path_state = {}; });
  expect_content("f");
  EXPECT_TRUE(remove(user("f"), settings).ok());
  EXPECT_TRUE(fs::is_empty(root / "home"));
}

TEST_F(PowerCut, without_a_sidecar_nothing_says_that_it_was_a_stub) {
  targets(3, "rs:2+1");
  write_protected("f");
  fs::remove_all(sidecar("f"));
  write(user("f"), std::string(500, '\0'));
  EXPECT_EQ(kind_of(user("f")), PathKind::plain);
  EXPECT_EQ(locate(user("f"), settings).status().kind(), Kind::not_found);
  fs::resize_file(user("f"), 0);
  EXPECT_EQ(locate(user("f"), settings).status().kind(), Kind::stale);
}

TEST_F(PowerCut, text_of_the_users_in_the_stubs_place_stays_an_edit) {
  targets(3, "rs:2+1");
  write_protected("f");
  write(user("f"), "mine");
  forget_last_change("f");
  EXPECT_TRUE(is_refused("f"));
}

TEST_F(PowerCut, a_copy_that_lost_its_last_change_is_found_and_its_damage_is_not_believed) {
  make_mirror();
  EXPECT_TRUE(is_found("f"));
  fs::resize_file(user("f"), padded());
  forget_last_change("f");
  expect_content("f");
  overwrite_byte(70000);
  EXPECT_TRUE(is_found("f"));
  expect_content("f");
  fs::resize_file(user("f"), 5000);
  expect_content("f");
}

TEST_F(PowerCut, a_copy_whose_cut_is_newer_than_the_record_is_found) {
  make_mirror();
  change_record("f", [&](layout::Manifest& manifest) { manifest.path_state.size = padded(), manifest.path_state.change_ns -= 1000; });
  expect_content("f");
}

TEST_F(PowerCut, a_newer_time_is_no_edit_where_every_checksum_holds) {
  make_mirror();
  chmod(user("f").c_str(), 0600);
  expect_content("f");
  fs::resize_file(user("f"), padded());
  expect_content("f");
  overwrite_byte(70000);
  EXPECT_TRUE(is_refused("f"));
  fs::resize_file(user("f"), content_bytes);
  EXPECT_TRUE(is_refused("f"));
}

TEST_F(PowerCut, what_a_user_has_written_into_a_copy_is_an_edit_wherever_it_is) {
  for (const size_t at : {size_t(0), size_t(65536), content_bytes - 1}) {
    make_mirror();
    overwrite_byte(at);
    EXPECT_TRUE(is_refused("f")) << at;
    ASSERT_TRUE(remove(user("f"), settings).ok());
  }
  make_mirror();
  fs::resize_file(user("f"), content_bytes + 1);
  EXPECT_TRUE(is_refused("f"));
}

TEST_F(PowerCut, a_plain_file_in_one_directory_is_told_alike) {
  settings.protect = "rs:2+1";
  settings.allow_shared_target = true;
  write_protected("f");
  chmod(user("f").c_str(), 0600);
  expect_content("f");
  overwrite_byte(99999);
  EXPECT_TRUE(is_refused("f"));
  forget_last_change("f");
  expect_content("f");
}

TEST_F(PowerCut, a_link_to_another_copy_than_the_last_one_is_ours) {
  make_mirror();
  auto located = locate(user("f"), settings);
  ASSERT_TRUE(located);
  const std::string other = target(1) + "/" + located->manifest.directory + "/unit1";
  ASSERT_TRUE(fs::exists(other));
  fs::remove(user("f"));
  fs::create_symlink(other, user("f"));
  expect_content("f");
}

// Nothing was ever made durable: the sidecar and what stands at the path are empty, and no target knows the file.
TEST_F(PowerCut, a_creation_that_lost_power_is_made_anew_by_the_next_creator) {
  targets(3, "rs:2+1");
  for (const std::string& left : {std::string(), std::string(500, '\0')}) {
    ASSERT_TRUE(open_or_create_set(settings.targets, settings));
    fs::create_directory(sidecar("f"));
    write(sidecar("f") + "/manifest", left);
    write(sidecar("f") + "/lock", "");
    write(user("f"), left);
    EXPECT_EQ(kind_of(user("f")), PathKind::protected_file);
    auto made = create(user("f"), settings, 0644);
    ASSERT_TRUE(made) << made.status().sentence();
    EXPECT_TRUE(locate(user("f"), Settings()));
    ASSERT_TRUE(remove(user("f"), settings).ok());
  }
}

// The name at the path was kept and nothing that it leads to: the file could neither be opened nor made anew, nor removed by the command.
class LeadsNowhere : public PowerCut {
 protected:
  LeadsNowhere() {
    targets(4, "mirror:2");
    for (const char* placement : {"separate", "interleaved"}) {  // a link, and a stub
      settings.placement = placement;
      auto made = create(user(placement), settings, 0644);
      EXPECT_TRUE(made) << made.status().sentence();
      if (made) directories.push_back(made->manifest.directory);
      fs::remove_all(sidecar(placement));
    }
  }
  void lose_directories() {
    for (int i = 0; i < 4; ++i)
      for (const std::string& directory : directories) fs::remove_all(target(i) + "/" + directory);
  }
  std::vector<std::string> directories;
  const std::vector<std::string> names = {"separate", "interleaved"};
};

TEST_F(LeadsNowhere, it_is_made_anew) {
  lose_directories();
  for (const std::string& name : names) {
    EXPECT_EQ(kind_of(user(name)), PathKind::protected_file);
    EXPECT_EQ(locate(user(name), Settings()).status().kind(), Kind::not_found);
    write_over(name);
    expect_content(name);
  }
}

TEST_F(LeadsNowhere, it_can_be_removed) {
  lose_directories();
  for (const std::string& name : names) {
    const Status removed = remove(user(name), Settings());
    EXPECT_TRUE(removed.ok()) << removed.sentence();
    EXPECT_EQ(kind_of(user(name)), PathKind::absent);
  }
}

TEST_F(LeadsNowhere, a_target_that_is_away_may_know_better) {
  lose_directories();
  fs::rename(target(3), root / "away");
  for (const std::string& name : names) {
    EXPECT_EQ(locate(user(name), Settings()).status().kind(), Kind::lost);
    EXPECT_FALSE(create(user(name), settings, 0644));
    EXPECT_TRUE(fs::exists(fs::symlink_status(user(name))));
  }
}

TEST_F(LeadsNowhere, where_data_is_it_is_lost) {
  lose_directories();
  for (size_t i = 0; i < names.size(); ++i) {
    fs::create_directory(target(2) + "/" + directories[i]);
    write(target(2) + "/" + directories[i] + "/unit0", "data");
    EXPECT_EQ(locate(user(names[i]), Settings()).status().kind(), Kind::lost);
    EXPECT_FALSE(create(user(names[i]), settings, 0644));
  }
}

// What only some members had kept was refused as if they had missed a commit.
TEST_F(LeadsNowhere, who_opens_next_finishes_what_some_members_have_kept) {
  for (size_t i = 0; i < names.size(); ++i) {
    int kept = 0;
    for (int t = 0; t < 4; ++t)
      if (fs::exists(target(t) + "/" + directories[i]) && kept++ > 0) fs::remove_all(target(t) + "/" + directories[i]);
    write_over(names[i]);
    expect_content(names[i]);
    auto located = locate(user(names[i]), Settings());
    ASSERT_TRUE(located);
    for (const Member& member : located->members) EXPECT_TRUE(fs::exists(member.path + "/" + located->manifest.directory + "/manifest"));
  }
}

// Two creators found the same wreck: the second one took the first one's file for it.
TEST_F(PowerCut, a_wreck_is_taken_by_one_creator) {
  targets(3, "rs:2+1");
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  fs::create_directory(sidecar("f"));
  write(sidecar("f") + "/manifest", "");
  auto wreck = Sidecar::open(sidecar("f"));
  ASSERT_TRUE(wreck);
  {
    auto taken = wreck->lock("lock");
    ASSERT_TRUE(taken);
    EXPECT_EQ(create(user("f"), settings, 0644).status().kind(), Kind::exists);
    EXPECT_TRUE(fs::exists(sidecar("f") + "/manifest"));
  }
  EXPECT_TRUE(create(user("f"), settings, 0644));
}

// A file was removed and another one made in its place; the power cut kept the first one's note and the second one's sidecar.
TEST_F(PowerCut, a_removed_file_that_is_back_is_whole) {
  targets(3, "rs:2+1");
  write_protected("f");
  const std::string note = read(user("f"));
  fs::rename(sidecar("f"), root / "home" / "aside");
  fs::remove(user("f"));
  ASSERT_TRUE(create(user("f"), settings, 0644));
  write(user("f"), note);
  expect_content("f");
  write_protected("f");
  expect_content("f");
}

// The directory could not be removed for ever, and programs saw what had made it so.
// It was removed, another one was made in its place, and all of that is lost but the second one's name.
class FileIsBack : public PowerCut {
 protected:
  void comes_back(const std::string& scheme) {
    targets(3, scheme);
    write_protected("f");
    fs::rename(sidecar("f"), user("kept"));
    fs::remove(user("f"));
    ASSERT_TRUE(create(user("f"), settings, 0644));
    fs::remove_all(sidecar("f"));
    fs::rename(user("kept"), sidecar("f"));
    expect_content("f");
    write_over("f");
    expect_content("f");
    fs::remove_all(sidecar("f"));  // from here on what stands at the path alone leads to it
    expect_content("f");
  }
};

TEST_F(FileIsBack, below_the_note_of_one_that_was_never_synced) { comes_back("rs:2+1"); }
TEST_F(FileIsBack, below_the_link_of_one_that_was_never_synced) { comes_back("mirror:2"); }

// Its targets know data of that one, or do not answer: nobody is to choose.
TEST_F(PowerCut, a_name_that_may_lead_to_data_is_not_passed_over) {
  targets(3, "rs:2+1");
  write_protected("f");
  fs::rename(sidecar("f"), user("kept"));
  fs::remove(user("f"));
  write_protected("f");
  fs::remove_all(sidecar("f"));
  fs::rename(user("kept"), sidecar("f"));
  EXPECT_TRUE(is_refused("f"));
}

TEST_F(PowerCut, a_sidecar_that_never_got_its_name_goes_with_its_directory_unless_it_is_being_made) {
  const std::string name = new_sidecar_name(), path = root / "home" / name;
  fs::create_directory(path);
  write(path + "/manifest", "half of");
  {
    auto sidecar = Sidecar::open(path);
    ASSERT_TRUE(sidecar);
    auto held = sidecar->lock("lock");
    ASSERT_TRUE(held);
    EXPECT_EQ(remove_leftovers(root / "home", settings).sys_errno(), ENOTEMPTY);
    EXPECT_TRUE(fs::exists(path + "/manifest"));
  }
  const Status removed = remove_leftovers(root / "home", settings);
  EXPECT_TRUE(removed.ok()) << removed.sentence();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(PowerCut, what_died_while_it_made_a_file_in_a_hidden_directory_goes_with_the_directory) {
  const std::string hidden = root / "home" / new_sidecar_name(), within = hidden + "/" + new_sidecar_name();
  fs::create_directories(within);
  write(within + "/lock", "");
  const Status removed = remove_leftovers(root / "home", settings);
  EXPECT_TRUE(removed.ok()) << removed.sentence();
  EXPECT_FALSE(fs::exists(hidden));
}

TEST_F(PowerCut, a_torn_sidecar_of_a_file_that_targets_know_is_no_room_for_another) {
  targets(3, "rs:2+1");
  write_protected("f");
  write(sidecar("f") + "/manifest", "");
  write(user("f"), "");
  EXPECT_EQ(create(user("f"), settings, 0644).status().kind(), Kind::exists);
  expect_content("f");
}

}  // namespace
}  // namespace holdfast::catalog
