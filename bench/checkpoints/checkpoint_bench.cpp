// One node's part of the measurements of checkpoints (bench/checkpoints/links.py): it does what the node's protector does, or its part of the
// distributed algorithm, each time that a line on standard input says so, and answers with a line of JSON.
//
//   checkpoint_bench protect own=ADDRESS nodes=ADDRESS,... scheme=rs:4+4 unit=BYTES file=PATH rank=N
//       write   protects the file as a version;   check   reads it back and compares;   drop   removes it
//       code    codes the same bytes and makes their checksums, and nothing else;   read    reads them, and nothing else
//     discard=1   the nodes' directories take units and records, and keep none
//   checkpoint_bench renew own=ADDRESS nodes=ADDRESS,... rank=N
//       renew   writes versions of that rank anew that lack a part, as a protector does;   drop   removes them
//   checkpoint_bench small own=ADDRESS nodes=ADDRESS,... scheme=rs:4+2 files=N bytes=N
//       alone, together   protects so many closed files of one step as the node's protector does, each by itself or in packs;   drop   removes them
//   checkpoint_bench distributed rank=N group=N own=ADDRESS right=ADDRESS right_host=IP port=N right_port=N unit=BYTES
//       code    codes the object `source` there;   check=ADDRESS,...   takes nodes away and makes anew what they had
//   checkpoint_bench parity DIRECTORY [wrong]   four nodes in one process; whether their parity is right
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "catalog/pool.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/protector.hpp"
#include "coding/checksum.hpp"
#include "coding/code.hpp"
#include "distributed.hpp"
#include "engine/write_once.hpp"
#include "layout/pack.hpp"
#include "target/filters.hpp"

namespace {

using namespace holdfast;
using Clock = std::chrono::steady_clock;
using Options = std::map<std::string, std::string>;

constexpr uint64_t block_bytes = 64 << 10, read_at_once = 8 << 20;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream words(text);
  for (std::string one; std::getline(words, one, ',');) all.push_back(one);
  return all;
}

int number(const Options& options, const char* name) { return std::stoi(options.at(name)); }

Bytes content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Bytes all(std::filesystem::file_size(path));
  file.read(reinterpret_cast<char*>(all.data()), std::streamsize(all.size()));
  return all;
}

class Protect {
 public:
  static Result<Protect> of(const Options& options) {
    auto settings = Settings::load();
    if (!settings) return settings.status();
    settings->local = parts_of(options.at("nodes"));
    settings->protect = options.at("scheme");
    if (options.count("unit")) settings->striping_unit = std::stoull(options.at("unit"));
    const auto pool = catalog::open_pool(*settings);
    if (!pool) return pool.status();
    if (pool->usable_nodes < settings->local.size()) return Status(Kind::lost, "not all nodes answer");
    return Protect(std::move(*settings), options);
  }

  Result<std::string> run(const std::string& what) {
    if (what == "write") return write();
    if (what == "code") return code();
    if (what == "read") return read();
    if (what == "drop") {
      HF_TRY(catalog::remove_version(located_));
      return std::string("{}");
    }
    if (what == "check") return check();
    return Status(Kind::invalid, what);
  }

 private:
  Protect(Settings settings, const Options& options)
      : settings_(std::move(settings)), own_(options.at("own")), path_(options.at("file")), rank_(uint32_t(number(options, "rank"))) {
    if (!options.count("discard")) return;
    discarding_ = std::make_shared<target::FaultPlan>();
    discarding_->add({.kind = target::CallKind::write, .count = target::kForever, .effect = target::Effect::lose_silently});
  }

