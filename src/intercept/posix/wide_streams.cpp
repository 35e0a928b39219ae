// Doors of wide characters: the C library's own call, but on streams of ours.
#include "intercept/posix/wide_streams.hpp"

#include <dlfcn.h>
#include <iconv.h>
#include <sys/mman.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"
#include "intercept/posix/real.hpp"

// Not declared by the headers, or under another name: old and new scanf.
extern "C" {
wchar_t* __fgetws_chk(wchar_t* into, size_t room, int count, FILE* file);
wchar_t* __fgetws_unlocked_chk(wchar_t* into, size_t room, int count, FILE* file);
int __vfwprintf_chk(FILE* file, int level, const wchar_t* format, va_list arguments);
int __isoc99_vfwscanf(FILE* file, const wchar_t* format, va_list arguments);
}

// clang-format off
#define HF_WIDE_DOORS(X) \
  X(fwide) X(fgetwc) X(fgetwc_unlocked) X(getwc) X(getwc_unlocked) X(fgetws) X(fgetws_unlocked) X(__fgetws_chk) \
  X(__fgetws_unlocked_chk) X(ungetwc) X(fputwc) X(fputwc_unlocked) X(putwc) X(putwc_unlocked) X(fputws) \
  X(fputws_unlocked) X(vfwprintf) X(__vfwprintf_chk) X(vfwscanf) X(__isoc99_vfwscanf) X(getwchar) X(getwchar_unlocked) \
  X(putwchar) X(putwchar_unlocked)
// clang-format on

namespace holdfast::intercept::posix {

namespace {

struct RealWide {
#define HF_POINTER(name) decltype(&::name) name = nullptr;
  HF_WIDE_DOORS(HF_POINTER)
#undef HF_POINTER
};
RealWide functions;
std::atomic<bool> resolved{false};

// May run in several threads at once before main: all store the same pointers.
[[gnu::noinline]] void resolve() {
#define HF_RESOLVE(name) functions.name = reinterpret_cast<decltype(functions.name)>(next_symbol(#name));
  HF_WIDE_DOORS(HF_RESOLVE)
#undef HF_RESOLVE
  resolved.store(true, std::memory_order_release);
}
const RealWide& libc() {
  if (!resolved.load(std::memory_order_acquire)) [[unlikely]]
    resolve();
  return functions;
}

constexpr int eof_seen = 0x10, error_seen = 0x20;  // of FILE's flags, an ABI
constexpr size_t most_bytes = 32;                  // of a character, a mark of the byte order or a change of the shift state with it
const iconv_t no_conversion = iconv_t(-1);

struct Characters {
  char bytes[most_bytes];
  size_t count = 0;
};

// Used under the stream's own lock.
class Orientation {
 public:
  Orientation() = default;
  ~Orientation() {
    for (const iconv_t one : {in_, out_})
      if (one != no_conversion) iconv_close(one);
  }
  Orientation(const Orientation&) = delete;
  Orientation& operator=(const Orientation&) = delete;

  bool use(const std::string& set) {
    in_ = iconv_open("WCHAR_T", set.c_str());
    out_ = iconv_open(set.c_str(), "WCHAR_T");
    set_ = set;
    return in_ != no_conversion && out_ != no_conversion;
  }

  bool encode(wchar_t character, Characters& into) {
    if (out_ == no_conversion) {
      const size_t got = wcrtomb(into.bytes, character, &writing_);
      into.count = got == size_t(-1) ? 0 : got;
      return got != size_t(-1);
    }
    char *from = reinterpret_cast<char*>(&character), *to = into.bytes;
    size_t left = sizeof character, room = sizeof into.bytes;
    const bool done = iconv(out_, &from, &left, &to, &room) != size_t(-1);
    into.count = sizeof into.bytes - room;
    return done;
  }

  enum class Decoded { yes, needs_more, never };
  // Of all that `from` holds; what is used up goes.
  Decoded decode(Characters& from, wchar_t& character) {
    if (in_ == no_conversion) return decode_by_locale(from, character);
    char *begin = from.bytes, *to = reinterpret_cast<char*>(&character);
    size_t left = from.count, room = sizeof character;
    const size_t got = iconv(in_, &begin, &left, &to, &room);
    if (room == 0) return Decoded::yes;
    std::memmove(from.bytes, begin, left);
    from.count = left;
    return got == size_t(-1) && errno != EINVAL ? Decoded::never : Decoded::needs_more;
  }

