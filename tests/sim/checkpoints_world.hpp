// Checkpoints of a job that is started again and again on nodes that are lost, wiped and come back, from one seed. What names the files, protects
// them, finds what is whole, drops and makes anew is the product's own code; what a file may hold is the model's to say (checkpoints_model.hpp).
//
// The ranks are fibers that write and read by the calls of the front end, each on its node's disk, which is a directory of the simulated tree. A protector of
// each node runs beside them. The driver is `holdfast run`: it chooses, drops, and ends.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/attempt.hpp"
#include "checkpoint/leftovers.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/protector.hpp"
#include "checkpoint/roll.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/checkpoints_model.hpp"
#include "sim/checkpoints_singles_model.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::sim {

// What a thousand schedules must have done (checkpoints_test.cpp).
enum class Did : uint8_t {
  attempts,
  checkpoints_written,
  checkpoints_whole,
  begun_from_one,
  files_read,
  reads_refused,
  nodes_lost,
  nodes_wiped,
  nodes_back_with_old_data,
  disks_filled,
  disks_that_failed,
  ranks_killed,
  protectors_killed,
  late_protectors,
  other_rank_counts,
  files_made_anew,
  versions_dropped,
  beyond_what_is_borne,
  power_failures,
  removals,
  files_renamed,
  files_moved,
  files_updated,
  files_closed_in_part,
  files_read_to_update,
  files_read_again,
  looks_for_removed,
  written_before,
  resized,
  failed_by_name,
  drained,
  begun_from_plain_files,
  links_cut,
  agents_stopped,
  protectors_refused,
  looks_refused,
  drops_refused,
  protectors_revived,
  nodes_without_power,
  bits_turned,
  damage_borne,
  damage_beyond,
  damage_passed_over,
  torn_updates_passed_over,
  drains_killed,
  closes_protected,
  numbers_given_again,
  files_shared,
  units_kept,
  units_summed,
  files_packed,
  packs_made_anew,
  files_of_many_rows,
  count,
};
inline constexpr const char* did_names[] = {"attempts",
                                            "checkpoints written",
                                            "checkpoints whole",
                                            "attempts that began with a checkpoint",
                                            "files read",
                                            "reads refused",
                                            "nodes lost",
                                            "nodes wiped",
                                            "nodes back with old data",
                                            "disks filled",
                                            "disks that failed",
                                            "ranks killed",
                                            "protectors killed",
                                            "late protectors",
                                            "other rank counts",
                                            "files made anew",
                                            "versions dropped",
                                            "losses beyond what is borne",
                                            "power failures",
                                            "removals",
                                            "files renamed",
                                            "files renamed from another checkpoint's name",
                                            "files updated",
                                            "files that were closed though they could not be written",
                                            "files that were opened to be updated, and read",
                                            "files that were read again by who wrote them",
                                            "looks for what another rank had removed",
                                            "files of all ranks that one rank had written before",
                                            "files of all ranks that were resized when all had them open",
                                            "files that failed by name",
                                            "checkpoints drained",
                                            "attempts that began with a drained checkpoint",
                                            "links cut",
                                            "agents stopped",
                                            "calls refused to protectors",
                                            "calls refused to who looks for what is lost",
                                            "calls refused to drops",
                                            "protectors revived",
                                            "nodes that lost power",
                                            "bits turned",
                                            "damages that are borne",
                                            "damages beyond what is borne",
                                            "damages that were passed over",
                                            "checkpoints passed over that only some ranks had updated",
                                            "drains killed",
                                            "closes that waited until their file was protected",
                                            "numbers of attempts given again",
                                            "files that all ranks have written",
                                            "nodes that kept their units of a file made anew",
                                            "sums that nodes made of units",
                                            "files that share a protected file",
                                            "such files that were made anew",
                                            "files of many rows"};
static_assert(std::size(did_names) == size_t(Did::count));

inline constexpr const char* directory_of_all = "/data/ck";

class CheckpointsWorld {
 public:
  // One file or some of each rank; as many as the ranks care to write; the same, of which most had another name before; or one of all ranks, which each
  // of them opens by itself, or all together as by MPI. Or files that are protected one by one.
  enum class Family : uint8_t { of_ranks, rolled, renamed, shared, together, singles };
  explicit CheckpointsWorld(uint64_t seed, Family family = Family::of_ranks);
  // What was found to be wrong; empty where all is well.
  std::string run();
  uint64_t done(Did what) const { return done_[size_t(what)]; }
  uint64_t trace() const { return schedule_.trace(); }
  std::string last_operations() const;

