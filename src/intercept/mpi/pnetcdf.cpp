// PnetCDF has two handles of a file: one of all ranks, and in its independent data mode one of each rank's own. It takes for granted that what is written by the one is read by the other at
// once. MPI promises that of no two handles that are not synced (MPI-4.1, 14.6.1), and neither do protected files. So where the mode changes, and before the header is
// rewritten, the file is synced, as ncmpi_sync() does for a program that asks for it. All these calls are collective. docs/decisions/0097
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "frontend/mpi/file.hpp"
#include "frontend/mpi/mpi_file.hpp"
#include "intercept/mpi/entry.hpp"

namespace holdfast::intercept {
namespace {

constexpr int no_error = 0, not_found = -1;

int add_library(dl_phdr_info* one, size_t, void* into) {
  if (one->dlpi_name && std::strstr(one->dlpi_name, "libpnetcdf")) static_cast<std::vector<std::string>*>(into)->push_back(one->dlpi_name);
  return 0;
}

// Interpreters load it with an extension module, outside the global scope that RTLD_NEXT walks.
void* look_up_next(const char* name) {
  if (void* const next = dlsym(RTLD_NEXT, name)) return next;
  std::vector<std::string> libraries;
  dl_iterate_phdr(add_library, &libraries);
  for (const std::string& library : libraries)
    if (void* const handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD))
      if (void* const found = dlsym(handle, name)) return found;
  return nullptr;
}

using Call = int (*)(int ncid);
using AskPath = int (*)(int ncid, int* length, char* path);

bool is_protected(int ncid) {
  const auto files = frontend::open_files();
  if (std::none_of(files.begin(), files.end(), [](const auto& file) { return file->is_protected(); })) return false;
  const auto ask = reinterpret_cast<AskPath>(look_up_next("ncmpi_inq_path"));
  int length = 0;
  if (!ask || ask(ncid, &length, nullptr) != no_error || length <= 0) return false;
  std::string path(size_t(length) + 1, '\0');
  if (ask(ncid, &length, path.data()) != no_error) return false;
  const std::string absolute = frontend::path_of_filename(path.c_str());
  return std::any_of(files.begin(), files.end(), [&](const auto& file) { return file->is_protected() && file->writes() && file->path == absolute; });
}

// What goes wrong in it, as in define mode, the call that it is for says.
void sync(int ncid) {
  if (const auto call = reinterpret_cast<Call>(look_up_next("ncmpi_sync"))) (void)call(ncid);
}

enum class When : uint8_t { before, after };

int call(const char* name, int ncid, When syncs) {
  const auto next = reinterpret_cast<Call>(look_up_next(name));
  if (!next) return not_found;
  bool ours = false;
  (void)caught(name, [&] { return ours = is_protected(ncid), no_error; });
  if (ours && syncs == When::before) sync(ncid);
  const int code = next(ncid);
  if (ours && syncs == When::after && code == no_error) sync(ncid);
  return code;
}

}  // namespace
}  // namespace holdfast::intercept

extern "C" {
HF_EXPORT int ncmpi_begin_indep_data(int ncid);
HF_EXPORT int ncmpi_end_indep_data(int ncid);
HF_EXPORT int ncmpi_redef(int ncid);

int ncmpi_begin_indep_data(int ncid) { return holdfast::intercept::call("ncmpi_begin_indep_data", ncid, holdfast::intercept::When::before); }
int ncmpi_end_indep_data(int ncid) { return holdfast::intercept::call("ncmpi_end_indep_data", ncid, holdfast::intercept::When::after); }
int ncmpi_redef(int ncid) { return holdfast::intercept::call("ncmpi_redef", ncid, holdfast::intercept::When::before); }
}
