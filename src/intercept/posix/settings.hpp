// The settings of the process, for plain file calls: where they mean nothing it ends.
#pragma once
#include "base/config.hpp"

namespace holdfast::intercept::posix {

const Settings& settings();

}  // namespace holdfast::intercept::posix