 private:
  using Front = frontend::posix::Checkpoints;
  enum class Naming : uint8_t {
    step_and_rank,
    step,
    counted,
    two_patterns,
    slots,
    many,
    many_slots,
    shared,
    shared_slots,
    together,
    together_slots,
    singles
  };
  static constexpr uint32_t most_renewals = 6;  // looks of a protector for what is to be made anew
  struct RankOf {
    uint32_t number = 0;
    int node = 0;
    std::unique_ptr<Front> front;
    int process = -1;
    bool ended_well = false, died_with_node = false;
    std::set<std::string> paths;  // what it has read or written in this attempt, and not removed since
    uint64_t last_write = 0;
  };
  enum class Ending { not_yet, told, cut_off };  // of an attempt, for a protector; the latter where `run` was killed
  struct ProtectorOf {
    int node = 0, process = -1;
    std::shared_ptr<Ending> over;
  };

  uint64_t random(uint64_t below) { return random_() % below; }
  bool one_in(uint64_t n) { return random(n) == 0; }
  void note(std::string what);
  void found(const std::string& what);
  bool failed() const { return !failure_.empty(); }
  void count(Did what, uint64_t times = 1) { done_[size_t(what)] += times; }
  void bound_memory();
  size_t any_size(std::span<const size_t> sizes);

  // The driver.
  void direct();
  void begin_run();
  bool knows_run() const;
  void begin_new_run();
  bool attempt(bool calm);
  void look_at_nodes();
  bool prepare();
  void check_choice();
  void start_protectors();
  void start_protector(int node);
  std::vector<std::string> end_protectors(bool waits);
  void start_ranks();
  void look_and_tidy();
  void promise(const checkpoint::Checkpoint& one);
  void promise(CheckpointsModel::Promise& promise, const checkpoint::Protected& file, bool is_new);
  bool is_rolled() const { return naming_ == Naming::many || naming_ == Naming::many_slots; }
  bool is_shared() const { return naming_ == Naming::shared || naming_ == Naming::shared_slots; }
  bool is_together() const { return naming_ == Naming::together || naming_ == Naming::together_slots; }
  bool is_of_all() const { return is_shared() || is_together(); }
  bool is_single() const { return naming_ == Naming::singles; }
  bool is_of_slots() const {
    return naming_ == Naming::slots || naming_ == Naming::many_slots || naming_ == Naming::shared_slots || naming_ == Naming::together_slots;
  }
  void learn_of_renewals();
  using Holders = std::map<std::string, std::vector<size_t>>;  // the nodes, by a file's id
  void learn_of_renewal(CheckpointsModel::File& file, const Holders& holders);
  // Of the version that a directory has, or of each file of its pack.
  const std::vector<layout::Manifest>& final_manifests_in(const std::string& name, const Inode& directory) const;
  static std::vector<layout::Manifest> final_manifests_of(ByteView text);
  uint64_t step_of(uint64_t round) const;
  void settle_down();
  void check_calm_attempt(bool well);
  bool is_there(const CheckpointsModel::Promise& promise) const;
  void check_nothing_is_left();
  void check_local_copies_are_bounded();

  // What happens.
  void disturb();
  void between_attempts();
  void lose(int node);
  void bring_back(int node, bool may_be_wiped);

  Status way_to(int node);
  void begin_weather();
  void leave_alone(int node, bool links);
  void reach_again(int node);
  void lose_power(int node);
  void revive_protectors();
  void check_damage();
  void wipe_one();
  bool drain_newest();
  std::optional<CheckpointsModel::Round> plain_round(const std::vector<std::string>& paths);
  bool was_removed(const std::vector<std::string>& paths);
  std::vector<checkpoint::DrainedCheckpoint> drain_records();
  bool is_noted_as_drained(const std::string& path);
  std::optional<CheckpointsModel::Round> newest_drained();
  void check_drain();
  void damage(int node, const std::string& file_id);

