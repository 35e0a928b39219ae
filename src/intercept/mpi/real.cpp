#include "intercept/mpi/real.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "real_mpi.h"

namespace holdfast::intercept {

std::atomic<bool> real_is_loaded{false};

namespace {

[[noreturn]] void give_up(const std::string& sentence) {
  const std::string line = "holdfast: " + sentence + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(1);
}

std::string file_that_holds(const void* address) {
  Dl_info info{};
  return address && dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

bool is_ours(const void* address) {
  Dl_info there{}, here{};
  return dladdr(address, &there) && dladdr(reinterpret_cast<void*>(&load_real_mpi), &here) && there.dli_fbase == here.dli_fbase;
}

int collect_name(dl_phdr_info* info, size_t, void* names) {
  if (info->dlpi_name && *info->dlpi_name) static_cast<std::vector<std::string>*>(names)->push_back(info->dlpi_name);
  return 0;
}

// Interpreters load their MPI with an extension module, outside the global scope that RTLD_NEXT walks.
void* mpi_loaded_locally() {
  std::vector<std::string> names;
  dl_iterate_phdr(collect_name, &names);
  for (const std::string& name : names) {
    void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    void* init = dlsym(handle, "PMPI_Init");
    if (init && !is_ours(init) && file_that_holds(init) == name) return handle;
    dlclose(handle);
  }
  return nullptr;
}

// The library that has the MPI's own PMPI_X: asking that one is several times faster than asking all.
void* find_mpi() {
  if (void* init = dlsym(RTLD_NEXT, "PMPI_Init")) {
    void* own = dlopen(file_that_holds(init).c_str(), RTLD_LAZY | RTLD_NOLOAD);
    return own ? own : RTLD_NEXT;
  }
  return mpi_loaded_locally();
}

// MPI's own PMPI_X, or the MPI_X behind our entry: another preloaded tool's, else MPI's.
void* look_up(void* mpi, const char* symbol) {
  void* behind = symbol[0] == 'P' ? nullptr : dlsym(RTLD_NEXT, symbol);
  return behind ? behind : dlsym(mpi, symbol);
}

// Data comes from where the program itself sees it: an executable may hold the copy that counts (copy relocation).
void* look_up_object(void* mpi, const char* symbol) {
  void* address = dlsym(RTLD_DEFAULT, symbol);
  return address ? address : dlsym(mpi, symbol);
}

// mpich, openmpi or mpiabi: which family of binary interfaces the library at hand speaks.
std::string family_of(void* mpi) {
  if (look_up_object(mpi, "ompi_mpi_comm_world")) return "openmpi";
  const std::string path = file_that_holds(dlsym(mpi, "PMPI_Init"));
  return path.find("libmpi_abi") != std::string::npos ? "mpiabi" : "mpich";
}

void check_family(void* mpi) {
  const std::string family = family_of(mpi);
  if (std::strncmp(HF_MPI_NAME, family.c_str(), family.size()) == 0) return;
  give_up(
      fmt::format("this program runs on {} ({}), but the library for {} is preloaded; start it with `holdfast run`, "
                  "which picks the right one",
                  family, file_that_holds(dlsym(mpi, "PMPI_Init")), HF_MPI_NAME));
}

// A program that needs what the MPI underneath has not would not have started without us.
void not_there() { give_up("the program calls a function that the MPI of this process does not have"); }

void set(const Slot& slot, void* address) { std::memcpy(slot.where, &address, sizeof address); }

void set_call(const Slot& slot, void* address) { set(slot, address ? address : reinterpret_cast<void*>(&not_there)); }

void fill() {
  void* mpi = find_mpi();
  if (!mpi) give_up("an MPI function was called, but no MPI library is loaded in this process");
  check_family(mpi);
  for (const Slot* slot = real_slots; slot->symbol; ++slot) set_call(*slot, look_up(mpi, slot->symbol));
  for (const Slot* slot = next_slots; slot && slot->symbol; ++slot) set_call(*slot, look_up(mpi, slot->symbol));
  for (const Slot* slot = object_slots; slot->symbol; ++slot) set(*slot, look_up_object(mpi, slot->symbol));
  real_is_loaded.store(true, std::memory_order_release);
}

}  // namespace

void load_real_mpi() {
  static std::once_flag once;
  std::call_once(once, fill);
}

}  // namespace holdfast::intercept
