// Erasure codes: pure arithmetic over units in memory; no I/O, no ranks.
//
// Source: Cauchy Reed-Solomon over GF(2^8) by matrix-vector product (Bautista Gomez et al., "Scalable Reed-Solomon-
// based Reliable Local Storage for HPC Applications on IaaS Clouds", section 3), computed by ISA-L; k = 1 is copying.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/status.hpp"

namespace holdfast::coding {

class Code {
 public:
  // 1 <= k <= 32, 0 <= m <= 8 (checked by layout::Geometry::check; asserted here).
  static std::shared_ptr<const Code> make(int k, int m);
  virtual ~Code() = default;
  virtual int k() const = 0;
  virtual int m() const = 0;
  // data[k] pointers to `bytes` bytes each -> redundancy[m] pointers to `bytes` bytes each.
  virtual void encode(const std::byte* const* data, std::byte* const* redundancy, size_t bytes) const = 0;
  // Any k distinct survivors (unit numbers 0..k+m-1, with their bytes in the same order) -> every wanted unit,
  // data or redundancy alike. Kind::lost where there are fewer than k survivors.
  virtual Status reconstruct(std::span<const int> survivors, const std::byte* const* survivor_bytes, std::span<const int> wanted,
                             std::byte* const* into, size_t bytes) const = 0;
  // How often each of k survivors counts in the sum that is the wanted unit, for those who make it a part at a time (kernel.hpp: add_times).
  virtual Result<std::vector<unsigned char>> coefficients(std::span<const int> survivors, int wanted) const = 0;
};

}  // namespace holdfast::coding
