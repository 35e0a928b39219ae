// Who has a file open to write, as /proc says it of each process.
#pragma once

namespace holdfast::catalog {

// Whether a process of this machine and of the same user has the open file open to write, by any number, or mapped so. This one counts as well. For
// file systems without leases: it lists all descriptors of all these processes.
bool is_open_to_write(int fd);

}  // namespace holdfast::catalog
