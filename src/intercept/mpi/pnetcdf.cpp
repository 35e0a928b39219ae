// PnetCDF has two handles of a file: one of all ranks, and in its independent data mode one of each rank's own. It takes for granted that what is written by the one is read by the other at
// once. MPI promises that of no two handles that are not synced (MPI-4.1, 14.6.1), and neither do protected files. So where the mode changes, and before the header is
// rewritten, all handles are synced. All these calls are collective. docs/decisions/0097
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string>
#include <vector>

#include "frontend/mpi/several_handles.hpp"
#include "intercept/mpi/entry.hpp"

namespace holdfast::intercept {
namespace {

constexpr int no_error = 0, not_found = -1, file_error = -204;  // the last as PnetCDF has it (NC_EFILE)

int add_library(dl_phdr_info* one, size_t, void* into) {
  if (one->dlpi_name && std::strstr(one->dlpi_name, "libpnetcdf")) static_cast<std::vector<std::string>*>(into)->push_back(one->dlpi_name);
  return 0;
}

void* look_up_in(const char* file, const char* name) {
  void* const handle = file ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  void* const found = handle ? dlsym(handle, name) : nullptr;
  if (handle) dlclose(handle);  // it stays loaded: who calls is in it, or linked to it
  return found;
}

// Interpreters load it with an extension module, outside the global scope that RTLD_NEXT walks, or as a part of that module.
void* look_up_next(const char* name, void* caller) {
  if (void* const next = dlsym(RTLD_NEXT, name)) return next;
  std::vector<std::string> libraries;
  dl_iterate_phdr(add_library, &libraries);
  for (const std::string& library : libraries)
    if (void* const found = look_up_in(library.c_str(), name)) return found;
  Dl_info module{};
  return dladdr(caller, &module) != 0 ? look_up_in(module.dli_fname, name) : nullptr;
}

using Call = int (*)(int ncid);
using AskPath = int (*)(int ncid, int* length, char* path);

// As the program gave it, and MPI got it; empty where it is no file of ours.
std::string protected_file_of(int ncid, void* caller) {
  const auto ask = reinterpret_cast<AskPath>(look_up_next("ncmpi_inq_path", caller));
  int length = 0;
  if (!ask || ask(ncid, &length, nullptr) != no_error || length <= 0) return "";
  std::string path(size_t(length) + 1, '\0');
  if (ask(ncid, &length, path.data()) != no_error) return "";
  path.resize(std::strlen(path.c_str()));
  return frontend::is_open_with_others(path) ? path : "";
}

int sync(const std::string& filename) {
  if (filename.empty()) return no_error;
  return caught("MPI_File_sync", [&] {
    const OurCode ours_now;
    return frontend::sync_handles_of(filename);
  });
}

enum class When : uint8_t { before, after };

// Whatever the call says on this rank, the others wait for the sync.
int call(const char* name, int ncid, When syncs, void* caller) {
  const auto next = reinterpret_cast<Call>(look_up_next(name, caller));
  if (!next) return not_found;
  std::string filename;
  (void)caught(name, [&] { return filename = protected_file_of(ncid, caller), no_error; });
  int synced = syncs == When::before ? sync(filename) : no_error;
  const int code = next(ncid);
  if (syncs == When::after) synced = sync(filename);
  return code != no_error || synced == MPI_SUCCESS ? code : file_error;
}

}  // namespace
}  // namespace holdfast::intercept

extern "C" {
HF_EXPORT int ncmpi_begin_indep_data(int ncid);
HF_EXPORT int ncmpi_end_indep_data(int ncid);
HF_EXPORT int ncmpi_redef(int ncid);

using holdfast::intercept::When;
int ncmpi_begin_indep_data(int ncid) { return holdfast::intercept::call("ncmpi_begin_indep_data", ncid, When::before, __builtin_return_address(0)); }
int ncmpi_end_indep_data(int ncid) { return holdfast::intercept::call("ncmpi_end_indep_data", ncid, When::after, __builtin_return_address(0)); }
int ncmpi_redef(int ncid) { return holdfast::intercept::call("ncmpi_redef", ncid, When::before, __builtin_return_address(0)); }
}
