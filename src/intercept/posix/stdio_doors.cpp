// Doors of streams, where the job is profiled: each is the C library's own call, counted. Elsewhere they pass after one load.
// getc_unlocked and its like, which compilers put into the program itself, come here only when they need the file.
#include <dlfcn.h>
#include <stdio_ext.h>

#include <cstdarg>
#include <cstring>

#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/observe.hpp"
#include "intercept/posix/observe_streams.hpp"
#include "intercept/posix/own_failures.hpp"
#include "redundant/twins/replica.hpp"

// Not declared by the headers, or under another name: old and new scanf.
extern "C" {
size_t __fread_chk(void* into, size_t room, size_t size, size_t count, FILE* file);
size_t __fread_unlocked_chk(void* into, size_t room, size_t size, size_t count, FILE* file);
char* __fgets_chk(char* into, size_t room, int count, FILE* file);
char* __fgets_unlocked_chk(char* into, size_t room, int count, FILE* file);
int __vfprintf_chk(FILE* file, int level, const char* format, va_list arguments);
int __isoc99_vfscanf(FILE* file, const char* format, va_list arguments);
ssize_t __getdelim(char** line, size_t* room, int end, FILE* file);
}

// clang-format off
#define HF_STDIO_DOORS(X) \
  X(fread) X(fread_unlocked) X(__fread_chk) X(__fread_unlocked_chk) X(fgets) X(fgets_unlocked) X(__fgets_chk) \
  X(__fgets_unlocked_chk) X(fgetc) X(fgetc_unlocked) X(getc) X(getc_unlocked) X(getchar) X(getchar_unlocked) \
  X(getline) X(getdelim) X(__getdelim) X(ungetc) X(getw) X(vfscanf) X(__isoc99_vfscanf) \
  X(fwrite) X(fwrite_unlocked) X(fputs) X(fputs_unlocked) X(fputc) X(fputc_unlocked) X(putc) X(putc_unlocked) \
  X(putchar) X(putchar_unlocked) X(puts) X(putw) X(vfprintf) X(__vfprintf_chk) \
  X(fseek) X(fseeko) X(fseeko64) X(ftell) X(ftello) X(ftello64) X(rewind) X(fgetpos) X(fgetpos64) X(fsetpos) \
  X(fsetpos64) X(setvbuf) X(setbuf) X(setbuffer) X(setlinebuf) X(fflush) X(fflush_unlocked) X(fclose)
// clang-format on

