#include "frontend/posix/abort.hpp"

#include "frontend/posix/process_file.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::frontend::posix {

Status leaves_by_abort() {
  const Status written = ProcessFile::let_go_all();
  if (auto* const replica = redundant::Replica::now()) replica->leaves(true, 0);
  return written;
}

}  // namespace holdfast::frontend::posix