  int direction = 0;  // as fwide says it; 0: nobody has said or done anything
  wchar_t last = 0;   // character that was read, and how it was written
  Characters last_bytes;
  const std::string& set() const { return set_; }

 private:
  // The state holds what came before, so each byte is shown once.
  Decoded decode_by_locale(Characters& from, wchar_t& character) {
    const size_t got = mbrtowc(&character, from.bytes + from.count - 1, 1, &reading_);
    if (got == size_t(-2)) return Decoded::needs_more;
    if (got != size_t(-1)) return Decoded::yes;
    reading_ = {};
    return Decoded::never;
  }

  iconv_t in_ = no_conversion, out_ = no_conversion;
  std::string set_;
  mbstate_t reading_{}, writing_{};
};

// Never destroyed, for streams are used to the end.
struct Orientations {
  std::mutex mutex;
  std::map<FILE*, std::unique_ptr<Orientation>> all;
};
Orientations& orientations() {
  static auto* one = new Orientations;
  return *one;
}

Orientation& orientation_of(FILE* stream) {
  std::lock_guard lock(orientations().mutex);
  auto& one = orientations().all[stream];
  if (!one) one = std::make_unique<Orientation>();
  return *one;
}

bool is_ours(FILE* stream) {
  constexpr int cookie = -2;  // what the C library has in the place of a descriptor
  return stream && stream->_fileno == cookie && number_of_stream(stream) >= 0;
}

class LockedStream {
 public:
  explicit LockedStream(FILE* stream) : stream_(stream) { flockfile(stream); }
  ~LockedStream() { funlockfile(stream_); }
  LockedStream(const LockedStream&) = delete;
  LockedStream& operator=(const LockedStream&) = delete;