  // What checkpoint::protect does, with the time that reading takes.
  Result<std::string> write() {
    const auto begin = Clock::now();
    std::ifstream file(path_, std::ios::binary);
    const uint64_t bytes = std::filesystem::file_size(path_);
    layout::Version version;
    version.run = "00000000000000aa", version.step = ++step_, version.rank = rank_, version.ranks = 64,
    version.file = "/bench/" + std::to_string(rank_);
    auto located = catalog::prepare_version(version, own_, bytes, 0600, settings_);
    if (!located) return located.status();
    located_ = std::move(*located);
    for (catalog::Member& member : located_.members)
      if (discarding_) member.target = target::make_filtered(member.target, discarding_);
    const double prepared = seconds_since(begin);
    double reading = 0;
    const auto read = [&](uint64_t offset, ByteSpan into) {
      const auto from = Clock::now();
      file.seekg(std::streamoff(offset));
      file.read(reinterpret_cast<char*>(into.data()), std::streamsize(into.size()));
      reading += seconds_since(from);
      return file ? Status() : Status(Kind::io, path_);
    };
    HF_TRY(engine::write_once(located_, bytes, read, settings_));
    for (const auto& member : located_.manifest.members)
      if (member.stale) return Status(Kind::lost, "a node was lost meanwhile: " + member.why);
    return fmt::format(R"({{"seconds": {:.6f}, "prepare": {:.6f}, "read": {:.6f}, "bytes": {}}})", seconds_since(begin), prepared, reading, bytes);
  }

  // As much at once as a protector.
  Result<std::string> read() const {
    Bytes piece(read_at_once);
    const auto begin = Clock::now();
    std::ifstream file(path_, std::ios::binary);
    for (uint64_t left = std::filesystem::file_size(path_); left > 0; left -= std::min<uint64_t>(left, piece.size()))
      if (!file.read(reinterpret_cast<char*>(piece.data()), std::streamsize(std::min<uint64_t>(left, piece.size())))) return Status(Kind::io, path_);
    return fmt::format(R"({{"seconds": {:.6f}}})", seconds_since(begin));
  }

  Result<std::string> code() const {
    const Bytes content = content_of(path_);
    const layout::Geometry& g = located_.manifest.geometry;
    const auto code = coding::Code::make(g.scheme.k, g.scheme.m);
    Bytes redundancy(size_t(g.scheme.m) * g.unit_bytes), row(g.row_bytes());
    std::vector<const std::byte*> data;
    std::vector<std::byte*> into;
    for (int unit = 0; unit < g.scheme.k; ++unit) data.push_back(row.data() + uint64_t(unit) * g.unit_bytes);
    for (int unit = 0; unit < g.scheme.m; ++unit) into.push_back(redundancy.data() + uint64_t(unit) * g.unit_bytes);
    uint64_t all = 0;
    double spent = 0;
    for (uint64_t at = 0; at < content.size(); at += row.size()) {
      std::copy_n(content.data() + at, std::min<uint64_t>(row.size(), content.size() - at), row.data());
      const auto begin = Clock::now();
      code->encode(data.data(), into.data(), g.unit_bytes);
      for (const Bytes* units : {&row, &redundancy})
        for (uint64_t block = 0; block < units->size(); block += block_bytes)
          all ^= coding::plain_checksum(ByteView(*units).subspan(block, std::min(block_bytes, units->size() - block)), block);
      spent += seconds_since(begin);
    }
    return fmt::format(R"({{"seconds": {:.6f}, "checksums": {}}})", spent, all % 1000);
  }

  Result<std::string> check() const {
    const std::string copy = path_ + ".copy";
    HF_TRY(checkpoint::fetch(located_.manifest, copy, settings_));
    const bool is_same = content_of(copy) == content_of(path_);
    std::filesystem::remove(copy);
    if (!is_same) return Status(Kind::corrupt, "what was protected reads otherwise");
    return std::string(R"({"verified": true})");
  }

  Settings settings_;
  std::string own_, path_;
  uint32_t rank_;
  uint64_t step_ = 0;
  catalog::Located located_;
  std::shared_ptr<target::FaultPlan> discarding_;  // null: what is written stays
};

class Renew {
 public:
  static Result<Renew> of(const Options& options) {
    auto settings = Settings::load();
    if (!settings) return settings.status();
    settings->local = parts_of(options.at("nodes"));
    const auto pool = catalog::open_pool(*settings);
    if (!pool) return pool.status();
    Renew made;
    made.settings_ = std::move(*settings), made.rank_ = uint32_t(number(options, "rank"));
    return made;
  }

