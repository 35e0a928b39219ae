#include "intercept/posix/interpreter.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "frontend/posix/callers.hpp"

namespace holdfast::intercept::posix {

namespace {

// A function of a module, as Python's headers have it (PyMethodDef), and a module (PyModuleDef) up to these.
struct Method {
  const char* name;
  void* (*run)(void*, void*, void*, void*);
  int flags;
  const char* about;
};
struct Module {
  ssize_t references;
  void* type;
  void* init;
  ssize_t index;
  void* copy;
  const char* name;
  const char* about;
  ssize_t bytes;
  Method* methods;
};
struct Builtin {
  const char* name;
  void* (*init)();
};

// Those of module `time` by which a program asks a clock that runs.
constexpr std::array<std::string_view, 7> asking{"monotonic",     "monotonic_ns",     "perf_counter",  "perf_counter_ns",
                                                 "clock_gettime", "clock_gettime_ns", "get_clock_info"};
__thread unsigned program_asks __attribute__((tls_model("initial-exec"))) = 0;
constinit std::array<decltype(Method::run), asking.size()> asked{};

// Whatever their form is: what they are given and return are words.
template <size_t which>
void* ask_for_program(void* one, void* two, void* three, void* four) {
  ++program_asks;
  void* const answer = asked[which](one, two, three, four);
  --program_asks;
  return answer;
}
template <size_t... which>
constexpr std::array<decltype(Method::run), sizeof...(which)> all_of(std::index_sequence<which...>) {
  return {ask_for_program<which>...};
}
constexpr auto instead = all_of(std::make_index_sequence<asking.size()>());

// Of a static table of the interpreter's.
bool are_in_one_object(const void* one, const void* other) {
  Dl_info its, others;
  return one && dladdr(one, &its) != 0 && dladdr(other, &others) != 0 && its.dli_fbase == others.dli_fbase;
}

// With its lock. The table of that module is the interpreter's own, and what it says is looked up at each call. Not where objects have another form.
bool mark_what_asks_for_program() {
  const auto* const builtins = static_cast<const Builtin* const*>(dlsym(RTLD_DEFAULT, "PyImport_Inittab"));
  if (!builtins || !*builtins || dlsym(RTLD_DEFAULT, "_Py_MergeZeroLocalRefcount") || dlsym(RTLD_DEFAULT, "_Py_AddToAllObjects")) return false;
  const Builtin* time = *builtins;
  while (time->name && std::strcmp(time->name, "time") != 0) ++time;
  const auto* const module = time->name ? static_cast<const Module*>(time->init()) : nullptr;
  if (!module || !are_in_one_object(module->name, builtins) || std::strcmp(module->name, "time") != 0 ||
      !are_in_one_object(module->methods, builtins))
    return false;
  size_t marked = 0;
  for (Method* one = module->methods; one->name; ++one) {
    const auto* const found = std::find(asking.begin(), asking.end(), one->name);
    if (found == asking.end()) continue;
    const auto which = size_t(found - asking.begin());
    asked[which] = std::exchange(one->run, instead[which]);
    ++marked;
  }
  return marked > 0;
}

}  // namespace

// Only what the interpreter's own code asks: a library that has let the lock go asks for the program.
bool asks_for_interpreter(const void* caller, clockid_t which) {
  static const auto has_lock = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  if (!has_lock) [[likely]]
    return false;
  if (!frontend::posix::are_of_one_object(caller, reinterpret_cast<const void*>(has_lock))) return false;
  if (has_lock() == 0) return true;
  if (which != CLOCK_MONOTONIC || program_asks > 0) return false;
  static bool is_first = true;
  static const bool is_marked = mark_what_asks_for_program();
  return is_marked && !std::exchange(is_first, false);
}

}  // namespace holdfast::intercept::posix
