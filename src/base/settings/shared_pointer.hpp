// What shared file pointers and their logs read.
#pragma once
#include <cstdint>
#include <string>

namespace holdfast {

struct SharedPointerSettings {
  std::string shared_pointer = "automatic";  // automatic, window, process, individual, single or native
  bool merge_later = false;                  // record logs are joined by `holdfast merge`, not at close
  uint64_t max_metadata_records = 65536;     // kept in memory by each process, the rest on the log
  bool ordered_by_scan = false;              // how ranks learn their places in an ordered call
};

}  // namespace holdfast
