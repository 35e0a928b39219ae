// A protected file of one process, written and read as a whole: what scenes begin with, and what they look at in the end.
#pragma once
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "catalog/catalog.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"

namespace holdfast::sim {

// A new file. `synced`: before it is closed.
inline void write_whole(const std::string& path, const Bytes& bytes, const Settings& settings, bool synced = false) {
  auto located = catalog::create(path, settings, 0644);
  ASSERT_TRUE(located.ok()) << located.status().sentence();
  const auto alone = exchange::make_solo();
  auto file = engine::ProtectedFile::open(std::move(*located), {true, true, true}, settings, *alone);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  const Extent whole{0, bytes.size()};
  ASSERT_TRUE((*file)->write({&whole, 1}, bytes).ok() && (!synced || (*file)->sync().ok()) && (*file)->close().ok());
}

// Up to `most` of its bytes. Nothing where there is no such file, or where it cannot be read, which fails the test.
inline std::optional<Bytes> read_whole(const std::string& path, uint64_t most, const Settings& settings) {
  auto located = catalog::locate(path, settings);
  if (located.status().kind() == Kind::not_found) return std::nullopt;
  const auto alone = exchange::make_solo();
  auto file = located ? engine::ProtectedFile::open(std::move(*located), {true, false, false}, settings, *alone)
                      : Result<std::unique_ptr<engine::ProtectedFile>>(located.status());
  Bytes seen(most);
  const Extent whole{0, seen.size()};
  const auto got = file ? (*file)->read({&whole, 1}, seen) : Result<uint64_t>(file.status());
  if (!got) ADD_FAILURE() << got.status().sentence();
  if (!got) return std::nullopt;
  seen.resize(*got);
  return seen;
}

}  // namespace holdfast::sim