 private:
  FILE* const stream_;
};

// By its buffer, unless the program has given it one: a cookie stream does not say what was called on it.
bool has_moved_bytes(FILE* stream) {
  constexpr int buffer_of_the_program = 1;
  return stream->_IO_buf_base && !(stream->_flags & buffer_of_the_program);
}

// The first call decides; null for a stream of bytes.
Orientation* wide(FILE* stream) {
  Orientation& one = orientation_of(stream);
  if (one.direction == 0) one.direction = has_moved_bytes(stream) ? -1 : 1;
  return one.direction > 0 ? &one : nullptr;
}

wint_t failed_character(FILE* stream) {
  stream->_flags |= error_seen;
  return errno = EILSEQ, WEOF;
}

wint_t get_one(Orientation& one, FILE* stream) {
  Characters bytes;
  one.last_bytes.count = 0;
  while (bytes.count < most_bytes) {
    const int byte = getc_unlocked(stream);
    if (byte == EOF) return bytes.count == 0 || ferror_unlocked(stream) ? WEOF : failed_character(stream);
    bytes.bytes[bytes.count++] = char(byte);
    if (one.last_bytes.count < most_bytes) one.last_bytes.bytes[one.last_bytes.count++] = char(byte);
    wchar_t character = 0;
    switch (one.decode(bytes, character)) {
      case Orientation::Decoded::yes: return wint_t(one.last = character);
      case Orientation::Decoded::never: return failed_character(stream);
      case Orientation::Decoded::needs_more: break;
    }
  }
  return failed_character(stream);
}

wint_t get_character(FILE* stream) {
  const LockedStream locked(stream);
  Orientation* const one = wide(stream);
  return one ? get_one(*one, stream) : WEOF;
}

wchar_t* get_line(wchar_t* into, int count, FILE* stream) {
  const LockedStream locked(stream);
  Orientation* const one = wide(stream);
  if (!one || count <= 0) return nullptr;
  const int failed_before = stream->_flags & error_seen;
  stream->_flags &= ~error_seen;
  int got = 0;
  while (got < count - 1) {
    const wint_t character = get_one(*one, stream);
    if (character == WEOF) break;
    into[got++] = wchar_t(character);
    if (character == L'\n') break;
  }
  const bool failed = stream->_flags & error_seen;
  stream->_flags |= failed_before;
  if (count > 1 && (got == 0 || failed)) return nullptr;
  into[got] = L'\0';
  return into;
}

wint_t put_back(wint_t character, FILE* stream) {
  const LockedStream locked(stream);
  Orientation* const one = wide(stream);
  if (!one || character == WEOF) return WEOF;
  Characters bytes = one->last_bytes;
  if (bytes.count == 0 || one->last != wchar_t(character))
    if (!one->encode(wchar_t(character), bytes)) return errno = EILSEQ, WEOF;
  one->last_bytes.count = 0;
  while (bytes.count > 0)
    if (ungetc(static_cast<unsigned char>(bytes.bytes[--bytes.count]), stream) == EOF) return WEOF;
  return character;
}

// How many were put.
size_t put_all(const wchar_t* text, size_t count, FILE* stream) {
  const LockedStream locked(stream);
  Orientation* const one = wide(stream);
  if (!one) return 0;
  for (size_t i = 0; i < count; ++i) {
    Characters bytes;
    if (!one->encode(text[i], bytes)) return (void)failed_character(stream), i;
    if (fwrite_unlocked(bytes.bytes, 1, bytes.count, stream) != bytes.count) return i;
  }
  return count;
}
wint_t put_character(wchar_t character, FILE* stream) { return put_all(&character, 1, stream) == 1 ? wint_t(character) : WEOF; }
int put_text(const wchar_t* text, FILE* stream) {
  const size_t count = wcslen(text);
  return put_all(text, count, stream) == count ? 1 : -1;
}

// The C library formats into memory.
template <class Print>
int print(FILE* stream, Print print_native) {
  wchar_t* text = nullptr;
  size_t count = 0;
  FILE* const memory = open_wmemstream(&text, &count);
  if (!memory) return -1;
  int printed = print_native(memory);
  if (fclose(memory) != 0) printed = -1;
  if (printed >= 0 && put_all(text, count, stream) != count) printed = -1;
  free(text);
  return printed;
}

// `bytes` of the file from `from` on, as a stream of the C library's own.
FILE* native_part(int fd, off64_t from, size_t bytes, const std::string& set, bool& is_all) {
  const holdfast::raw::Fd memory(memfd_create("wide characters", MFD_CLOEXEC));
  if (!memory) return nullptr;
  std::array<char, 65536> piece;
  size_t done = 0;
  ssize_t got = 1;
  while (done < bytes && (got = pread64(fd, piece.data(), std::min(piece.size(), bytes - done), from + off64_t(done))) > 0) {
    if (raw::pwrite(memory.get(), piece.data(), size_t(got), done) != got) return nullptr;
    done += size_t(got);
  }
  if (got < 0) return nullptr;
  is_all = got == 0;
  return real().fopen64(fmt::format("/proc/self/fd/{}", memory.get()).c_str(), set.empty() ? "r" : ("r,ccs=" + set).c_str());
}

// Only the C library knows how to scan: it does so in a copy of what lies ahead, and says how far it came.
template <class Scan>
int scan(FILE* stream, Scan scan_native) {
  constexpr size_t first_bytes = 1 << 16, grows_by = 16;
  const LockedStream locked(stream);
  Orientation* const one = wide(stream);
  const off64_t from = one ? ftello64(stream) : -1;
  if (from < 0) return EOF;
  one->last_bytes.count = 0;
  for (size_t bytes = first_bytes;; bytes *= grows_by) {
    bool is_all = false;
    FILE* const part = native_part(number_of_stream(stream), from, bytes, one->set(), is_all);
    if (!part) return stream->_flags |= error_seen, EOF;
    const int answer = scan_native(part);
    const bool ended = feof(part), failed = ferror(part);
    const int error = errno;
    const off64_t moved = ftello64(part);
    (void)fclose(part);
    if (ended && !is_all) continue;  // it may end in the middle of something
    if (moved > 0) (void)fseeko64(stream, from + moved, SEEK_SET);
    stream->_flags |= (ended ? eof_seen : 0) | (failed ? error_seen : 0);
    return errno = error, answer;
  }
}

int direct(FILE* stream, int direction) {
  const LockedStream locked(stream);
  Orientation& one = orientation_of(stream);
  if (one.direction == 0) one.direction = has_moved_bytes(stream) ? -1 : direction > 0 ? 1 : direction < 0 ? -1 : 0;
  return one.direction;
}

}  // namespace

bool orient_stream(FILE* stream, const char* mode) {
  constexpr const char* key = ",ccs=";
  const char* const named = std::strstr(mode, key);
  if (!named) return true;
  std::string set = named + std::strlen(key);
  set.resize(std::min(set.size(), set.find(',')));
  const OurCode ours_now;
  Orientation& one = orientation_of(stream);
  one.direction = 1;
  return one.use(set) ? true : (errno = EINVAL, false);
}

void forget_orientation(FILE* stream) {
  std::lock_guard lock(orientations().mutex);
  orientations().all.erase(stream);
}

}  // namespace holdfast::intercept::posix

