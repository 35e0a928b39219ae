// Doors that walk a tree inside the C library: ftw, nftw, fts. Their own calls pass no door, so what they say is put right here, and what lies
// elsewhere is put among it.
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"
#include "intercept/posix/alike.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/listings.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/told_walk.hpp"
#include "tree/list.hpp"

namespace {

using namespace holdfast::intercept::posix;
namespace catalog = holdfast::catalog;
namespace tree = holdfast::tree;

// Below the directory where the walk began.
bool passes_hidden(const std::string& path, size_t root) {
  const OurCode ours_now;
  return tree::passes_hidden(path, root);
}
bool is_hidden(const char* path) {
  const OurCode ours_now;
  return tree::is_hidden(path);
}

int describe(const char* path, struct stat* into) { return lstat(path, into); }
int describe(const char* path, struct stat64* into) { return lstat64(path, into); }

// The checkpoints of the directory that a walk is in.
class OfDirectory {
 public:
  // Null where there can be none.
  const Checkpoints::Listing* look(const std::string& directory) {
    if (directory == directory_) return listing_ ? &*listing_ : nullptr;
    directory_ = directory;
    listing_ = listing_of(directory);
    return listing_ ? &*listing_ : nullptr;
  }
  enum What : uint8_t { as_it_stands, one_of_them, hidden };
  What what_is(const std::string& path) {
    const Checkpoints::Listing* const all = look(catalog::parent_of(path));
    const std::string name = catalog::name_of(path);
    if (!all) return as_it_stands;
    return all->names.count(name) ? one_of_them : hides(*all, name) ? hidden : as_it_stands;
  }

