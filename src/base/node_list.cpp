#include "base/node_list.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "base/settings/text.hpp"

namespace holdfast {

std::string with_node(std::string text, const std::string& node) {
  for (size_t at = text.find(node_mark); at != std::string::npos; at = text.find(node_mark, at + node.size()))
    text.replace(at, node_mark.size(), node);
  return text;
}

std::string with_node_mark(std::string text, const std::string& node) {
  for (size_t at = text.find(node); at != std::string::npos; at = text.find(node, at + node_mark.size())) text.replace(at, node.size(), node_mark);
  return text;
}

namespace {

// With the leading zeros of the first of its range.
std::string text_of(uint64_t number, std::string_view low) { return fmt::format("{:0{}}", number, low.size()); }

// "1-3", "07"
bool expand_range(std::string_view range, std::vector<std::string>& out) {
  const size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash), high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  uint64_t from = 0, to = 0;
  if (!text::parse_integer(low, from) || !text::parse_integer(high, to) || to < from || to - from >= most_names) return false;
  for (uint64_t n = from; n <= to; ++n) out.push_back(text_of(n, low));
  return true;
}

}  // namespace

bool expand_names(std::string_view text, std::vector<std::string>& out) {
  const size_t open = text.find('['), close = text.find(']', open);
  if (open == std::string_view::npos) return out.emplace_back(text), text.find(']') == std::string_view::npos;
  if (close == std::string_view::npos) return false;
  std::vector<std::string> numbers, rest;
  for (std::string_view inside = text.substr(open + 1, close - open - 1);;) {
    const size_t comma = inside.find(',');
    if (!expand_range(inside.substr(0, comma), numbers) || numbers.size() > most_names) return false;
    if (comma == std::string_view::npos) break;
    inside.remove_prefix(comma + 1);
  }
  if (!expand_names(text.substr(close + 1), rest) || numbers.size() * rest.size() > most_names) return false;
  for (const std::string& number : numbers)
    for (const std::string& end : rest) out.push_back(std::string(text.substr(0, open)) + number + end);
  return true;
}

namespace {

// Names that differ in the number at their end.
struct Alike {
  struct Range {
    std::string low, high;
    uint64_t last;
  };
  std::string prefix;
  std::vector<Range> ranges;

  static std::optional<Alike> of(const std::string& name) {
    const std::string prefix = name.substr(0, name.find_last_not_of("0123456789") + 1), digits = name.substr(prefix.size());
    uint64_t number = 0;
    if (!text::parse_integer(digits, number) || number == UINT64_MAX) return {};
    return Alike{prefix, {{digits, digits, number}}};
  }
  bool takes(const Alike& next) {
    if (next.prefix != prefix) return false;
    Range& before = ranges.back();
    const Range& after = next.ranges[0];
    if (after.low != text_of(before.last + 1, before.low)) return ranges.push_back(after), true;
    before.high = after.high, before.last = after.last;
    return true;
  }
  std::string text() const {
    if (ranges.size() == 1 && ranges[0].low == ranges[0].high) return prefix + ranges[0].low;
    std::string inside;
    for (const Range& one : ranges) inside += (inside.empty() ? "" : ",") + one.low + (one.low == one.high ? "" : "-" + one.high);
    return prefix + "[" + inside + "]";
  }
};

void add(std::string& list, const std::string& element, char between) {
  if (!list.empty()) list += between;
  list += element;
}

}  // namespace

std::string names_in_few_words(std::span<const std::string> names, char between) {
  std::string list;
  std::optional<Alike> alike;
  for (const std::string& name : names) {
    auto next = Alike::of(name);
    if (next && alike && alike->takes(*next)) continue;
    if (alike) add(list, alike->text(), between);
    alike = std::move(next);
    if (!alike) add(list, name, between);
  }
  if (alike) add(list, alike->text(), between);
  return list;
}