namespace {

using namespace holdfast::intercept::posix;
using holdfast::MeterScope;
using holdfast::profile::Counter;
using holdfast::profile::unknown_offset;

struct RealStdio {
#define HF_POINTER(name) decltype(&::name) name = nullptr;
  HF_STDIO_DOORS(HF_POINTER)
#undef HF_POINTER
};
RealStdio functions;
std::atomic<bool> resolved{false};

// May run in several threads at once before main: all store the same pointers.
[[gnu::noinline]] void resolve() {
#define HF_RESOLVE(name) functions.name = reinterpret_cast<decltype(functions.name)>(next_symbol(#name));
  HF_STDIO_DOORS(HF_RESOLVE)
#undef HF_RESOLVE
  resolved.store(true, std::memory_order_release);
}
const RealStdio& libc() {
  if (!resolved.load(std::memory_order_acquire)) [[unlikely]]
    resolve();
  return functions;
}

constexpr int64_t failed = -1;

// What the stream wrote has failed, where each replica has a file of its own: then it has in all of them.
[[gnu::noinline]] void fails_in_all(FILE* file) {
  const int error = errno, fd = real().fileno(file);
  errno = error;
  if (fd >= 0 && may_be_alone(error)) (void)failure_of_all(fd, int(Counter::writes_independent), -1, -1);
}

// `moved` makes bytes of the call's answer, or `failed`.
template <bool write, class Call, class Moved>
auto transfer(FILE* file, Call native, Moved moved) -> decltype(native()) {
  const auto call = [&] {
    const auto answer = native();
    if (write && moved(answer) < 0) [[unlikely]]
      fails_in_all(file);
    return answer;
  };
  Stream* const stream = watched(file, true);
  if (!stream) [[likely]]
    return call();
  StreamCall one(*stream);
  const auto answer = call();
  const int64_t bytes = moved(answer);
  one.moved(write, bytes < 0 ? 0 : uint64_t(bytes), bytes < 0);
  return answer;
}

template <class Call>
size_t read_items(FILE* file, size_t size, size_t count, Call call) {
  return transfer<false>(file, call, [=](size_t got) { return got < count && ferror(file) && got == 0 ? failed : int64_t(got * size); });
}
template <class Call>
size_t write_items(FILE* file, size_t size, size_t count, Call native) {
  const auto call = [=] {
    const size_t put = native();
    if (put < count && put > 0 && size > 0) [[unlikely]]
      fails_in_all(file);
    return put;
  };
  return transfer<true>(file, call, [=](size_t put) { return put < count && put == 0 && size > 0 ? failed : int64_t(put * size); });
}
template <class Call>
int read_character(FILE* file, Call call) {
  return transfer<false>(file, call, [=](int got) { return got != EOF ? 1 : ferror(file) ? failed : 0; });
}
template <class Call>
int write_character(FILE* file, Call call) {
  return transfer<true>(file, call, [=](int put) { return put != EOF ? 1 : failed; });
}
template <class Call>
char* read_line(FILE* file, Call call) {
  return transfer<false>(file, call, [=](char* line) { return line ? int64_t(std::strlen(line)) : ferror(file) ? failed : 0; });
}
template <class Call>
ssize_t read_delimited(FILE* file, Call call) {
  return transfer<false>(file, call, [=](ssize_t got) { return got >= 0 ? int64_t(got) : ferror(file) ? failed : 0; });
}
template <class Call>
int write_text(FILE* file, const char* text, size_t more, Call call) {
  return transfer<true>(file, call, [=](int put) { return put != EOF ? int64_t(std::strlen(text) + more) : failed; });
}
template <class Call>
int print(FILE* file, Call call) {
  return transfer<true>(file, call, [](int put) { return int64_t(put); });
}

// How many bytes it took, only the stream knows.
template <class Call>
int scan(FILE* file, Call call) {
  Stream* const stream = watched(file, true);
  if (!stream) [[likely]]
    return call();
  StreamCall one(*stream);
  const int answer = call();
  const int before = errno;
  const uint64_t from = stream->position.load(std::memory_order_relaxed);
  const off64_t to = libc().ftello64(file);
  errno = before;
  const bool known = to >= 0 && from != unknown_offset && uint64_t(to) >= from;
  one.moved(false, known ? uint64_t(to) - from : 0, answer == EOF && ferror(file));
  return answer;
}

// Any call that moves no bytes. `after` is told when it has succeeded.
template <class Call, class After>
auto ask(FILE* file, Counter kind, Call native, After after) -> decltype(native()) {
  const auto call = [&] {
    const auto answer = native();
    if (answer < 0 && file) [[unlikely]]
      fails_in_all(file);
    return answer;
  };
  Stream* const stream = watched(file, false);
  if (!stream) [[likely]]
    return call();
  StreamCall one(*stream);
  const auto answer = call();
  one.other(kind, answer < 0);
  if (answer >= 0) after(*stream);
  return answer;
}
template <class Call>
auto ask(FILE* file, Counter kind, Call call) -> decltype(call()) {
  return ask(file, kind, call, [](Stream&) {});
}
template <class Call>
void tell(FILE* file, Counter kind, Call call) {
  ask(file, kind, [=] { return call(), 0; });
}

// To where the stream itself says that it is.
void follow(Stream& stream, FILE* file) {
  const int before = errno;
  const off64_t at = stream.appends ? -1 : libc().ftello64(file);
  errno = before;
  stream.position.store(at >= 0 ? uint64_t(at) : unknown_offset, std::memory_order_relaxed);
}
template <class Call>
int seek(FILE* file, off64_t offset, int whence, Call call) {
  return ask(file, Counter::seeks, call, [=](Stream& stream) {
    if (whence != SEEK_SET || stream.appends) return follow(stream, file);
    stream.position.store(uint64_t(offset), std::memory_order_relaxed);
  });
}

}  // namespace

// ---- reading