using namespace holdfast::intercept::posix;

HF_DOOR int fwide(FILE* file, int direction) noexcept { return is_ours(file) ? direct(file, direction) : libc().fwide(file, direction); }

// ---- reading

#define HF_GET_CHARACTER(name) \
  HF_DOOR wint_t name(FILE* file) { return is_ours(file) ? get_character(file) : libc().name(file); }
HF_GET_CHARACTER(fgetwc)
HF_GET_CHARACTER(fgetwc_unlocked)
HF_GET_CHARACTER(getwc)
HF_GET_CHARACTER(getwc_unlocked)
#undef HF_GET_CHARACTER

// The program may have put a stream of ours in the place of standard input or output.
HF_DOOR wint_t getwchar() { return is_ours(stdin) ? get_character(stdin) : libc().getwchar(); }
HF_DOOR wint_t getwchar_unlocked() { return is_ours(stdin) ? get_character(stdin) : libc().getwchar_unlocked(); }

HF_DOOR wchar_t* fgetws(wchar_t* into, int count, FILE* file) {
  return is_ours(file) ? get_line(into, count, file) : libc().fgetws(into, count, file);
}
HF_DOOR wchar_t* fgetws_unlocked(wchar_t* into, int count, FILE* file) {
  return is_ours(file) ? get_line(into, count, file) : libc().fgetws_unlocked(into, count, file);
}
HF_DOOR wchar_t* __fgetws_chk(wchar_t* into, size_t room, int count, FILE* file) {
  if (!is_ours(file)) return libc().__fgetws_chk(into, room, count, file);
  if (count > 0 && size_t(count) > room) std::abort();
  return get_line(into, count, file);
}
HF_DOOR wchar_t* __fgetws_unlocked_chk(wchar_t* into, size_t room, int count, FILE* file) {
  if (!is_ours(file)) return libc().__fgetws_unlocked_chk(into, room, count, file);
  if (count > 0 && size_t(count) > room) std::abort();
  return get_line(into, count, file);
}
HF_DOOR wint_t ungetwc(wint_t character, FILE* file) { return is_ours(file) ? put_back(character, file) : libc().ungetwc(character, file); }

// The headers call the one by the other's name.
#define HF_NAMED(name) __asm__(name) __attribute__((visibility("default")))
extern "C" {
int scan_wide_old(FILE* file, const wchar_t* format, ...) HF_NAMED("fwscanf");
int scan_wide_old_list(FILE* file, const wchar_t* format, va_list arguments) HF_NAMED("vfwscanf");
int scan_wide_new(FILE* file, const wchar_t* format, ...) HF_NAMED("__isoc99_fwscanf");
int scan_wide_new_list(FILE* file, const wchar_t* format, va_list arguments) HF_NAMED("__isoc99_vfwscanf");
int scan_wide_old_input(const wchar_t* format, ...) HF_NAMED("wscanf");
int scan_wide_old_input_list(const wchar_t* format, va_list arguments) HF_NAMED("vwscanf");
int scan_wide_new_input(const wchar_t* format, ...) HF_NAMED("__isoc99_wscanf");
int scan_wide_new_input_list(const wchar_t* format, va_list arguments) HF_NAMED("__isoc99_vwscanf");
}

