// The record of a setting: all that there is to know of one key. Each area (a file beside this one) has the fields that some room reads,
// and a table of their records. The tables are constants: nothing is built when the library is loaded.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/config.hpp"

namespace holdfast {

enum class Hint : uint8_t {
  none,
  ours,          // holdfast_KEY
  of_the_field,  // KEY, as other implementations of MPI-IO have it
  layout         // of the field too, and never refused
};

struct Given {
  std::string_view value;
  Source source;
  const std::string& base;  // directory against which relative paths are meant
};

struct Record;

// Kinds of values. Each has take(): whether the value is allowed, and then it is kept. text() is the value in force, as take() takes it (empty:
// none). allowed() is the end of a refusal, "allowed is ...". What people read best may be another text: shown().
struct Flag {
  bool Settings::*field;
  bool take(const Record&, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const { return s.*field ? "true" : "false"; }
  std::string allowed(const Record&) const { return "true or false"; }
};

// One of the record's values.
struct Word {
  std::string Settings::*field;
  bool take(const Record& record, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const { return s.*field; }
  std::string allowed(const Record& record) const;
};

struct OptionalWord {
  std::optional<std::string> Settings::*field;
  bool take(const Record& record, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const { return (s.*field).value_or(""); }
  std::string allowed(const Record& record) const { return Word{}.allowed(record); }
};

// Two words.
struct Either {
  bool Settings::*field;
  const char *no, *yes;  // for false and true
  bool take(const Record&, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const { return s.*field ? yes : no; }
  std::string allowed(const Record&) const { return std::string(no) + " or " + yes; }
};

template <class T>
struct Number {
  T Settings::*field;
  const char* what;  // "a number of deadlines"
  T least, most;
  bool take(const Record&, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const { return std::to_string(s.*field); }
  std::string allowed(const Record&) const { return std::string(what) + " from " + std::to_string(least) + " to " + std::to_string(most); }
};

// Programs hand on what other implementations of MPI-IO call "the default" (0, -1): it is no request.
struct OptionalNumber {
  std::optional<int> Settings::*field;
  int least;
  const char* sentence;
  bool take(const Record&, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const { return s.*field ? std::to_string(*(s.*field)) : ""; }
  std::string allowed(const Record&) const { return sentence; }
};

struct Size {
  uint64_t Settings::*field;
  uint64_t least, most;
  bool take(const Record&, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const { return std::to_string(s.*field); }
  std::string shown(const Settings& s) const;
  std::string allowed(const Record&) const;
};

struct Duration {
  uint64_t Settings::*field;
  uint64_t least_ms, most_ms;
  const char* examples;
  bool take(const Record&, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const { return std::to_string(s.*field) + "ms"; }
  std::string shown(const Settings& s) const;
  std::string allowed(const Record&) const;
};

// Absolute once taken.
struct Path {
  std::string Settings::*field;
  bool take(const Record&, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const { return s.*field; }
  std::string allowed(const Record&) const { return ""; }
};

// Separated by commas, absolute once taken; NODE:DIR stays as it is, and may be of many nodes (base/node_list.hpp).
struct Directories {
  std::vector<std::string> Settings::*field;
  bool take(const Record&, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const;
  std::string text_for_jobs(const Settings& s) const;
  std::string allowed(const Record&) const { return "directories separated by commas, each named once"; }
};

// Separated by colons. `!` may stand before one; what has a '/' and does not begin with '*' is made absolute.
struct Globs {
  std::vector<std::string> Settings::*field;
  bool take(const Record&, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const;
  std::string allowed(const Record&) const { return ""; }
};

// Separated by colons: globs of paths, absolute once taken.
struct Patterns {
  std::vector<std::string> Settings::*field;
  bool take(const Record&, Settings& s, const Given& given) const;
  std::string text(const Settings& s) const { return Globs{field}.text(s); }
  std::string allowed(const Record&) const { return ""; }
};

// What is like no other.
struct Special {
  bool (*taker)(Settings&, const Given&);
  std::string (*printer)(const Settings&);
  const char* sentence;
  bool take(const Record&, Settings& s, const Given& given) const { return taker(s, given); }
  std::string text(const Settings& s) const { return printer(s); }
  std::string allowed(const Record&) const { return sentence; }
};

using KindOfValue = std::variant<Flag, Word, OptionalWord, Either, Number<int>, Number<uint64_t>, OptionalNumber, Size, Duration, Path, Directories,
                                 Globs, Patterns, Special>;

struct Record {
  std::string_view key;  // in holdfast.toml; the environment's is HOLDFAST_KEY
  KindOfValue kind;
  Hint hint = Hint::none;
  const char* values = "";  // worth proposing, separated by blanks: all that there are where the kind is one of words
  const char* option = "";  // where it is not --key with '-' for '_'
  const char* value = "";   // what stands for the value in the help: FILE, DIR,..., TIME
  const char* unset = "";   // the default in words, where it is no value or one that says little
  const char* help = "";    // one sentence, for the help and for completion
  const char* more = "";    // further sentences, for manual pages and docs/settings.md

  bool take(Settings& s, const Given& given) const;
  std::string text(const Settings& s) const;
  std::string allowed() const;
  // The value in force in a job's environment: what is long is said in few words.
  std::string text_for_jobs(const Settings& s) const;
  // The value in force, for people: "10s", "1MiB"; the default in words.
  std::string shown(const Settings& s) const;
  std::vector<std::string> proposals() const;
  bool is_flag() const { return std::holds_alternative<Flag>(kind); }
  char separator() const;  // between a list's elements; 0: no list
  std::string variable() const;
  // Those in which a value goes on that is too long for one.
  std::string variable(int part) const;
  std::string hint_name() const;  // empty: it is none
  std::string option_name() const;
};

struct Area {
  const char* title;
  std::span<const Record> records;
};

extern const Area layout_area, places_area, policy_area, checkpoint_area, waiting_area, engine_area, buffers_area, shared_pointer_area, replicas_area,
    profile_area, output_area;

std::span<const Area* const> areas();
const Record* find_record(std::string_view key);

// Calls f(record) for each.
template <class F>
void for_each_record(const F& f) {
  for (const Area* area : areas())
    for (const Record& record : area->records) f(record);
}

}  // namespace holdfast