HF_DOOR size_t fread(void* into, size_t size, size_t count, FILE* file) {
  return read_items(file, size, count, [=] { return libc().fread(into, size, count, file); });
}
HF_DOOR size_t fread_unlocked(void* into, size_t size, size_t count, FILE* file) {
  return read_items(file, size, count, [=] { return libc().fread_unlocked(into, size, count, file); });
}
HF_DOOR size_t __fread_chk(void* into, size_t room, size_t size, size_t count, FILE* file) {
  return read_items(file, size, count, [=] { return libc().__fread_chk(into, room, size, count, file); });
}
HF_DOOR size_t __fread_unlocked_chk(void* into, size_t room, size_t size, size_t count, FILE* file) {
  return read_items(file, size, count, [=] { return libc().__fread_unlocked_chk(into, room, size, count, file); });
}
HF_DOOR char* fgets(char* into, int count, FILE* file) {
  return read_line(file, [=] { return libc().fgets(into, count, file); });
}
HF_DOOR char* fgets_unlocked(char* into, int count, FILE* file) {
  return read_line(file, [=] { return libc().fgets_unlocked(into, count, file); });
}
HF_DOOR char* __fgets_chk(char* into, size_t room, int count, FILE* file) {
  return read_line(file, [=] { return libc().__fgets_chk(into, room, count, file); });
}
HF_DOOR char* __fgets_unlocked_chk(char* into, size_t room, int count, FILE* file) {
  return read_line(file, [=] { return libc().__fgets_unlocked_chk(into, room, count, file); });
}
HF_DOOR int fgetc(FILE* file) {
  return read_character(file, [=] { return libc().fgetc(file); });
}
HF_DOOR int fgetc_unlocked(FILE* file) {
  return read_character(file, [=] { return libc().fgetc_unlocked(file); });
}
HF_DOOR int getc(FILE* file) {
  return read_character(file, [=] { return libc().getc(file); });
}
HF_DOOR int getc_unlocked(FILE* file) {
  return read_character(file, [=] { return libc().getc_unlocked(file); });
}
HF_DOOR int getchar() {
  return read_character(stdin, [] { return libc().getchar(); });
}
HF_DOOR int getchar_unlocked() {
  return read_character(stdin, [] { return libc().getchar_unlocked(); });
}
HF_DOOR int getw(FILE* file) {
  return transfer<false>(
      file, [=] { return libc().getw(file); }, [=](int) { return ferror(file) ? failed
                                                                 : feof(file) ? 0
                                                                              : int64_t(sizeof(int)); });
}
HF_DOOR ssize_t getline(char** line, size_t* room, FILE* file) {
  return read_delimited(file, [=] { return libc().getline(line, room, file); });
}
HF_DOOR ssize_t getdelim(char** line, size_t* room, int end, FILE* file) {
  return read_delimited(file, [=] { return libc().getdelim(line, room, end, file); });
}
HF_DOOR ssize_t __getdelim(char** line, size_t* room, int end, FILE* file) {
  return read_delimited(file, [=] { return libc().__getdelim(line, room, end, file); });
}
HF_DOOR int ungetc(int character, FILE* file) {
  const int answer = libc().ungetc(character, file);
  if (Stream* const stream = watched(file, false); stream && answer != EOF) {
    const uint64_t at = stream->position.load(std::memory_order_relaxed);
    if (at != unknown_offset && at > 0) stream->position.store(at - 1, std::memory_order_relaxed);
  }
  return answer;
}

// The headers call the one by the other's name.
#define HF_NAMED(name) __asm__(name) __attribute__((visibility("default")))
extern "C" {
int scan_old(FILE* file, const char* format, ...) HF_NAMED("fscanf");
int scan_old_list(FILE* file, const char* format, va_list arguments) HF_NAMED("vfscanf");
int scan_old_input(const char* format, ...) HF_NAMED("scanf");
int scan_old_input_list(const char* format, va_list arguments) HF_NAMED("vscanf");
int scan_new(FILE* file, const char* format, ...) HF_NAMED("__isoc99_fscanf");
int scan_new_list(FILE* file, const char* format, va_list arguments) HF_NAMED("__isoc99_vfscanf");
int scan_new_input(const char* format, ...) HF_NAMED("__isoc99_scanf");
int scan_new_input_list(const char* format, va_list arguments) HF_NAMED("__isoc99_vscanf");

int scan_old_list(FILE* file, const char* format, va_list arguments) {
  return scan(file, [&] { return libc().vfscanf(file, format, arguments); });
}
int scan_old(FILE* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = scan_old_list(file, format, arguments);
  va_end(arguments);
  return answer;
}
int scan_old_input(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = scan_old_list(stdin, format, arguments);
  va_end(arguments);
  return answer;
}
int scan_old_input_list(const char* format, va_list arguments) { return scan_old_list(stdin, format, arguments); }
int scan_new_list(FILE* file, const char* format, va_list arguments) {
  return scan(file, [&] { return libc().__isoc99_vfscanf(file, format, arguments); });
}
int scan_new(FILE* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = scan_new_list(file, format, arguments);
  va_end(arguments);
  return answer;
}
int scan_new_input(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = scan_new_list(stdin, format, arguments);
  va_end(arguments);
  return answer;
}
int scan_new_input_list(const char* format, va_list arguments) { return scan_new_list(stdin, format, arguments); }
}

