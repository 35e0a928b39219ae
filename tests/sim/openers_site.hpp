// Where the files of the simulated world lie: /data, a directory of the user's outside the targets, and target directories beside it
// (/t0, /t1, ...). The catalog finds it in the place of the kernel.
//
// A node's own disk is a directory of the tree as well: its agent serves it as a target, and programs on that node open files in it.
//
// Crash model of /data: a name is kept where its directory was synced since, the bytes and the size of a file where it was synced, and its
// time likewise. Of the rest the seed says what is left: names as a journal keeps them (up to a moment, or all, or none) or one by one, a
// rename whole; bytes as before, as they are now, in part, torn by sectors, or zeros.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "catalog/environment.hpp"
#include "sim/openers_agents.hpp"
#include "sim/openers_node.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {

struct Inode;
using InodePtr = std::shared_ptr<Inode>;

// A file, a link or a directory.
struct Inode : std::enable_shared_from_this<Inode> {
  struct Change {
    bool cut = false;
    uint64_t offset = 0;  // or the new size
    Bytes data;
  };
  uint64_t number = 0;
  mode_t mode = 0;
  int64_t changed = 0, durable_changed = 0, written = 0;
  target::SparseBytes now, durable;
  std::vector<Change> unsynced;
  std::string leads_to;                                      // of a link
  std::map<std::string, InodePtr> entries, durable_entries;  // of a directory
  Inode* parent = nullptr;                                   // of a directory
  int locked_by = -1;                                        // descriptor
  std::map<uint64_t, int> locked_bytes;                      // the same of each
  unsigned names = 1;                                        // that it has had at most

  bool directory() const { return S_ISDIR(mode); }
  bool link() const { return S_ISLNK(mode); }
  bool regular() const { return S_ISREG(mode); }
};

// The tree below /, without the targets. Nobody fails here: who may not reach it is the site's affair.
class Tree {
 public:
  Tree();
  InodePtr root() const { return root_; }
  InodePtr make(mode_t mode);
  InodePtr find(const Inode& directory, const std::string& name) const;
  InodePtr below(const Inode& directory, const std::string& path) const;
  // Each is one change of names, as a journal has it.
  void enter(Inode& directory, const std::string& name, InodePtr node);
  void remove(Inode& directory, const std::string& name) { enter(directory, name, nullptr); }
  void rename(Inode& from, const std::string& name, Inode& to, const std::string& new_name);

  void write(Inode& file, uint64_t offset, ByteView bytes);
  void cut(Inode& file, uint64_t size);
  void sync(Inode& node, bool with_time = true);
  void sync_name(Inode& directory, const std::string& name);

  bool may_lose_power = true;  // false: what a power failure would need is not remembered

  void power_loss(uint64_t seed);
  void power_loss_below(Inode& top, uint64_t seed);
  int64_t now() { return ++clock_; }
  bool has_unsynced_names() const { return !unsynced_.empty(); }
  std::string path_of(const Inode& directory) const;

 private:
  struct Naming {
    uint64_t number;  // the two sides of a rename have one
    InodePtr directory;
    std::string name;
    InodePtr node;  // null: removed
  };
  void name(Inode& directory, const std::string& name, InodePtr node, uint64_t number);
  void lose_names(std::mt19937_64& random);
  static void lose_bytes(Inode& file, std::mt19937_64& random);
  static void settle(Inode& node, std::set<Inode*>& settled, std::mt19937_64& random);

  InodePtr root_;
  std::vector<Naming> unsynced_;
  uint64_t next_number_ = 1, next_naming_ = 1;
  int64_t clock_ = 1'000'000'000;
};

// A directory of its own that can be a target.
struct Place {
  std::string path;
  std::shared_ptr<target::MemoryDirectory> directory;
};

// A node's own disk.
struct NodeDisk {
  std::string name, address;  // n1, n1:/n1
  InodePtr root;
  bool full = false;
  InodePtr full_until = {};  // this one goes
};

class Site final : public catalog::Environment {
 public:
  explicit Site(uint64_t seed);
  Site(const Site&) = delete;
  ~Site();

  // --- what happens to it
  int add_place(std::string path);                                                      // an empty one. Its number, by which the gate knows it
  Settings add_set(const std::string& protect, const std::vector<std::string>& paths);  // empty ones, and who creates files on them
  int place_at(const std::string& path) const;
  // An empty disk there; who has the old one open gets errors.
  std::shared_ptr<target::MemoryDirectory> empty_place(int place);
  void heal(int place) { gate->heal(place), agents.heal(place); }
  void put_back(int place, std::shared_ptr<target::MemoryDirectory> directory);
  void add_node_disk(const std::string& name);
  static int gate_number(int node) { return 2000 + node; }  // of the node with that index in `disks`
  InodePtr copy_of_disk(int node);
  void change_disk(int node, InodePtr root);  // null: an empty one. Who has the old one open gets errors
  void lose_power_of_disk(int node, uint64_t seed);
  void lose_nodes();  // and what they have not handed on
  void power_loss(uint64_t seed);
  std::string listing() const;  // names and sizes below /data and on the targets, for whoever looks at a failure

