// The one place where bytes meet arithmetic: outputs = matrix * sources over GF(2^8). ISA-L does it today; a faster
// kernel would replace this file's implementation and nothing else.
#pragma once
#include <cstddef>
#include <vector>

namespace holdfast::coding {

// A rows x k matrix in the form that the kernel wants.
struct Tables {
  Tables() = default;
  Tables(int k, int rows, const unsigned char* matrix);
  int k = 0, rows = 0;
  std::vector<unsigned char> expanded;  // 32 bytes per coefficient
};

// sources: tables.k pointers; outputs: tables.rows pointers, none of them among the sources; `bytes` bytes each.
void multiply(const Tables& tables, const std::byte* const* sources, std::byte* const* outputs, size_t bytes);

// sum += coefficient * from: what nodes do that make a sum together, each with its own part.
void add_times(unsigned char coefficient, const std::byte* from, std::byte* sum, size_t bytes);

}  // namespace holdfast::coding