  Result<std::string> run(const std::string& what) {
    const auto begin = Clock::now();
    const auto found = versions_.look(settings_.local, settings_.deadline_ms);
    if (!found) return found.status();
    int done = 0;
    for (const catalog::FoundVersion& one : *found) {
      if (one.manifest.version->rank != rank_) continue;
      if (what == "drop") HF_TRY(catalog::remove_version(catalog::locate_version(one.manifest, settings_)));
      if (what == "renew" && one.readable() && !one.is_complete()) {
        HF_TRY(checkpoint::renew(one.manifest, settings_.local, settings_));
        ++done;
      }
    }
    return fmt::format(R"({{"seconds": {:.6f}, "renewed": {}}})", seconds_since(begin), done);
  }

 private:
  Settings settings_;
  uint32_t rank_ = 0;
  catalog::VersionList versions_;
};

// Files of as many ranks of one node, which have all closed theirs.
class Small {
 public:
  static Result<Small> of(const Options& options) {
    auto settings = Settings::load();
    if (!settings) return settings.status();
    settings->local = parts_of(options.at("nodes"));
    settings->protect = options.at("scheme");
    settings->checkpoint = {"/bench/ck.{step}.{rank}"};
    const auto pool = catalog::open_pool(*settings);
    if (!pool) return pool.status();
    Small made;
    made.settings_ = std::move(*settings), made.own_ = options.at("own");
    made.files_ = uint32_t(number(options, "files")), made.bytes_ = size_t(number(options, "bytes"));
    made.run_ = {.id = "00000000000000aa", .attempt = 1, .from = {}, .nodes = made.settings_.local};
    return made;
  }

  Result<std::string> run(const std::string& what) {
    Settings settings = settings_;
    if (what == "drop") return drop();
    if (what == "alone") settings.pack_below_bytes = 0;
    else if (what != "together") return Status(Kind::invalid, what);
    std::string said;
    checkpoint::Protector protector(settings, run_, own_, [&said](const std::string& sentence) { said += sentence; });
    HF_TRY(protector.begin());
    HF_TRY(close_all(protector.files()));
    const auto begin = Clock::now();
    (void)protector.work();
    const double seconds = seconds_since(begin);
    const auto found = catalog::VersionList().look(settings.local, settings.deadline_ms);
    if (!found) return found.status();
    std::set<std::string> stores;
    for (const catalog::FoundVersion& one : *found) stores.insert(layout::stored(one.manifest).file_id);
    if (found->size() != files_ || !said.empty()) return Status(Kind::io, "not all is protected: " + said);
    return fmt::format(R"({{"seconds": {:.6f}, "commits": {}}})", seconds, stores.size());
  }

 private:
  Status close_all(const checkpoint::LocalFiles& files) {
    ++step_;
    for (uint32_t rank = 0; rank < files_; ++rank) {
      const std::string file = fmt::format("/bench/ck.{}.{}", step_, rank);
      std::ofstream out(files.path(checkpoint::State::closed, {step_, rank, files_, 1, file, ++written_}), std::ios::binary);
      out << std::string(bytes_, char('a' + rank % 26));
      if (!out.flush()) return Status(Kind::io, file);
    }
    return {};
  }
  Result<std::string> drop() {
    const auto found = catalog::VersionList().look(settings_.local, settings_.deadline_ms);
    if (!found) return found.status();
    std::set<std::string> stores;
    for (const catalog::FoundVersion& one : *found)
      if (stores.insert(layout::stored(one.manifest).file_id).second)
        HF_TRY(catalog::remove_version(catalog::locate_version(one.manifest, settings_)));
    return std::string("{}");
  }

  Settings settings_;
  std::string own_;
  checkpoint::Run run_;
  uint32_t files_ = 0;
  size_t bytes_ = 0;
  uint64_t step_ = 0, written_ = 0;
};

