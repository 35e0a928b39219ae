// Where ids come from: the kernel. Tests whose runs replay put their own source here.
#pragma once
#include <cstddef>

namespace holdfast::layout {

extern void (*random_source)(unsigned char* into, size_t bytes);

}  // namespace holdfast::layout
