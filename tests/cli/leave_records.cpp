// Leaves the golden record logs beside a plain file, as a job does that has ended and left the merging for
// later: `leave_records PATH`.
#include <cstdio>

#include "catalog/user_files.hpp"
#include "golden/records.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: leave_records PATH\n"), 2;
  const auto state = holdfast::catalog::look(argv[1], true);
  const holdfast::Status status = state ? holdfast::golden::leave_records(argv[1], state->path_state()) : state.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.sentence().c_str());
  return status.ok() ? 0 : 1;
}
