// Makes a protected file of standard input: posix_protect PATH, with its settings from the environment.
#include <cstdio>

#include "catalog/catalog.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"

using namespace holdfast;

namespace {

Bytes read_all(FILE* in) {
  Bytes content;
  std::byte piece[65536];
  while (size_t got = fread(piece, 1, sizeof piece, in)) content.insert(content.end(), piece, piece + got);
  return content;
}

Status protect(const char* path) {
  auto settings = Settings::load();
  if (!settings) return settings.status();
  auto located = catalog::create(path, *settings, 0666);
  if (!located) return located.status();
  auto alone = exchange::make_solo();
  engine::Purpose access;
  access.write = access.fresh = true;
  auto file = engine::ProtectedFile::open(std::move(*located), access, *settings, *alone);
  if (!file) return file.status();
  const Bytes content = read_all(stdin);
  const Extent all{0, content.size()};
  HF_TRY((*file)->write({&all, 1}, content));
  return (*file)->close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const Status status = protect(argv[1]);
  if (!status.ok()) fprintf(stderr, "%s\n", status.sentence().c_str());
  return status.ok() ? 0 : 1;
}