  std::vector<Place> places;
  std::vector<NodeDisk> disks;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::set<int> hidden_from;             // processes that cannot reach /data
  int nodes = 1;                         // on which the processes run in turn; with several, each remembers what it has read (openers_node.hpp)
  bool by_agents = false;                // the places are agents'
  std::function<std::string()> boot_id;  // what the running process finds at /proc/sys/kernel/random/boot_id
  bool gated = true;                     // false: nothing fails there, and the calls on agents are those of a job
  Agents agents;
  Tree tree;
  // Of objects of targets in the tree: by holder.
  using Locks = std::multimap<InodePtr, std::pair<uint64_t, target::Hold>>;
  std::shared_ptr<Locks> locks = std::make_shared<Locks>();
  uint64_t last_lock = 0;
  uint64_t second_names = 0;  // that objects of targets in the tree were given

  // --- catalog::Environment
  int openat(int directory, const char* name, int flags, mode_t mode) override;
  int open_for_program(const char* name, int flags, mode_t mode) override { return openat(AT_FDCWD, name, flags, mode); }
  void close(int fd) override;
  int give_away(int fd) override { return fd; }
  int out_of_the_way(int fd) override { return fd; }
  ssize_t pread(int fd, void* into, size_t bytes, uint64_t offset) override;
  ssize_t write(int fd, const void* from, size_t bytes) override;
  ssize_t pwrite(int fd, const void* from, size_t bytes, uint64_t offset) override;
  int fsync(int fd) override;
  int write_out(int fd) override;
  int fchmod(int fd, mode_t mode) override;
  int fchown(int fd, uid_t owner, gid_t group) override;
  void say_as_of(int, const char*, int, bool) override {}  // there are no attributes, and nobody sets times
  int fstatat(int directory, const char* name, struct stat* into, int flags) override;
  int fstatfs(int fd, struct statfs* into) override;
  int mkdirat(int directory, const char* name, mode_t mode) override;
  int unlinkat(int directory, const char* name, int flags) override;
  int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) override;
  int linkat(int from_directory, const char* from, int to_directory, const char* to) override;
  int symlinkat(const char* content, int directory, const char* name) override;
  ssize_t readlinkat(int directory, const char* name, char* into, size_t bytes) override;
  ssize_t getdents64(int fd, void* into, size_t bytes) override;
  int rewind(int directory) override;
  bool has_writers(int fd) override;
  int lock_whole(int fd) override;
  int lock_byte(int fd, uint64_t at) override;
  int unlock_byte(int fd, uint64_t at) override;
  ssize_t getcwd(char* into, size_t bytes) override;
  Result<std::shared_ptr<target::Target>> open_target(const std::string& path, const target::DirectoryOptions& options) override;
  std::shared_ptr<target::Lane> lane_for(const std::string&, std::chrono::milliseconds) override;
  std::chrono::steady_clock::time_point now() override { return std::chrono::steady_clock::time_point(time_); }
  void wait(std::chrono::milliseconds time) override;
  void makes_room(const InodePtr& gone);

 private:
  struct Open {
    InodePtr node;   // in the tree, or
    int place = -1;  // an object of a target
    std::string object;
    uint64_t position = 0;
    std::vector<std::string> names;  // of a directory that is being listed
    size_t listed = 0;
    bool path_only = false, listing = false, writable = false;
    int on_disk = -1, disk = 0;  // of a node: its index, and how often that had been changed
  };
  // What a path leads to.
  struct Found {
    InodePtr directory, node;  // in the tree; without a node there is nothing
    std::string name;
    int place = -1;  // of a target: the object, or "" for the target itself
    std::string object;
    int disk = -1;  // of a node
  };
  bool may_go_on();
  bool reaches(int place);
  bool reaches(const Open& open);
  Open* open_of(int fd);
  bool walk(int directory, const std::string& path, bool follow, Found& found, int links = 0);
  bool into_place(const std::string& rest, Found& found);
  bool into_disk(Found& found);
  bool is_full(int disk) const { return disk >= 0 && disks[size_t(disk)].full; }
  Result<std::shared_ptr<target::Target>> open_disk(int node);
  int enter_open(Open open);
  int open_boot_id();
  bool look_at_place(int place, const std::string& object, struct stat* into);
  static void look_at(const Inode& node, struct stat* into);

  std::shared_ptr<target::Target> seen_by_node(std::shared_ptr<target::Target> storage, int place,
                                               std::function<ObjectStamp(const std::string&)> stamp);

  std::map<int, Open> open_;
  std::map<std::pair<int, int>, std::shared_ptr<NodeMemory>> remembered_;  // by node and place
  int next_fd_ = 1 << 20;
  std::chrono::nanoseconds time_{0};
  std::mt19937_64 ids_;
  void (*const ids_of_the_kernel_)(unsigned char*, size_t);
  static inline Site* current_ = nullptr;
};

}  // namespace holdfast::sim