  // A rank's work, in its fiber or the driver's.
  std::vector<std::string> paths_of(uint32_t rank, uint64_t step) const;
  void write_all_of(RankOf& rank, uint64_t round, uint64_t step);
  void check_protected(RankOf& rank, const std::string& path, const std::string& closed, bool given_up = false);
  bool write_one(RankOf& rank, const std::string& path, uint64_t round, uint64_t step);
  bool closes_all_the_same(RankOf& rank, int fd);
  bool write_in_place(RankOf& rank, const Front::File& file, uint64_t number, Status& status);
  bool update_one(RankOf& rank, const std::string& path);
  bool write_and_rename(RankOf& rank, const Front::File& file, uint64_t number);
  bool write_and_move(RankOf& rank, const Front::File& file, uint64_t number, Status& status);
  struct OfAll;
  bool write_before(RankOf& rank, const Front::File& file, OfAll& all);
  bool write_resized(RankOf& rank, const Front::File& file, OfAll& all);
  Status open_by_handle(const RankOf& rank, const Front::Shared& shared);
  bool look_first(RankOf& rank, const Front::File& file, OfAll& all, std::optional<Front::Shared>& before);
  bool write_shared(RankOf& rank, const std::string& path, uint64_t round, uint64_t step);
  Status write_own_part(const RankOf& rank, const catalog::Located& located, const Bytes& content, const Settings& durable,
                        std::set<int>* lost = nullptr);
  bool write_together(RankOf& rank, const std::string& path, uint64_t round, uint64_t step);
  bool begin_together(RankOf& rank, const std::string& path, OfAll& all);
  std::optional<Bytes> bytes_to_update_of_all(RankOf& rank, const Front::File& file, Status& status);
  std::optional<Bytes> bytes_at_all(const catalog::Located& located) const;
  bool wait_for_all(const std::function<bool()>& is_so) const;
  Settings durable() const;
  // A step whose files are all gone is none. What others are just writing is not removed.
  bool may_remove() const { return !(calm_ && is_rolled()) && !is_of_all(); }
  void remove_one(RankOf& rank);
  void read_again(RankOf& rank, uint64_t round);
  void look_for_removed(RankOf& rank);
  CheckpointsModel::Key name_key(const RankOf& rank, const checkpoint::LocalName& name) const;
  void read_beginning(RankOf& rank);
  void check_listing(RankOf& rank);
  bool check_read(RankOf& rank, const std::string& path);

  // Of files that are protected one by one (checkpoints_singles.cpp).
  static std::string single_path(size_t which);
  void work_on_singles(RankOf& rank, uint64_t round);
  bool write_single(RankOf& rank, const std::string& path, uint64_t round);
  bool write_single_anew(RankOf& rank, const Front::File& file, uint64_t number, Status& status);
  bool update_single(RankOf& rank, const Front::File& file, uint64_t round, Status& status);
  bool write_single_at(RankOf& rank, const Front::File& file, int fd, uint64_t number, const std::vector<std::pair<size_t, size_t>>& parts);
  void close_single(RankOf& rank, int fd, bool given_up);
  void name_single(const RankOf& rank, const std::string& path, const checkpoint::LocalName& name, uint64_t number);
  bool rename_to_single(RankOf& rank, const Front::File& file, uint64_t number, Status& status);
  bool take_as_single(RankOf& rank, const std::string& from, const Front::File& to, uint64_t number, Status& status);
  bool move_to_single(RankOf& rank, const Front::File& file, uint64_t number, Status& status);
  bool remove_single(RankOf& rank, const std::string& path);
  std::optional<uint32_t> hidden_number(const std::string& path) const;
  bool remembers_surely(int node, int from);
  void read_singles(RankOf& rank);
  bool look_at_single(RankOf& rank, const std::string& path, std::optional<SinglesModel::Order>& order, std::string& why);
  bool check_single(RankOf& rank, const std::string& path);
  std::optional<SinglesModel::Order> as_if_put_back(const std::string& path);
  bool check_own_single(RankOf& rank, const std::string& path);
  void check_listing_of_singles(RankOf& rank);
  std::optional<SinglesModel::Order> least_of_single(const std::string& path);
  void note_removed_singles(const checkpoint::Survey& survey);
  void look_at_singles();
  void drop_removed_singles(const checkpoint::Survey& survey);
  void promise_singles(const checkpoint::Checkpoint& all, const std::vector<catalog::FoundVersion>& versions);
  void promise_single(const checkpoint::Protected& file, const std::vector<catalog::FoundVersion>& versions);
  void check_calm_singles();
  void check_no_single_is_left();
  bool is_each_there(const SinglesModel::File& file, const SinglesModel::Order& after) const;
  void check_drained_singles();
  bool on_ranks(const std::function<void(RankOf&)>& body, bool may_die);
  std::optional<Bytes> bytes_at(const std::string& path);
  bool may_be_written_in_part(const CheckpointsModel::Write& write) const;
  std::optional<Bytes> bytes_to_update(RankOf& rank, const Front::File& file, Status& status);

