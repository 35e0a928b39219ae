#include "coding/code.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <isa-l/erasure_code.h>

#include "coding/kernel.hpp"

namespace holdfast::coding {

namespace {

constexpr int max_k = 32, max_width = 40;

// ---------------------------------------------------------------- k = 1

class Copies final : public Code {
 public:
  explicit Copies(int m) : m_(m) {}
  int k() const override { return 1; }
  int m() const override { return m_; }

  void encode(const std::byte* const* data, std::byte* const* redundancy, size_t bytes) const override {
    for (int j = 0; j < m_; ++j) std::memcpy(redundancy[j], data[0], bytes);
  }

  Status reconstruct(std::span<const int> survivors, const std::byte* const* survivor_bytes, std::span<const int> wanted, std::byte* const* into,
                     size_t bytes) const override {
    if (survivors.empty()) return Status(Kind::lost, fmt::format("none of the {} copies is left", m_ + 1));
    for (size_t i = 0; i < wanted.size(); ++i) std::memcpy(into[i], survivor_bytes[0], bytes);
    return Status();
  }
  Result<std::vector<unsigned char>> coefficients(std::span<const int> survivors, int) const override {
    if (survivors.empty()) return Status(Kind::lost, fmt::format("none of the {} copies is left", m_ + 1));
    return std::vector<unsigned char>{1};
  }

 private:
  int m_;
};

// ---------------------------------------------------------------- k > 1

using UnitSet = std::array<bool, max_width>;

// Which units to compute, and from which k: what a decode matrix depends on.
std::string cache_key(std::span<const int> survivors, std::span<const int> wanted) {
  std::string key;
  for (int unit : survivors) key.push_back(char(unit));
  key.push_back('|');
  for (int unit : wanted) key.push_back(char(unit));
  return key;
}

class CauchyReedSolomon final : public Code {
 public:
  CauchyReedSolomon(int k, int m) : k_(k), m_(m), generator_(size_t(k + m) * size_t(k)) {
    gf_gen_cauchy1_matrix(generator_.data(), k + m, k);
    encode_ = Tables(k, m, generator_.data() + size_t(k) * size_t(k));
  }
  int k() const override { return k_; }
  int m() const override { return m_; }

  void encode(const std::byte* const* data, std::byte* const* redundancy, size_t bytes) const override {
    if (m_ > 0) multiply(encode_, data, redundancy, bytes);
  }

  Status reconstruct(std::span<const int> survivors, const std::byte* const* survivor_bytes, std::span<const int> wanted, std::byte* const* into,
                     size_t bytes) const override {
    HF_TRY(check(survivors, wanted));
    // What survives is copied; only what does not is computed.
    std::array<int, max_width> missing;
    std::array<std::byte*, max_width> missing_into;
    size_t count = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      auto found = std::find(survivors.begin(), survivors.end(), wanted[i]);
      if (found != survivors.end()) {
        std::memcpy(into[i], survivor_bytes[found - survivors.begin()], bytes);
      } else {
        missing[count] = wanted[i];
        missing_into[count++] = into[i];
      }
    }
    if (count == 0) return Status();
    auto tables = decode_tables(survivors.first(size_t(k_)), {missing.data(), count});
    if (!tables) return Status(Kind::internal, "the code's matrix of survivors has no inverse");
    multiply(*tables, survivor_bytes, missing_into.data(), bytes);
    return Status();
  }
  Result<std::vector<unsigned char>> coefficients(std::span<const int> survivors, int wanted) const override {
    HF_TRY(check(survivors, {&wanted, 1}));
    auto rows = decode_matrix(survivors.first(size_t(k_)), {&wanted, 1});
    if (rows.empty()) return Status(Kind::internal, "the code's matrix of survivors has no inverse");
    return rows;
  }

 private:
  Status check(std::span<const int> survivors, std::span<const int> wanted) const {
    UnitSet seen{}, asked{};
    for (int unit : survivors) {
      if (unit < 0 || unit >= k_ + m_ || seen[size_t(unit)])
        return Status(Kind::internal, fmt::format("unit {} is named twice or is not one of {}", unit, k_ + m_));
      seen[size_t(unit)] = true;
    }
    for (int unit : wanted) {
      if (unit < 0 || unit >= k_ + m_ || asked[size_t(unit)])
        return Status(Kind::internal, fmt::format("unit {} is wanted twice or is not one of {}", unit, k_ + m_));
      asked[size_t(unit)] = true;
    }
    if (int(survivors.size()) < k_)
      return Status(Kind::lost, fmt::format("{} of {} units are left and rs:{}+{} needs {}", survivors.size(), k_ + m_, k_, m_, k_));
    return Status();
  }

  std::shared_ptr<const Tables> decode_tables(std::span<const int> survivors, std::span<const int> wanted) const {
    const std::string key = cache_key(survivors, wanted);
    {
      std::shared_lock lock(mutex_);
      auto found = decode_.find(key);
      if (found != decode_.end()) return found->second;
    }
    auto tables = make_decode_tables(survivors, wanted);
    if (!tables) return nullptr;
    std::unique_lock lock(mutex_);
    if (decode_.size() >= max_cached) decode_.clear();  // a run meets few patterns; making one costs microseconds
    return decode_.emplace(key, tables).first->second;
  }

  // units = G * data and survivors = B * data, so wanted = G_wanted * B^-1 * survivors. Redundancy units come out as directly as data units do, in
  // one pass over the survivors. Empty where the matrix has no inverse.
  std::vector<unsigned char> decode_matrix(std::span<const int> survivors, std::span<const int> wanted) const {
    const size_t k = size_t(k_);
    std::vector<unsigned char> rows(k * k), inverse(k * k), composed(wanted.size() * k);
    for (size_t i = 0; i < k; ++i) std::memcpy(&rows[i * k], &generator_[size_t(survivors[i]) * k], k);
    if (gf_invert_matrix(rows.data(), inverse.data(), k_) != 0) return {};
    for (size_t w = 0; w < wanted.size(); ++w) {
      const unsigned char* row = &generator_[size_t(wanted[w]) * k];
      for (size_t column = 0; column < k; ++column) {
        unsigned char sum = 0;
        for (size_t i = 0; i < k; ++i) sum ^= gf_mul(row[i], inverse[i * k + column]);
        composed[w * k + column] = sum;
      }
    }
    return composed;
  }
  std::shared_ptr<const Tables> make_decode_tables(std::span<const int> survivors, std::span<const int> wanted) const {
    const auto matrix = decode_matrix(survivors, wanted);
    return matrix.empty() ? nullptr : std::make_shared<const Tables>(k_, int(wanted.size()), matrix.data());
  }

  static constexpr size_t max_cached = 256;  // of at most 8 KiB each

  int k_, m_;
  std::vector<unsigned char> generator_;  // (k + m) x k, the identity on top
  Tables encode_;
  mutable std::shared_mutex mutex_;
  mutable std::unordered_map<std::string, std::shared_ptr<const Tables>> decode_;
};

}  // namespace

std::shared_ptr<const Code> Code::make(int k, int m) {
  assert(k >= 1 && k <= max_k && m >= 0 && k + m <= max_width);
  if (k == 1) return std::make_shared<Copies>(m);
  return std::make_shared<CauchyReedSolomon>(k, m);
}

}  // namespace holdfast::coding