namespace {

constexpr std::string_view dir_begins = ":/";

// A comma that is none of a directory's.
size_t find_comma(std::string_view list, size_t from = 0) {
  for (size_t i = from; i < list.size(); ++i) {
    if (list[i] == ',') return i;
    if (list[i] == '\\') ++i;
  }
  return std::string_view::npos;
}

std::string with_plain_commas(std::string_view directory) {
  std::string plain;
  for (size_t i = 0; i < directory.size(); ++i) {
    const char next = i + 1 < directory.size() ? directory[i + 1] : 0;
    if (directory[i] == '\\' && (next == ',' || next == '\\')) ++i;
    plain += directory[i];
  }
  return plain;
}

// Up to the comma behind it. Those in brackets that stand before its directories are its own.
std::string_view first_element(std::string_view list) {
  const std::string_view simply = list.substr(0, find_comma(list));
  const size_t names = list.find(dir_begins);
  if (list.starts_with('/') || names == std::string_view::npos) return simply;
  bool in_brackets = false;
  for (size_t i = 0; i < names; ++i) {
    if (list[i] == ',' && !in_brackets) return simply;
    if (list[i] == '[' || list[i] == ']') in_brackets = list[i] == '[';
  }
  return in_brackets ? simply : list.substr(0, find_comma(list, names));
}

bool is_of_many(std::string_view element) {
  const std::string_view names = element.substr(0, element.find(dir_begins));
  return names.size() < element.size() && names.find_first_of("[;") != std::string_view::npos && names.find('/') == std::string_view::npos;
}

bool expand_one_of_many(std::string_view element, std::vector<std::string>& out) {
  const size_t names_end = element.find(dir_begins);
  std::vector<std::string> names, directories;
  for (const std::string& some : text::split(element.substr(0, names_end), ';'))
    if (!expand_names(some, names) || names.size() > most_names) return false;
  for (std::string_view rest = element.substr(names_end + 1);;) {
    const size_t end = rest.find(dir_begins);
    directories.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (names.empty()) return false;
  for (const std::string& name : names)
    for (const std::string& directory : directories) {
      out.push_back(name + ":" + with_node(directory, name));
      if (!names_a_node(out.back())) return false;
    }
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> expand_directories(std::string_view list) {
  std::vector<std::string> directories;
  for (;;) {
    const std::string_view whole = first_element(list), element = text::trim(whole);
    if (is_of_many(element)) {
      if (!expand_one_of_many(element, directories)) return {};
    } else if (!element.empty()) {
      directories.emplace_back(element);
    }
    if (whole.size() == list.size()) break;
    list.remove_prefix(whole.size() + 1);
  }
  for (std::string& directory : directories) directory = with_plain_commas(directory);
  return directories;
}

std::string with_escaped_commas(std::string_view directory) {
  std::string out;
  for (const char c : directory) {
    if (c == ',' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

namespace {

// Neighbours in a list: nodes with the same directories, but for their names in them.
class Neighbours {
 public:
  // A node's next directory, or that of another one. False: it is to be said otherwise.
  bool take(const std::string& directory) {
    const NodePath address = parse_node_path(directory);
    const std::string marked = marked_by(address);
    if (marked.empty()) return false;
    if (!of_last_.empty() && address.node != last_) end_of_node();
    last_ = address.node;
    of_last_.push_back(marked);
    return true;
  }
  void end() {
    if (!of_last_.empty()) end_of_node();
    end_of_nodes();
  }
  std::string list;

 private:
  // With {node}; empty where that would not be understood.
  static std::string marked_by(const NodePath& address) {
    const bool is_plain =
        !address.node.empty() && address.path.find(node_mark) == std::string::npos && address.path.find(dir_begins) == std::string::npos;
    return is_plain ? with_node_mark(address.path, address.node) : "";
  }
  void end_of_node() {
    if (of_last_ != directories_) end_of_nodes();
    directories_ = std::move(of_last_);
    of_last_.clear();
    nodes_.push_back(last_);
  }
  void end_of_nodes() {
    if (nodes_.size() == 1) {
      for (const std::string& directory : directories_) add(list, nodes_[0] + ":" + with_node(directory, nodes_[0]), ',');
    } else if (!nodes_.empty()) {
      add(list, fmt::format("{}:{}", names_in_few_words(nodes_, ';'), fmt::join(directories_, ":")), ',');
    }
    nodes_.clear();
  }

  std::string last_;
  std::vector<std::string> of_last_, nodes_, directories_;
};

}  // namespace

std::string directories_in_few_words(std::span<const std::string> directories) {
  Neighbours all;
  for (const std::string& directory : directories) {
    if (all.take(directory)) continue;
    all.end();
    add(all.list, directory, ',');
  }
  all.end();
  return std::move(all.list);
}

}  // namespace holdfast
