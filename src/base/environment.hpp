// Whether a variable is set. Unlike what base/config.hpp says of the environment, this allocates nothing: operator new itself asks.
#pragma once

namespace holdfast {

bool environment_has(const char* name);

}  // namespace holdfast
