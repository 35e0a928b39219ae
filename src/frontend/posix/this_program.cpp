#include "frontend/posix/this_program.hpp"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/config.hpp"
#include "base/process_facts.hpp"
#include "base/rank_variables.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"
#include "coding/checksum.hpp"
#include "redundant/membership/likeness.hpp"

namespace holdfast::frontend::posix {

namespace {

constexpr size_t align = 4;
size_t padded(size_t bytes) { return (bytes + align - 1) / align * align; }

// The linker's sum over the object: among its notes.
std::string build_id_in(std::string_view notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes.data(), sizeof head);
    const size_t name_at = sizeof head, id_at = name_at + padded(head.n_namesz), end = id_at + padded(head.n_descsz);
    if (end > notes.size()) return "";
    if (head.n_type == NT_GNU_BUILD_ID && notes.substr(name_at, sizeof "GNU") == std::string_view("GNU", sizeof "GNU"))
      return fmt::format("{:02x}", fmt::join(reinterpret_cast<const unsigned char*>(notes.data()) + id_at,
                                             reinterpret_cast<const unsigned char*>(notes.data()) + id_at + head.n_descsz, ""));
    notes.remove_prefix(end);
  }
  return "";
}

struct Object {
  std::string path, id;
};

int note_object(dl_phdr_info* info, size_t, void* handed) {
  Object object{info->dlpi_name ? info->dlpi_name : "", ""};
  for (int i = 0; i < info->dlpi_phnum && object.id.empty(); ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      object.id = build_id_in({reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr), size_t(segment.p_memsz)});
  }
  static_cast<std::vector<Object>*>(handed)->push_back(std::move(object));
  return 0;
}

// Of one that the linker has put no sum into.
std::string sum_of_file(const std::string& path) {
  constexpr uint64_t most = 256 << 20;
  const auto content = catalog::read_small(path, most);
  return content ? fmt::format("{:x}", coding::plain_checksum(std::as_bytes(std::span(content->data(), content->size())))) : "";
}

// Many libraries would be much to read.
std::string id_of_library(const Object& library) {
  if (!library.id.empty()) return library.id;
  const auto state = catalog::look(library.path, true);
  return state ? fmt::format("{} bytes", state->size) : "";
}

// Of the first one.
std::string processor_name() {
  const std::string all = small_file("/proc/cpuinfo");
  const size_t line = all.find("model name"), begin = all.find(": ", line);
  if (line == std::string::npos || begin == std::string::npos) return "";
  return all.substr(begin + 2, all.find('\n', begin) - begin - 2);
}

}  // namespace

std::string about_this_program(bool with_libraries) {
  char text[PATH_MAX];
  const ssize_t bytes = raw::readlinkat(AT_FDCWD, "/proc/self/exe", text, sizeof text);
  const std::string path(text, bytes > 0 ? size_t(bytes) : 0);
  std::vector<Object> objects;
  dl_iterate_phdr(note_object, &objects);
  const std::string id = objects.empty() ? "" : objects.front().id;
  std::string lines = redundant::line_of_program(path, id.empty() ? sum_of_file(path) : id);
  lines += redundant::line_of_holdfast(HOLDFAST_VERSION);
  lines += redundant::line_of_processor(processor_name());
  for (size_t i = 1; i < objects.size() && with_libraries; ++i)
    if (const std::string& at = objects[i].path; at.find('/') != std::string::npos)
      lines += redundant::line_of_library(std::string_view(at).substr(at.rfind('/') + 1), id_of_library(objects[i]));
  return lines;
}

std::string name_of_this_program() {
  char path[PATH_MAX];
  const ssize_t bytes = raw::readlinkat(AT_FDCWD, "/proc/self/exe", path, sizeof path);
  const std::string_view whole(path, bytes > 0 ? size_t(bytes) : 0);
  return std::string(whole.substr(whole.rfind('/') + 1));
}

std::string own_rank() {
  const std::string rank = rank_of_environment();
  return rank.empty() ? environment_variable("HOLDFAST_RANK") : rank;  // from `holdfast run`, for a serial program
}

}  // namespace holdfast::frontend::posix
