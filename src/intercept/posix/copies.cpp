#include "intercept/posix/copies.hpp"

#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include <fmt/format.h>

#include "base/own_numbers.hpp"
#include "catalog/catalog.hpp"
#include "catalog/entry.hpp"
#include "catalog/user_files.hpp"
#include "file/open.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/settings.hpp"
#include "intercept/posix/stand_in.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::intercept::posix {

namespace {

std::array<std::atomic<bool>, most_descriptors> native_streams;

// "<target>/NAME-0123abcd/unit<j>", where the kernel's own descriptor leads there.
std::string copy_behind(int fd) {
  char at[64], leads_to[PATH_MAX];
  *fmt::format_to(at, "/proc/self/fd/{}", fd) = '\0';
  const ssize_t length = raw::readlinkat(AT_FDCWD, at, leads_to, sizeof leads_to);
  const std::string_view text(leads_to, length > 0 ? size_t(length) : 0);
  return catalog::is_own_link(text) ? std::string(text) : "";
}

// The standard ones are used by calls of the C library that nobody sees. In a redundant job every replica would have to do the same.
bool may_be_served(int fd) {
  return fd > last_standard_number && fd < most_descriptors && !native_streams[size_t(fd)] && !raw::is_own(unsigned(fd)) && of_this_process() &&
         !redundant::Replica::now();
}

Result<catalog::Located> file_of(const std::string& copy) {
  const auto text = catalog::read_small(catalog::parent_of(copy) + "/manifest", layout::max_manifest_bytes);
  HF_TRY(text.status());
  const auto said = layout::decode(std::as_bytes(std::span(text->data(), text->size())));
  HF_TRY(said.status());
  auto located = catalog::locate(said->path, settings());
  if (located && located->manifest.file_id != said->file_id) return Status(Kind::not_found, "");
  return located;
}

bool same_description(int one, int other) { return syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, one, other) == 0; }

bool takes_number(int fd, int from, const std::shared_ptr<Description>& description) {
  const int flags = raw::fcntl(fd, F_GETFD);
  if (flags < 0 || syscall(SYS_dup3, from, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0) return false;
  set(fd, description);
  return true;
}

// `numbers` are of one description of the kernel's, whose place and flags it keeps.
void serve(const std::vector<int>& numbers, catalog::Located located) {
  const int flags = raw::fcntl(numbers.front(), F_GETFL);
  const off_t position = raw::lseek(numbers.front(), 0, SEEK_CUR);
  struct stat state;
  if (flags < 0 || (flags & (O_ACCMODE | O_PATH)) != O_RDONLY || position < 0 || raw::fstat(numbers.front(), &state) != 0) return;
  auto file = ProcessFile::open({std::move(located), false}, {}, settings());
  if (!file) return complain(path_behind(numbers.front()), file.status().sentence());
  NewNumber number(flags | O_CLOEXEC);
  const int between = number.reserve() == 0 ? number.give(*file, state.st_dev) : -1;
  if (between < 0) return (void)(*file)->leave(false);
  const auto description = find_watched(between);
  (void)description->seek(position, SEEK_SET);
  for (const int fd : numbers) (void)takes_number(fd, between, description);
  (void)forget(between);
  raw::close(between);
}

// Those of `all` that share the description of the first one leave it.
std::vector<int> taken_together(std::vector<int>& all) {
  std::vector<int> together{all.front()}, left;
  for (size_t i = 1; i < all.size(); ++i) (same_description(all.front(), all[i]) ? together : left).push_back(all[i]);
  all = std::move(left);
  return together;
}

// `directory`: of the file on its targets; any one's copies where it is empty.
std::vector<int> numbers_of_copies(std::string_view directory) {
  std::vector<int> found;
  const auto names = catalog::list_directory("/proc/self/fd");
  if (!names) return found;
  for (const std::string& name : *names) {
    const int fd = std::atoi(name.c_str());
    if (!may_be_served(fd) || watched_numbers[size_t(fd)]) continue;
    if (const std::string copy = copy_behind(fd); !copy.empty() && catalog::name_of(catalog::parent_of(copy)) == directory) found.push_back(fd);
  }
  return found;
}

}  // namespace

void note_native_stream(int fd, bool is_one) {
  if (unsigned(fd) < unsigned(most_descriptors) && native_streams[size_t(fd)].load(std::memory_order_relaxed) != is_one)
    native_streams[size_t(fd)] = is_one;
}

std::string path_of_copy(int fd) {
  const KeepErrno keep;
  const OurCode ours_now;
  const std::string copy = copy_behind(fd);
  const auto located = copy.empty() ? Status(Kind::not_found, "") : file_of(copy);
  return located ? located->manifest.path : "";
}

std::shared_ptr<Description> find_or_serve(int fd) {
  if (auto description = find_or_adopt(fd)) return description;
  const KeepErrno keep;
  if (inside > 0 || fd < 0 || !may_be_served(fd)) return nullptr;
  {
    const OurCode ours_now;
    const std::string copy = copy_behind(fd);
    if (copy.empty()) return nullptr;
    auto located = file_of(copy);
    if (!located) return nullptr;
    std::vector<int> numbers = numbers_of_copies(located->manifest.directory);
    std::erase_if(numbers, [&](int one) { return one != fd && !same_description(one, fd); });
    if (!numbers.empty()) serve(numbers, std::move(*located));
  }
  return find(fd);
}

void serve_copies(const layout::Manifest& manifest) {
  const KeepErrno keep;
  for (std::vector<int> all = numbers_of_copies(manifest.directory); !all.empty();) {
    auto located = catalog::locate(manifest.path, settings());
    if (!located || located->manifest.file_id != manifest.file_id) return;
    serve(taken_together(all), std::move(*located));
  }
}

}  // namespace holdfast::intercept::posix
