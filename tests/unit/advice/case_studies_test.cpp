// Cases that were published with their times (L. D. Crosby, Parallel I/O and Fault Tolerance, 2009), told as logs: the advice has to be what
// was done then, and its expectation near what came of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advice/advice.hpp"
#include "unit/advice/jobs.hpp"

namespace holdfast::advice {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// 377 GB, read and written: 850 GB by 6000 processes in parallel HDF5, on 4 stripes of 1 MB. 1800 s; on all stripes 625 s. Of the 1800 s
// 1207 go into I/O where its time goes with the number of stripes, of which a file of that file system has 160 at most.
TEST(CaseStudies, a_large_shared_file_on_four_of_many_devices_is_to_be_spread_over_all_that_it_may_have) {
  JobOf job(6000, 1800);
  job.nodes(500);
  const std::string path = "/lustre/scratch/run/fields.h5";
  const uint64_t a_process = 425'000'000'000 / 6000;
  job.all_do(path, {.calls = 10, .bytes_each = a_process / 10, .seconds = 604, .collective = true}, Interface::mpiio);
  job.all_do(path, {.write = false, .calls = 10, .bytes_each = a_process / 10, .seconds = 603, .collective = true}, Interface::mpiio);
  Site site;
  site.add("/lustre", {.file_system = "lustre", .stripe_count = 4, .stripe_bytes = 1 << 20, .devices = 336, .most_stripes = 160});
  const Report report = advise(job.log, site);
  ASSERT_FALSE(report.advice.empty());
  const Advice& first = report.advice[0];
  EXPECT_EQ(first.name, "file-stripes");
  EXPECT_NEAR(1800 - first.saved(), 625, 10);
  EXPECT_THAT(first.commands, ElementsAre("lfs setstripe -c -1 -S 1m /lustre/scratch/run"));
  EXPECT_THAT(first.evidence, HasSubstr("6,000 processes"));
  EXPECT_THAT(first.evidence, HasSubstr("4 of 160 devices"));
}

// 1 GB in 2,083,634 writes of 512 bytes by one process: 1080 s. Through four buffers of 64 MB: 4.5 s.
TEST(CaseStudies, a_gigabyte_in_writes_of_512_bytes_is_to_be_buffered) {
  JobOf job(1, 1085);
  job.does(0, "/lustre/scratch/ssef_cn_2008052600f000", {.calls = 2'083'634, .bytes_each = 512, .seconds = 1080});
  const Report report = advise(job.log, Site());
  ASSERT_EQ(report.advice.size(), 1u);
  const Advice& advice = report.advice[0];
  EXPECT_EQ(advice.name, "small-accesses");
  EXPECT_DOUBLE_EQ(advice.seconds_now, 1080);
  EXPECT_NEAR(advice.seconds_after, 4.5, 0.9);
  EXPECT_THAT(advice.settings, ElementsAre(Setting{"buffer", {"4x64MiB"}, false}, Setting{"path", {"/lustre/scratch/ssef_cn_2008052600f000"}, true}));
  EXPECT_THAT(advice.evidence, HasSubstr("2,083,634 calls write 1.07 GB in pieces of 512 bytes"));
  EXPECT_THAT(advice.expectation, HasSubstr("assumed"));
}

// -byteswapio: 5,918,150 writes of 4088 bytes; native 350 of 69,120,000.
TEST(CaseStudies, writes_of_a_converting_fortran_runtime_are_known_by_their_size) {
  JobOf swapped(1, 3000);
  swapped.does(0, "/lustre/scratch/restart.be", {.calls = 5'918'150, .bytes_each = 4088, .seconds = 2600});
  const Report report = advise(swapped.log, Site());
  ASSERT_EQ(report.advice.size(), 1u) << "not small accesses as well";
  EXPECT_EQ(report.advice[0].name, "byte-swapped-records");
  EXPECT_THAT(report.advice[0].evidence, HasSubstr("5,918,150 writes"));
  EXPECT_THAT(report.advice[0].evidence, HasSubstr("4088 bytes (8 less than 4 KiB)"));
  EXPECT_THAT(report.advice[0].expectation, HasSubstr("361 calls"));  // as the native 350
  EXPECT_THAT(report.advice[0].change, HasSubstr("byteswapio"));
  EXPECT_LT(report.advice[0].seconds_after, 110);

  JobOf native(1, 200);
  native.does(0, "/lustre/scratch/restart.le", {.calls = 350, .bytes_each = 69'120'000, .seconds = 97});
  EXPECT_TRUE(advise(native.log, Site()).advice.empty());
}

// A single writer: 1 MB transfers over 160 stripes of 1 MB, against 32 MB transfers to one stripe of 32 MB.
TEST(CaseStudies, a_single_writer_is_to_keep_to_one_device_with_stripes_and_transfers_of_32_megabytes) {
  JobOf job(1, 300);
  job.does(0, "/lustre/scratch/out.dat", {.calls = 5120, .bytes_each = 1 << 20, .seconds = 250});
  Site site;
  site.add("/lustre", {.file_system = "lustre", .stripe_count = 160, .stripe_bytes = 1 << 20, .devices = 336, .most_stripes = 160});
  const Report report = advise(job.log, site);
  const Advice* advice = named(report, "single-writer-stripes");
  ASSERT_TRUE(advice);
  EXPECT_THAT(advice->commands, ElementsAre("lfs setstripe -c 1 -S 32m /lustre/scratch"));
  EXPECT_THAT(advice->settings, Contains(Setting{"buffer", {"4x32MiB"}, false}));
  EXPECT_FALSE(named(report, "file-stripes")) << "one process gains nothing from more of them";
  EXPECT_GT(advice->factor(), 5);

  JobOf good(1, 60);
  good.does(0, "/lustre/scratch/out.dat", {.calls = 160, .bytes_each = 32 << 20, .seconds = 50});
  site.add("/lustre/scratch", {.file_system = "lustre", .stripe_count = 1, .stripe_bytes = 32 << 20, .devices = 336, .most_stripes = 160});
  EXPECT_TRUE(advise(good.log, site).advice.empty());
}

// A shared file of 32 processes: #1, 32 MB of each lie together; #2, pieces of 1 MB take turns.
TEST(CaseStudies, both_layouts_of_a_shared_file_are_known_and_get_the_stripes_that_fit) {
  Site site;
  site.add("/lustre", {.file_system = "lustre", .stripe_count = 32, .stripe_bytes = 1 << 20, .devices = 32});
  JobOf together(32, 100);
  together.nodes(32).all_do("/lustre/out", {.calls = 1, .bytes_each = 32 << 20, .seconds = 20});
  const Report first = advise(together.log, site);
  ASSERT_EQ(first.advice.size(), 1u);
  EXPECT_EQ(first.advice[0].name, "shared-file-layout");
  EXPECT_THAT(first.advice[0].evidence, HasSubstr("layout #1"));
  EXPECT_THAT(first.advice[0].commands, ElementsAre("lfs setstripe -c 32 -S 32m /lustre"));

  JobOf turns(32, 100);
  turns.nodes(32).all_do("/lustre/out", {.calls = 32, .bytes_each = 2 << 20, .seconds = 40, .stride = 64 << 20});
  const Report second = advise(turns.log, site);
  ASSERT_EQ(second.advice.size(), 1u);
  EXPECT_THAT(second.advice[0].evidence, HasSubstr("layout #2"));
  EXPECT_THAT(second.advice[0].commands, ElementsAre("lfs setstripe -c 32 -S 2m /lustre"));
}

}  // namespace
}  // namespace holdfast::advice