 private:
  std::string directory_;
  std::optional<Checkpoints::Listing> listing_;
};

// Whether a directory has a name of its own there, which the walk meets by itself.
bool stands_at(const std::string& path) {
  const OurCode ours_now;
  return catalog::look(path, false).ok();
}

// In the directory itself while its files are visited, where the walk is.
class StandsIn {
 public:
  StandsIn(const std::string& directory, bool goes) {
    if (!goes) return;
    before_ = holdfast::raw::Fd(holdfast::raw::openat(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    (void)!chdir(directory.c_str());
  }
  ~StandsIn() {
    if (before_) (void)!fchdir(before_.get());
  }
  StandsIn(const StandsIn&) = delete;

 private:
  holdfast::raw::Fd before_;
};

// --- ftw, nftw

template <class Stat, class Callback>
struct Walk {
  Callback callback;
  std::string begin;  // absolute: the walk may change the working directory
  size_t root;        // bytes of the path that the program has named
  int flags;
  mutable OfDirectory checkpoints = {};

  template <class... More>
  int visit(const char* path, const Stat* state, int kind, More... more) const {
    const std::string at = begin + (path + root);
    if (passes_hidden(at, begin.size())) return 0;
    const bool is_directory = kind == FTW_D || kind == FTW_DP, is_root = path[root] == '\0';
    if (is_directory && !is_root && checkpoints.what_is(at) == OfDirectory::hidden) return takes_actions() ? FTW_SKIP_SUBTREE : 0;
    if (is_directory) return visit_directory(path, at, state, kind, more...);
    const bool is_file = kind == FTW_F || kind == FTW_SL || kind == FTW_SLN || kind == FTW_NS;
    const auto what = is_file ? checkpoints.what_is(at) : OfDirectory::as_it_stands;
    if (what == OfDirectory::hidden) return 0;
    const bool is_ours = is_file && (what == OfDirectory::one_of_them || is_protected(AT_FDCWD, at.c_str(), false));
    if (!is_ours) return callback(path, state, kind, more...);
    Stat right = *state;
    (void)describe(at.c_str(), &right);
    return callback(path, &right, FTW_F, more...);
  }

 private:
  bool takes_actions() const { return (flags & FTW_ACTIONRETVAL) != 0; }

  // Its checkpoints come before all that stands in it, or after.
  template <class... More>
  int visit_directory(const char* path, const std::string& at, const Stat* state, int kind, More... more) const {
    if (kind == FTW_D) {
      const int said = callback(path, state, kind, more...);
      if (said != 0) return said;
    }
    const int said = visit_checkpoints(path, at, more...);
    const bool goes_on = said == 0 || (takes_actions() && said == FTW_SKIP_SIBLINGS);
    if (kind == FTW_DP) return goes_on ? callback(path, state, kind, more...) : said;
    return said != 0 && goes_on ? FTW_SKIP_SUBTREE : said;
  }

  template <class... More>
  int visit_checkpoints(const char* path, const std::string& at, More... more) const {
    const Checkpoints::Listing* const all = checkpoints.look(resolved(at));
    if (!all) return 0;
    const StandsIn here(at, (flags & FTW_CHDIR) != 0);
    for (const std::string& name : all->names) {
      const std::string file = at + "/" + name;
      Stat right = {};
      if (stands_at(file) || describe(file.c_str(), &right) != 0) continue;
      const std::string shown = std::string(path) + (std::strcmp(path, "/") == 0 ? "" : "/") + name;
      const int said = visit_file(shown, right, more...);
      if (said != 0 && !(takes_actions() && said == FTW_SKIP_SUBTREE)) return said;
    }
    return 0;
  }
  static std::string resolved(const std::string& at) {
    const OurCode ours_now;
    return catalog::resolved_path(at);
  }
  int visit_file(const std::string& path, const Stat& state) const { return callback(path.c_str(), &state, FTW_F); }
  int visit_file(const std::string& path, const Stat& state, const FTW* directory) const {
    FTW where{int(path.rfind('/') + 1), directory->level + 1};
    return callback(path.c_str(), &state, FTW_F, &where);
  }
};

using Ftw = int (*)(const char*, const struct stat*, int);
using Ftw64 = int (*)(const char*, const struct stat64*, int);
using Nftw = int (*)(const char*, const struct stat*, int, FTW*);
using Nftw64 = int (*)(const char*, const struct stat64*, int, FTW*);

// ftw(3) gives its callback nothing of ours.
template <class Stat, class Callback>
thread_local const Walk<Stat, Callback>* walking = nullptr;

// The callbacks of ftw and of nftw.
template <class Stat>
int visit_with(const Walk<Stat, int (*)(const char*, const Stat*, int, FTW*)>& all, const char* path, const Stat* state, int kind, FTW where) {
  return all.visit(path, state, kind, &where);
}
template <class Stat>
int visit_with(const Walk<Stat, int (*)(const char*, const Stat*, int)>& all, const char* path, const Stat* state, int kind, FTW) {
  return all.visit(path, state, kind == FTW_SL ? FTW_F : kind == FTW_SLN ? FTW_NS : kind);
}

template <class Stat, class Callback, class Native>
int walk(const char* path, Callback callback, int flags, const void* caller, Native native) {
  if (inside > 0 || !path) return native(callback);
  (void)checkpoints();  // a directory that no one has looked for yet may have to be made: checkpoints lie there
  size_t root = std::strlen(path);
  while (root > 1 && path[root - 1] == '/') --root;
  const Walk<Stat, Callback> mine{callback, catalog::absolute_path(path), root, flags};
  if (replica_for(caller)) [[unlikely]] {
    const ForProgram asking(true);
    const auto visit = [&](const char* at, const Stat* state, int kind, const FTW* where) { return visit_with(mine, at, state, kind, *where); };
    return ToldWalk<Stat, decltype(visit)>(std::string(path, root), mine.begin, flags, visit).walk();
  }
  const auto* before = std::exchange(walking<Stat, Callback>, &mine);
  const int result = native([](auto... arguments) -> int { return walking<Stat, Callback>->visit(arguments...); });
  walking<Stat, Callback> = before;
  return result;
}

// --- fts

template <class Entry>
bool shows_in_walk(Entry* entry, const char* path) {
  if (entry->fts_level < 1 || inside > 0) return true;
  if (tree::may_be_hidden(entry->fts_name) && is_hidden(path)) return false;
  const bool file = entry->fts_info == FTS_F || entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE || entry->fts_info == FTS_NS;
  if (!file || !is_protected(AT_FDCWD, path, false)) return true;
  (void)describe(path, entry->fts_statp);
  entry->fts_info = FTS_F;
  return true;
}

// One that `fts_children` gives: its fts_accpath holds only once the walk is there, so it is looked at from the directory that the walk is at.
template <class Entry>
bool shows_among_children(Entry* directory, Entry* entry) {
  if (!directory || entry->fts_level < 1) return true;
  return shows_in_walk(entry, fmt::format("{}/{}", directory->fts_accpath, static_cast<const char*>(entry->fts_name)).c_str());
}

// As the C library makes one: in one piece, which it frees.
template <class Tree, class Entry>
Entry* made_entry(const Tree& tree, Entry* directory, const std::string& path, const std::string& name) {
  using Stat = std::remove_pointer_t<decltype(Entry::fts_statp)>;
  constexpr size_t most_pathlen = 65535;  // the type of fts_pathlen
  Stat state = {};
  const size_t path_bytes = size_t(directory->fts_pathlen) + 1 + name.size();
  if (path_bytes + 1 >= size_t(tree.fts_pathlen) || path_bytes > most_pathlen || describe(path.c_str(), &state) != 0) return nullptr;
  const size_t stat_at = (offsetof(Entry, fts_name) + name.size() + 1 + alignof(Stat) - 1) / alignof(Stat) * alignof(Stat);
  auto* const block = static_cast<char*>(std::calloc(1, std::max(stat_at + sizeof(Stat), sizeof(Entry))));
  if (!block) return nullptr;
  auto* const entry = reinterpret_cast<Entry*>(block);
  std::memcpy(entry->fts_name, name.c_str(), name.size() + 1);
  entry->fts_namelen = static_cast<unsigned short>(name.size());
  entry->fts_path = tree.fts_path;
  entry->fts_pathlen = static_cast<unsigned short>(path_bytes);
  entry->fts_accpath = tree.fts_options & FTS_NOCHDIR ? entry->fts_path : entry->fts_name;
  entry->fts_parent = directory;
  entry->fts_level = static_cast<short>(directory->fts_level + 1);
  entry->fts_instr = FTS_NOINSTR;
  entry->fts_info = tree.fts_options & FTS_NOSTAT ? FTS_NSOK : FTS_F;
  entry->fts_statp = reinterpret_cast<Stat*>(block + stat_at);
  *entry->fts_statp = state;
  entry->fts_dev = state.st_dev, entry->fts_ino = state.st_ino, entry->fts_nlink = state.st_nlink;
  return entry;
}

// At its place in the order that the program wants, else at the end.
template <class Tree, class Entry>
void insert(const Tree& tree, Entry*& first, Entry* entry) {
  Entry** at = &first;
  const auto is_behind = [&](Entry* other) {
    if (!tree.fts_compar) return false;
    const Entry* const one = entry;
    const Entry* const two = other;
    return tree.fts_compar(&one, &two) < 0;
  };
  while (*at && !is_behind(*at)) at = &(*at)->fts_link;
  entry->fts_link = *at;
  *at = entry;
}

// Of the directory that the walk goes into: its entries as the C library has read them. Without what is not to be seen, and with what lies
// elsewhere.
template <class Tree, class Entry>
void put_checkpoints_among(Tree* tree, Entry* directory, const Checkpoints::Listing& all, Entry*& first) {
  Checkpoints::Listing left = all;
  for (Entry** at = &first; *at;) {
    Entry* const entry = *at;
    const std::string name = entry->fts_name;
    if (hides(all, name)) {
      *at = entry->fts_link;
      std::free(entry);
      continue;
    }
    if (left.names.erase(name) && !(tree->fts_options & FTS_NOSTAT) && describe((all.directory + "/" + name).c_str(), entry->fts_statp) == 0)
      entry->fts_info = FTS_F;
    at = &entry->fts_link;
  }
  for (const std::string& name : left.names)
    if (Entry* const entry = made_entry(*tree, directory, all.directory + "/" + name, name)) insert(*tree, first, entry);
}

std::optional<Checkpoints::Listing> listing_at(const char* path) {
  if (!checkpoints()) return {};
  std::string directory;
  {
    const OurCode ours_now;
    directory = catalog::resolved_path(path);
  }
  return listing_of(directory);
}

// Before the walk goes into a directory: it takes the list of entries that somebody has asked for before.
template <class Tree, class Entry>
void look_into(Tree* tree, Entry* (*children)(Tree*, int)) {
  Entry* const directory = tree->fts_cur;
  if (inside > 0 || !directory || directory->fts_info != FTS_D || directory->fts_instr == FTS_SKIP) return;
  const bool is_asked_for = tree->fts_child && !(tree->fts_options & FTS_NAMEONLY);  // by the program, at our door
  const auto all = is_asked_for ? std::nullopt : listing_at(directory->fts_accpath);
  if (!all) return;
  const int before = errno;
  errno = 0;
  Entry* first = children(tree, 0);
  if (!first && errno != 0) return;  // as the walk will find
  tree->fts_options &= ~FTS_NAMEONLY;
  put_checkpoints_among(tree, directory, *all, first);
  tree->fts_child = first;
  errno = before;
}

template <class Tree, class Entry>
Entry* next_in_walk(Tree* tree, Entry* (*next)(Tree*), int (*set)(Tree*, Entry*, int), Entry* (*children)(Tree*, int)) {
  for (;;) {
    look_into(tree, children);
    Entry* entry = next(tree);
    if (!entry || shows_in_walk(entry, entry->fts_accpath)) return entry;
    set(tree, entry, FTS_SKIP);
  }
}

template <class Tree, class Entry>
Entry* shown_children(Tree* tree, int instructions, Entry* (*children)(Tree*, int)) {
  Entry* const directory = tree->fts_cur;
  const bool is_of_directory = inside == 0 && directory && directory->fts_info == FTS_D;
  Entry* first = children(tree, instructions);
  const bool is_read = first || errno == 0;
  const KeepErrno keep;
  if (const auto all = is_of_directory && is_read ? listing_at(directory->fts_accpath) : std::nullopt) {
    put_checkpoints_among(tree, directory, *all, first);
    tree->fts_child = first;
  }
  while (first && !shows_among_children(directory, first)) first = first->fts_link;
  for (Entry* entry = first; entry; entry = entry->fts_link)
    while (entry->fts_link && !shows_among_children(directory, entry->fts_link)) {
      Entry* hidden = std::exchange(entry->fts_link, entry->fts_link->fts_link);
      free(hidden);
    }
  return first;
}

}  // namespace

HF_DOOR int ftw(const char* path, Ftw callback, int descriptors) {
  HF_ALIKE(AT_FDCWD, path);
  return walk<struct stat>(path, callback, 0, HF_CALLER, [=](Ftw ours) { return real().ftw(path, ours, descriptors); });
}
HF_DOOR int ftw64(const char* path, Ftw64 callback, int descriptors) {
  HF_ALIKE(AT_FDCWD, path);
  return walk<struct stat64>(path, callback, 0, HF_CALLER, [=](Ftw64 ours) { return real().ftw64(path, ours, descriptors); });
}
HF_DOOR int nftw(const char* path, Nftw callback, int descriptors, int flags) {
  HF_ALIKE(AT_FDCWD, path);
  return walk<struct stat>(path, callback, flags, HF_CALLER, [=](Nftw ours) { return real().nftw(path, ours, descriptors, flags); });
}
HF_DOOR int nftw64(const char* path, Nftw64 callback, int descriptors, int flags) {
  HF_ALIKE(AT_FDCWD, path);
  return walk<struct stat64>(path, callback, flags, HF_CALLER, [=](Nftw64 ours) { return real().nftw64(path, ours, descriptors, flags); });
}
HF_DOOR FTSENT* fts_read(FTS* tree) { return next_in_walk(tree, real().fts_read, real().fts_set, real().fts_children); }
HF_DOOR FTSENT64* fts64_read(FTS64* tree) { return next_in_walk(tree, real().fts64_read, real().fts64_set, real().fts64_children); }
HF_DOOR FTSENT* fts_children(FTS* tree, int instructions) { return shown_children(tree, instructions, real().fts_children); }
HF_DOOR FTSENT64* fts64_children(FTS64* tree, int instructions) { return shown_children(tree, instructions, real().fts64_children); }