  // What the disks hold, looked at by nobody of the job.
  std::optional<checkpoint::LocalName> newest_name(int node, const std::string& path) const;
  size_t entries(int node, checkpoint::State state, const layout::Attempt& attempt) const;
  bool is_up(int node) { return !site_.gate->failing(Site::gate_number(node)); }
  bool is_reached(int node) { return is_up(node) && !cut_off_.contains(node) && !stopped_.contains(node); }
  std::vector<int> up_nodes();
  int node_of(const std::string& address) const;
  bool all_well() const { return faults_ == 0; }

  const uint64_t seed_;
  std::mt19937_64 random_;
  Site site_;
  catalog::ReplacedEnvironment replaced_{site_};
  Schedule schedule_;
  Settings settings_;
  CheckpointsModel model_;
  SinglesModel singles_;
  std::map<std::string, SinglesModel::Order> drained_least_;               // by path, when all nodes but one may be lost
  std::set<std::string> unreadable_;                                       // paths, in this attempt
  std::set<int> about_to_fail_;                                            // nodes: from some call on
  mutable std::map<Bytes, std::vector<layout::Manifest>> manifests_read_;  // by their text
  Naming naming_;
  uint32_t ranks_ = 1;
  size_t keep_ = 1;
  bool moves_ = false;    // files have another checkpoint's name first
  bool packs_ = false;    // small files share protected files, and ranks their nodes
  bool streams_ = false;  // some files have many rows
  size_t together_bytes_ = 0;
  int64_t most_held_ = 0;  // by a process, in bytes of rows
  checkpoint::Run run_;
  uint64_t runs_ = 0;
  bool counts_down_ = false;
  enum class Updating : uint8_t { never, now_and_then, always } updating_ = Updating::never;
  bool updates_ = false;  // all ranks do in this round, as they run one program
  layout::Attempt last_attempt_ = 0;
  std::vector<layout::Attempt> attempts_;               // of each start of the job
  std::set<std::pair<std::string, uint32_t>> numbers_;  // by run, that attempts have had
  std::vector<std::string> from_files_;
  std::set<std::pair<layout::Attempt, std::string>> removed_;  // by attempt: what ranks have removed at any time: a roll of then does not list it
  std::map<std::string, uint32_t> gone_;                       // in this attempt, and by which rank
  std::optional<CheckpointsModel::Round> expected_, begun_round_;
  std::optional<checkpoint::Surveyor> surveyor_;
  std::vector<RankOf> job_;
  struct OfAll {
    uint64_t number = 0;       // the write's
    std::set<uint32_t> ranks;  // that have written their parts
    // Of ranks that open it each by itself: whether they open it once before, and how many have done so, and have opened it to write.
    std::optional<bool> looks, truncated_by_one;
    std::optional<uint32_t> written_before_by;
    bool is_written_before = false;
    enum class Way : uint8_t { written, resized, resized_by_handle };
    std::optional<Way> way;
    std::optional<bool> is_resized;
    uint32_t looked = 0, opened = 0;
    // Of ranks that open it together: what the first has begun, whether it was refused, how many have closed it, and what came of that.
    std::optional<Front::Together> begun;
    bool is_refused = false;
    uint32_t closed = 0;
    bool is_closed_well = true;
    std::set<int> lost = {}, lost_of_first = {};  // members, by any of them, and by the first
    CheckpointsModel::Key key = {};
    std::optional<bool> is_version;
  };
  std::map<CheckpointsModel::Round, OfAll> of_all_;
  std::optional<bool> writes_before_;
  std::vector<ProtectorOf> protectors_;
  std::vector<std::vector<InodePtr>> old_disks_;  // by node, with what each held by the model
  std::vector<std::vector<std::set<std::string>>> old_held_;
  uint64_t faults_ = 0;  // disks that fill or fail, or are lost while the job runs: a call may fail
  uint64_t deaths_ = 0;  // who dies may leave an orphan
  bool calm_ = false, dropping_ = false;
  std::set<int> lost_now_;           // to who looks from `run`, at any moment since it chose
  std::set<int> cut_off_, stopped_;  // nodes with no link, and with no agent that answers
  std::map<int, int> at_;            // processes on nodes
  std::map<int, uint64_t> boots_;    // how often a node has been started anew
  std::string failure_;
  std::vector<std::string> notes_;
  std::array<uint64_t, size_t(Did::count)> done_{};
};

}  // namespace holdfast::sim