// ---- writing

HF_DOOR size_t fwrite(const void* from, size_t size, size_t count, FILE* file) {
  return write_items(file, size, count, [=] { return libc().fwrite(from, size, count, file); });
}
HF_DOOR size_t fwrite_unlocked(const void* from, size_t size, size_t count, FILE* file) {
  return write_items(file, size, count, [=] { return libc().fwrite_unlocked(from, size, count, file); });
}
HF_DOOR int fputs(const char* text, FILE* file) {
  return write_text(file, text, 0, [=] { return libc().fputs(text, file); });
}
HF_DOOR int fputs_unlocked(const char* text, FILE* file) {
  return write_text(file, text, 0, [=] { return libc().fputs_unlocked(text, file); });
}
HF_DOOR int puts(const char* text) {
  return write_text(stdout, text, 1, [=] { return libc().puts(text); });
}
HF_DOOR int fputc(int character, FILE* file) {
  return write_character(file, [=] { return libc().fputc(character, file); });
}
HF_DOOR int fputc_unlocked(int character, FILE* file) {
  return write_character(file, [=] { return libc().fputc_unlocked(character, file); });
}
HF_DOOR int putc(int character, FILE* file) {
  return write_character(file, [=] { return libc().putc(character, file); });
}
HF_DOOR int putc_unlocked(int character, FILE* file) {
  return write_character(file, [=] { return libc().putc_unlocked(character, file); });
}
HF_DOOR int putchar(int character) {
  return write_character(stdout, [=] { return libc().putchar(character); });
}
HF_DOOR int putchar_unlocked(int character) {
  return write_character(stdout, [=] { return libc().putchar_unlocked(character); });
}
HF_DOOR int putw(int word, FILE* file) {
  return transfer<true>(
      file, [=] { return libc().putw(word, file); }, [](int put) { return put == 0 ? int64_t(sizeof(int)) : failed; });
}
HF_DOOR int vfprintf(FILE* file, const char* format, va_list arguments) {
  return print(file, [&] { return libc().vfprintf(file, format, arguments); });
}
HF_DOOR int __vfprintf_chk(FILE* file, int level, const char* format, va_list arguments) {
  return print(file, [&] { return libc().__vfprintf_chk(file, level, format, arguments); });
}
HF_DOOR int fprintf(FILE* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = print(file, [&] { return libc().vfprintf(file, format, arguments); });
  va_end(arguments);
  return answer;
}
HF_DOOR int __fprintf_chk(FILE* file, int level, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = print(file, [&] { return libc().__vfprintf_chk(file, level, format, arguments); });
  va_end(arguments);
  return answer;
}
HF_DOOR int printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = print(stdout, [&] { return libc().vfprintf(stdout, format, arguments); });
  va_end(arguments);
  return answer;
}
HF_DOOR int __printf_chk(int level, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int answer = print(stdout, [&] { return libc().__vfprintf_chk(stdout, level, format, arguments); });
  va_end(arguments);
  return answer;
}
HF_DOOR int vprintf(const char* format, va_list arguments) {
  return print(stdout, [&] { return libc().vfprintf(stdout, format, arguments); });
}
HF_DOOR int __vprintf_chk(int level, const char* format, va_list arguments) {
  return print(stdout, [&] { return libc().__vfprintf_chk(stdout, level, format, arguments); });
}

// ---- places, buffers, the end

