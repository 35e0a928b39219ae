#include "profile/choice.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace holdfast::profile {
namespace {

TEST(Choice, the_files_of_the_system_are_not_counted) {
  for (const char* path : {"/dev/null", "/dev/shm/vader.1", "/proc/self/maps", "/sys/devices/cpu", "/etc/hosts", "/usr/share/locale.alias", "/lib/x",
                           "/lib64/x", "/bin/sh", "/sbin/init", "/opt/app/share/table", "/boot/x", "/run/lock/y"})
    EXPECT_FALSE(counts(path, {})) << path;
}

TEST(Choice, a_directory_that_only_begins_like_the_systems_is_counted) {
  for (const char* path : {"/devel/out", "/home/u/usr/out", "/scratch/run/out.dat", "/optimum", "/runs/1", "/tmp/etc/x", "/library/book"})
    EXPECT_TRUE(counts(path, {})) << path;
}

TEST(Choice, libraries_and_compiled_python_are_not_counted_and_names_that_look_alike_are) {
  for (const char* path : {"/home/u/lib/libx.so", "/home/u/libx.so.6", "/home/u/__pycache__/a.cpython-311.pyc"})
    EXPECT_FALSE(counts(path, {})) << path;
  for (const char* path : {"/home/u/out.sorted", "/home/u/x.socket", "/home/u/lib.so.d/out"}) EXPECT_TRUE(counts(path, {})) << path;
}

TEST(Choice, what_a_glob_of_the_settings_names_is_not_counted) {
  EXPECT_FALSE(counts("/scratch/run/trace.txt", {"*.txt"}));
  EXPECT_FALSE(counts("/scratch/run/a/b", {"/home/*", "/scratch/run/*"}));
  EXPECT_TRUE(counts("/scratch/run/out.dat", {"*.txt"}));
}

TEST(Choice, an_exclamation_mark_takes_back_and_the_last_glob_decides) {
  EXPECT_TRUE(counts("/dev/shm/staging/out", {"!/dev/shm/staging/*"}));
  EXPECT_FALSE(counts("/dev/shm/staging/out", {"!/dev/shm/staging/*", "*out"}));
  EXPECT_TRUE(counts("/scratch/out", {"/scratch/*", "!*out"}));
}

TEST(Choice, what_is_served_is_counted_wherever_it_lies_unless_a_glob_says_no) {
  EXPECT_TRUE(counts("/dev/shm/out", {}, true));
  EXPECT_FALSE(counts("/dev/shm/out", {"*out"}, true));
}

TEST(Choice, an_interpreters_packages_are_the_systems) {
  EXPECT_FALSE(counts("/home/u/venv/lib/python3.11/site-packages/numpy/version.py", {}));
  EXPECT_TRUE(counts("/home/u/site-packages.txt", {}));
}

TEST(Choice, the_session_directory_of_the_jobs_launcher_is_the_systems) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // it is asked for once in a process: in one that begins anew
  EXPECT_EXIT(
      {
        setenv("PMIX_SERVER_TMPDIR", "/tmp/ompi.4711", 1);
        const bool right = !counts("/tmp/ompi.4711/1/pmix-gds-shmem2.x", {}) && counts("/tmp/ompi.4711.dat", {});
        _exit(right ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Choice, no_path_is_no_file) { EXPECT_FALSE(counts("", {})); }

}  // namespace
}  // namespace holdfast::profile