namespace {

// Perhaps more than once.
template <class Native>
int scan_list(FILE* file, const wchar_t* format, va_list arguments, Native native) {
  if (!is_ours(file)) return native(file, format, arguments);
  return scan(file, [&](FILE* part) {
    va_list copy;
    va_copy(copy, arguments);
    const int answer = native(part, format, copy);
    va_end(copy);
    return answer;
  });
}

}  // namespace

int scan_wide_old_list(FILE* file, const wchar_t* format, va_list arguments) { return scan_list(file, format, arguments, libc().vfwscanf); }
int scan_wide_old(FILE* file, const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = scan_wide_old_list(file, format, arguments);
  va_end(arguments);
  return answer;
}
int scan_wide_new_list(FILE* file, const wchar_t* format, va_list arguments) { return scan_list(file, format, arguments, libc().__isoc99_vfwscanf); }
int scan_wide_new(FILE* file, const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = scan_wide_new_list(file, format, arguments);
  va_end(arguments);
  return answer;
}

int scan_wide_old_input_list(const wchar_t* format, va_list arguments) { return scan_wide_old_list(stdin, format, arguments); }
int scan_wide_old_input(const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = scan_wide_old_list(stdin, format, arguments);
  va_end(arguments);
  return answer;
}
int scan_wide_new_input_list(const wchar_t* format, va_list arguments) { return scan_wide_new_list(stdin, format, arguments); }
int scan_wide_new_input(const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = scan_wide_new_list(stdin, format, arguments);
  va_end(arguments);
  return answer;
}

// ---- writing

#define HF_PUT_CHARACTER(name) \
  HF_DOOR wint_t name(wchar_t character, FILE* file) { return is_ours(file) ? put_character(character, file) : libc().name(character, file); }
HF_PUT_CHARACTER(fputwc)
HF_PUT_CHARACTER(fputwc_unlocked)
HF_PUT_CHARACTER(putwc)
HF_PUT_CHARACTER(putwc_unlocked)
#undef HF_PUT_CHARACTER
HF_DOOR wint_t putwchar(wchar_t character) { return is_ours(stdout) ? put_character(character, stdout) : libc().putwchar(character); }
HF_DOOR wint_t putwchar_unlocked(wchar_t character) {
  return is_ours(stdout) ? put_character(character, stdout) : libc().putwchar_unlocked(character);
}

HF_DOOR int fputws(const wchar_t* text, FILE* file) { return is_ours(file) ? put_text(text, file) : libc().fputws(text, file); }
HF_DOOR int fputws_unlocked(const wchar_t* text, FILE* file) { return is_ours(file) ? put_text(text, file) : libc().fputws_unlocked(text, file); }
HF_DOOR int vfwprintf(FILE* file, const wchar_t* format, va_list arguments) {
  if (!is_ours(file)) return libc().vfwprintf(file, format, arguments);
  return print(file, [&](FILE* memory) { return libc().vfwprintf(memory, format, arguments); });
}
HF_DOOR int __vfwprintf_chk(FILE* file, int level, const wchar_t* format, va_list arguments) {
  if (!is_ours(file)) return libc().__vfwprintf_chk(file, level, format, arguments);
  return print(file, [&](FILE* memory) { return libc().__vfwprintf_chk(memory, level, format, arguments); });
}
HF_DOOR int fwprintf(FILE* file, const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = vfwprintf(file, format, arguments);
  va_end(arguments);
  return answer;
}
HF_DOOR int __fwprintf_chk(FILE* file, int level, const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = __vfwprintf_chk(file, level, format, arguments);
  va_end(arguments);
  return answer;
}
HF_DOOR int vwprintf(const wchar_t* format, va_list arguments) { return vfwprintf(stdout, format, arguments); }
HF_DOOR int __vwprintf_chk(int level, const wchar_t* format, va_list arguments) { return __vfwprintf_chk(stdout, level, format, arguments); }
HF_DOOR int wprintf(const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = vfwprintf(stdout, format, arguments);
  va_end(arguments);
  return answer;
}
HF_DOOR int __wprintf_chk(int level, const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = __vfwprintf_chk(stdout, level, format, arguments);
  va_end(arguments);
  return answer;
}
