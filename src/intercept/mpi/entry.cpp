#include "intercept/mpi/entry.hpp"

#include <cstdio>

#include "intercept/mpi/count.hpp"

namespace holdfast::frontend {

__thread int depth = 0;
__thread int hooks = 0;

}  // namespace holdfast::frontend

namespace holdfast::intercept {

__thread bool counting = false;

int report_exception(const char* call, const char* what) {
  std::fprintf(stderr, "holdfast: %s failed inside Holdfast: %s\n", call, what);
  return MPI_ERR_INTERN;
}

}  // namespace holdfast::intercept
