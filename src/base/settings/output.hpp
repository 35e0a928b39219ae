// What gathers the ranks' standard output reads.
#pragma once
#include <string>

namespace holdfast {

struct OutputSettings {
  std::string gather_output;  // the file that it goes to
};

}  // namespace holdfast
