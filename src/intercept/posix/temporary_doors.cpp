// mkstemp and its kin in a redundant job. The C library draws a name for each replica, so what one renames the others have never seen. Here the
// name is the leader's, and the file is made by the door of open. So it is made, too, where a wildcard means its name: it is a checkpoint's file then.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/door.hpp"
#include "redundant/subjects.hpp"
#include "redundant/twins/replica.hpp"

namespace {

using namespace holdfast::intercept::posix;

constexpr size_t drawn = 6;
constexpr int most_tries = 1000;

void draw(unsigned char (&random)[drawn]) {
  const auto ask = [](void*, holdfast::ByteSpan into) { (void)syscall(SYS_getrandom, into.data(), into.size(), 0); };
  const holdfast::ByteSpan answer(reinterpret_cast<std::byte*>(random), sizeof random);
  holdfast::redundant::Replica* const replica = holdfast::redundant::Replica::now();
  if (!replica) return ask(nullptr, answer);
  replica->decide(uint64_t(holdfast::redundant::Subject::names), answer, ask, nullptr);
}

// `text` ends with a suffix of so many bytes, and with XXXXXX before it. `attempt` answers -1 and EEXIST where the name is another's.
template <class Attempt>
int make_by(char* text, int suffix, Attempt attempt) {
  constexpr char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  const size_t length = std::strlen(text);
  if (suffix < 0 || length < drawn + size_t(suffix)) return errno = EINVAL, -1;
  char* const place = text + length - size_t(suffix) - drawn;
  if (std::memcmp(place, "XXXXXX", drawn) != 0) return errno = EINVAL, -1;
  for (int i = 0; i < most_tries; ++i) {
    unsigned char random[drawn];
    draw(random);
    for (size_t at = 0; at < drawn; ++at) place[at] = letters[random[at] % (sizeof letters - 1)];
    const int made = attempt();
    if (made >= 0 || errno != EEXIST) return made;
  }
  std::memcpy(place, "XXXXXX", drawn);
  return errno = EEXIST, -1;
}

int make(char* text, int suffix, int flags) {
  const ForProgram asking(holdfast::redundant::Replica::now() != nullptr);
  return make_by(text, suffix, [=] { return open(text, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600); });
}

bool is_by_door(const char* text, const void* caller) { return replica_for(caller) || checkpoint_at(AT_FDCWD, text, false); }

}  // namespace

#define HF_TEMPORARY(name, parameters, arguments, suffix, flags)                       \
  HF_DOOR int name parameters {                                                        \
    static auto* const native = next_of_name<int parameters>(#name);                   \
    return is_by_door(text, HF_CALLER) ? make(text, suffix, flags) : native arguments; \
  }

HF_TEMPORARY(mkstemp, (char* text), (text), 0, 0)
HF_TEMPORARY(mkstemp64, (char* text), (text), 0, 0)
HF_TEMPORARY(mkostemp, (char* text, int flags), (text, flags), 0, flags)
HF_TEMPORARY(mkostemp64, (char* text, int flags), (text, flags), 0, flags)
HF_TEMPORARY(mkstemps, (char* text, int suffix), (text, suffix), suffix, 0)
HF_TEMPORARY(mkstemps64, (char* text, int suffix), (text, suffix), suffix, 0)
HF_TEMPORARY(mkostemps, (char* text, int suffix, int flags), (text, suffix, flags), suffix, flags)
HF_TEMPORARY(mkostemps64, (char* text, int suffix, int flags), (text, suffix, flags), suffix, flags)

HF_DOOR char* mkdtemp(char* text) noexcept {
  static auto* const native = next_of_name<char*(char*)>("mkdtemp");
  if (!replica_for(HF_CALLER)) [[likely]]
    return native(text);
  const ForProgram asking(true);
  return make_by(text, 0, [=] { return mkdir(text, 0700); }) == 0 ? text : nullptr;
}
// A name alone, which nobody has at this moment.
HF_DOOR char* mktemp(char* text) noexcept {
  static auto* const native = next_of_name<char*(char*)>("mktemp");
  if (!replica_for(HF_CALLER)) [[likely]]
    return native(text);
  const ForProgram asking(true);
  const int before = errno;
  struct stat state;
  const int free = make_by(text, 0, [&] { return lstat(text, &state) == 0 ? (errno = EEXIST, -1) : errno == ENOENT ? 0 : -1; });
  if (free == 0) errno = before;
  else *text = '\0';
  return text;
}