HF_DOOR int fseek(FILE* file, long offset, int whence) {
  return seek(file, offset, whence, [=] { return libc().fseek(file, offset, whence); });
}
HF_DOOR int fseeko(FILE* file, off_t offset, int whence) {
  return seek(file, offset, whence, [=] { return libc().fseeko(file, offset, whence); });
}
HF_DOOR int fseeko64(FILE* file, off64_t offset, int whence) {
  return seek(file, offset, whence, [=] { return libc().fseeko64(file, offset, whence); });
}
HF_DOOR void rewind(FILE* file) {
  tell(file, Counter::seeks, [=] { libc().rewind(file); });
  if (Stream* const stream = watched(file, false)) follow(*stream, file);
}
HF_DOOR int fsetpos(FILE* file, const fpos_t* position) {
  return ask(
      file, Counter::seeks, [=] { return libc().fsetpos(file, position); }, [=](Stream& stream) { follow(stream, file); });
}
HF_DOOR int fsetpos64(FILE* file, const fpos64_t* position) {
  return ask(
      file, Counter::seeks, [=] { return libc().fsetpos64(file, position); }, [=](Stream& stream) { follow(stream, file); });
}
HF_DOOR int fgetpos(FILE* file, fpos_t* position) {
  return ask(file, Counter::seeks, [=] { return libc().fgetpos(file, position); });
}
HF_DOOR int fgetpos64(FILE* file, fpos64_t* position) {
  return ask(file, Counter::seeks, [=] { return libc().fgetpos64(file, position); });
}
HF_DOOR long ftell(FILE* file) {
  return ask(file, Counter::seeks, [=] { return libc().ftell(file); });
}
HF_DOOR off_t ftello(FILE* file) {
  return ask(file, Counter::seeks, [=] { return libc().ftello(file); });
}
HF_DOOR off64_t ftello64(FILE* file) {
  return ask(file, Counter::seeks, [=] { return libc().ftello64(file); });
}
HF_DOOR int setvbuf(FILE* file, char* buffer, int mode, size_t bytes) noexcept {
  return ask(file, Counter::others, [=] { return libc().setvbuf(file, buffer, mode, bytes); });
}
HF_DOOR void setbuf(FILE* file, char* buffer) noexcept {
  tell(file, Counter::others, [=] { libc().setbuf(file, buffer); });
}
HF_DOOR void setbuffer(FILE* file, char* buffer, size_t bytes) noexcept {
  tell(file, Counter::others, [=] { libc().setbuffer(file, buffer, bytes); });
}
HF_DOOR void setlinebuf(FILE* file) noexcept {
  tell(file, Counter::others, [=] { libc().setlinebuf(file); });
}
HF_DOOR int fflush(FILE* file) {
  return ask(file, Counter::syncs, [=] { return libc().fflush(file); });
}
HF_DOOR int fflush_unlocked(FILE* file) {
  return ask(file, Counter::syncs, [=] { return libc().fflush_unlocked(file); });
}
namespace {

// What stands in for a protected file below a stream hands on its bytes before the number is anybody else's.
int close_stand_in(FILE* file, int fd) {
  const bool flushed = libc().fflush(file) == 0;
  const holdfast::Status closed = forget(fd);
  const int answer = libc().fclose(file);
  if (!closed.ok()) errno = closed.to_errno();
  return flushed && closed.ok() ? answer : EOF;
}

int close_stream(FILE* file) {
  if (const int fd = file && inside == 0 ? real().fileno(file) : -1; fd >= 0 && is_watched(fd)) [[unlikely]] {
    observe_stream_goes(file);
    (void)take_stream(file);
    return close_stand_in(file, fd);
  } else if (writes_checkpoint(fd)) [[unlikely]] {
    observe_stream_goes(file);
    (void)take_stream(file);
    const int error = checkpoint_flushed(file, fd);
    ClosingCheckpoint checkpoint(fd);
    const int answer = checkpoint.ends(libc().fclose(file));
    return error != 0 ? (errno = error, EOF) : answer;  // what could not be flushed is gone, and the C library's close does not know of it
  }
  observe_stream_goes(file);
  auto* const record = take_stream(file);
  if (!record || inside > 0 || holdfast::current_meter) return libc().fclose(file);
  const MeterScope below(&record->meter);
  const uint64_t begin = holdfast::profile::ticks();
  const int answer = libc().fclose(file);
  holdfast::profile::count(*record, Counter::closes, begin, holdfast::profile::ticks());
  if (answer != 0) holdfast::profile::count_failure(*record);
  return answer;
}

}  // namespace

// In a replica what is still to be written is written before, while the descriptor is there to be looked at.
HF_DOOR int fclose(FILE* file) {
  const bool writes = file && inside == 0 && holdfast::redundant::Replica::now() && __fpending(file) > 0;
  const int error = writes && fflush(file) != 0 ? errno : 0;
  const int answer = close_stream(file);
  return error != 0 ? (errno = error, EOF) : answer;
}
