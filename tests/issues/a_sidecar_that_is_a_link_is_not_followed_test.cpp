// A link in the place of a sidecar, or of what lies in one, was followed: removing the file emptied the directory that it led to, and
// every writer wrote there.
#include <sys/stat.h>

#include "catalog/hidden_names.hpp"
#include "catalog/lock_file.hpp"
#include "engine/maintenance.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::catalog {
namespace {

class ForeignSidecar : public Scene {
 protected:
  ForeignSidecar() {
    fs::create_directory(victim());
    write(victim() + "/thesis.tex", "precious");
  }
  std::string victim() const { return root / "victim"; }

  void make_protected(const std::string& name) {
    targets(3, "rs:2+1");
    auto alone = exchange::make_solo();
    auto file =
        engine::ProtectedFile::open(create(user(name), settings, 0644).value(), {.read = true, .write = true, .fresh = true}, settings, *alone);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    const Bytes content(5000, std::byte(7));
    const Extent extent{0, content.size()};
    ASSERT_TRUE((*file)->write_all({&extent, 1}, content).ok());
    ASSERT_TRUE((*file)->close().ok());
  }
  void put_link_at_sidecar(const std::string& name) {
    fs::remove_all(sidecar(name));
    fs::create_symlink(victim(), sidecar(name));
  }
  void expect_victim_untouched() const {
    EXPECT_EQ(std::distance(fs::directory_iterator(victim()), fs::directory_iterator()), 1);
    EXPECT_EQ(read(victim() + "/thesis.tex"), "precious");
  }
};

TEST_F(ForeignSidecar, a_link_is_refused_with_the_mend_and_the_file_is_there_once_it_is_gone) {
  make_protected("f");
  put_link_at_sidecar("f");
  const Status status = locate(user("f"), Settings()).status();
  EXPECT_EQ(status.kind(), Kind::invalid);
  EXPECT_TRUE(says(status, "symbolic link"));
  EXPECT_TRUE(says(status, "rm " + sidecar("f")));
  EXPECT_EQ(kind_of(user("f")), PathKind::protected_file);
  fs::remove(sidecar("f"));
  EXPECT_TRUE(locate(user("f"), Settings()));
  expect_victim_untouched();
}

TEST_F(ForeignSidecar, a_link_put_there_under_a_writer_or_a_repair_is_not_written_through) {
  make_protected("f");
  auto held = locate(user("f"), Settings());
  ASSERT_TRUE(held) << held.status().sentence();
  put_link_at_sidecar("f");
  EXPECT_FALSE(held->path_keeper->publish(held->manifest, true).ok());
  EXPECT_FALSE(held->path_keeper->try_lock().ok());
  EXPECT_FALSE(held->path_keeper->sidecar().ok());
  EXPECT_FALSE(open_lock_file(user("f")).ok());
  EXPECT_EQ(hold_removed(user("f")), -1);
  (void)engine::repair(*held, Settings(), {});
  expect_victim_untouched();
}

TEST_F(ForeignSidecar, removing_the_file_takes_the_link_and_not_what_it_leads_to) {
  make_protected("f");
  put_link_at_sidecar("f");
  const Status removed = remove(user("f"), Settings());
  EXPECT_TRUE(removed.ok()) << removed.sentence();
  EXPECT_FALSE(fs::exists(user("f")));
  EXPECT_FALSE(fs::is_symlink(sidecar("f")));
  expect_victim_untouched();
}

TEST_F(ForeignSidecar, no_file_is_made_beside_a_link_and_leftovers_of_a_directory_do_not_lead_out_of_it) {
  targets(3, "rs:2+1");
  put_link_at_sidecar("f");
  EXPECT_FALSE(create(user("f"), settings, 0644).ok());
  EXPECT_FALSE(remove_leftovers(root / "home", settings).ok());
  write(victim() + "/lock", "");
  EXPECT_FALSE(create(user("f"), settings, 0644).ok());
  EXPECT_FALSE(remove_leftovers(root / "home", settings).ok());
  fs::remove(victim() + "/lock");
  expect_victim_untouched();
}

TEST_F(ForeignSidecar, links_in_a_sidecar_are_replaced_or_refused_and_never_written_through) {
  make_protected("f");
  for (const char* name : {"manifest", "lock", "locks"}) {
    fs::remove(sidecar("f") + "/" + name);
    fs::create_symlink(victim() + "/thesis.tex", sidecar("f") + "/" + name);
  }
  EXPECT_FALSE(open_lock_file(user("f")).ok());
  auto found = locate(user("f"), Settings());
  ASSERT_TRUE(found) << found.status().sentence();
  EXPECT_FALSE(found->path_keeper->try_lock().ok());
  EXPECT_TRUE(found->path_keeper->publish(found->manifest, true).ok());
  EXPECT_FALSE(fs::is_symlink(sidecar("f") + "/manifest"));
  EXPECT_TRUE(found->path_keeper->sidecar().ok());
  EXPECT_TRUE(remove(user("f"), Settings()).ok());
  expect_victim_untouched();
}

TEST_F(ForeignSidecar, a_fifo_in_the_place_of_anything_of_ours_holds_nobody) {
  make_protected("f");
  for (const char* name : {"manifest", "lock", "locks"}) {
    fs::remove(sidecar("f") + "/" + name);
    ASSERT_EQ(mkfifo((sidecar("f") + "/" + name).c_str(), 0666), 0);
  }
  auto found = locate(user("f"), Settings());
  ASSERT_TRUE(found) << found.status().sentence();
  EXPECT_FALSE(found->path_keeper->try_lock().ok());
  EXPECT_TRUE(says(open_lock_file(user("f")).status(), "regular file"));
  EXPECT_TRUE(found->path_keeper->publish(found->manifest, true).ok());
  EXPECT_TRUE(found->path_keeper->sidecar().ok());

  fs::remove_all(sidecar("f"));
  ASSERT_EQ(mkfifo(sidecar("f").c_str(), 0666), 0);
  EXPECT_TRUE(says(locate(user("f"), Settings()).status(), "not a directory"));
  EXPECT_FALSE(found->path_keeper->publish(found->manifest, true).ok());
  EXPECT_EQ(hold_removed(user("f")), -1);
}

// The scratch name of a publish is guessable by nobody, and what stands there already is not written through.
TEST_F(ForeignSidecar, an_old_scratch_name_that_is_a_link_stays_unused) {
  make_protected("f");
  auto found = locate(user("f"), Settings());
  ASSERT_TRUE(found);
  for (int i = 0; i < 50; ++i)
    fs::create_hard_link(victim() + "/thesis.tex", sidecar("f") + "/new." + std::to_string(getpid()) + "." + std::to_string(i));
  EXPECT_TRUE(found->path_keeper->publish(found->manifest, true).ok());
  EXPECT_EQ(read(victim() + "/thesis.tex"), "precious");
}

}  // namespace
}  // namespace holdfast::catalog