class Distribute {
 public:
  static Result<Distribute> of(const Options& options) {
    bench::Place place{number(options, "rank"),       number(options, "group"),       options.at("own"),
                       options.at("right"),           options.at("right_host"),       number(options, "port"),
                       number(options, "right_port"), std::stoull(options.at("unit"))};
    auto made = bench::Distributed::on(place);
    if (!made) return made.status();
    return Distribute(std::move(*made), place.unit_bytes);
  }
  Result<std::string> run(const std::string& what) {
    if (what == "join") {
      HF_TRY(coder_.join());
      return std::string("{}");
    }
    if (what == "code") {
      const auto times = coder_.code();
      if (!times) return times.status();
      return fmt::format(R"({{"seconds": {:.6f}, "read": {:.6f}, "code": {:.6f}, "wait": {:.6f}}})", times->all, times->read, times->code,
                         times->wait);
    }
    if (what.starts_with("check=")) {
      HF_TRY(bench::check_parity(parts_of(what.substr(6)), unit_bytes_));
      return std::string(R"({"verified": true})");
    }
    return Status(Kind::invalid, what);
  }

 private:
  Distribute(bench::Distributed coder, uint64_t unit_bytes) : coder_(std::move(coder)), unit_bytes_(unit_bytes) {}
  bench::Distributed coder_;
  uint64_t unit_bytes_;
};

int fail(const Status& status) {
  fmt::print(stderr, "checkpoint_bench: {}\n", status.sentence());
  return 1;
}

template <class Work>
int serve(const Options& options) {
  auto work = Work::of(options);
  if (!work) return fail(work.status());
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = work->run(line);
    if (!answer) return fail(answer.status());
    std::cout << *answer << std::endl;
  }
  fflush(nullptr);
  _exit(0);  // lanes are left where they are
}

// ---- four nodes in one process

constexpr int group = 4;
constexpr uint64_t unit = 64 << 10, content_bytes = 9 * unit + 1234;

void make_source(const std::string& directory, unsigned seed) {
  std::filesystem::create_directories(directory);
  std::mt19937 random(seed);
  std::ofstream file(directory + "/" + bench::source_name, std::ios::binary);
  for (uint64_t i = 0; i < content_bytes; ++i) file.put(char(random()));
}

Status code_together(const std::vector<std::string>& directories, bool is_wrong) {
  std::vector<Status> ended(group);
  std::vector<bench::Distributed> nodes;
  const int first_port = 20000 + int(getpid()) % 1000 * 12;  // below those that the kernel gives to connections, from 32768 on
  for (int rank = 0; rank < group; ++rank) {
    const int right = (rank + 1) % group;
    auto node = bench::Distributed::on({rank, group, directories[size_t(rank)], directories[size_t(right)], "127.0.0.1", first_port + rank,
                                        first_port + right, unit, is_wrong && rank == 2});
    if (!node) return node.status();
    nodes.push_back(std::move(*node));
  }
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < group; ++rank)
    threads.emplace_back([&, rank] {
      ended[rank] = nodes[rank].join();
      if (ended[rank].ok()) ended[rank] = nodes[rank].code().status();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : ended) HF_TRY(status);
  return {};
}

int check_itself(const std::string& directory, bool is_wrong) {
  std::vector<std::string> directories;
  for (int rank = 0; rank < group; ++rank) {
    directories.push_back(fmt::format("{}/node{}", directory, rank));
    make_source(directories.back(), unsigned(rank));
  }
  Status status = code_together(directories, is_wrong);
  if (status.ok()) status = bench::check_parity(directories, unit);
  if (!status.ok()) return fail(status);
  fmt::print("each half of {} nodes is made anew by the other one\n", group);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "parity" && count > 2) return check_itself(arguments[2], count > 3 && std::string(arguments[3]) == "wrong");
  Options options;
  for (int i = 2; i < count; ++i) {
    const std::string word = arguments[i];
    options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  if (what == "protect") return serve<Protect>(options);
  if (what == "renew") return serve<Renew>(options);
  if (what == "small") return serve<Small>(options);
  if (what == "distributed") return serve<Distribute>(options);
  std::fputs("checkpoint_bench: is started by bench/checkpoints/links.py\n", stderr);
  return 2;
}
