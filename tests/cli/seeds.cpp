// What a program of the C++ library is told by the world: random numbers, and what is in a directory. Into the file that is named.
#include <filesystem>
#include <fstream>
#include <random>

int main(int, char** words) {
  std::ofstream out(words[1]);
  std::random_device seed, device("/dev/urandom");
  std::ifstream random("/dev/urandom", std::ios::binary);
  unsigned read = 0;
  random.read(reinterpret_cast<char*>(&read), sizeof read);
  out << seed() << '\n' << device() << '\n' << read << '\n' << std::mt19937(seed())() << '\n';
  for (const auto& entry : std::filesystem::directory_iterator("many"))
    out << entry.path().filename() << ' ' << entry.last_write_time().time_since_epoch().count() << '\n';
  out << std::filesystem::exists("nowhere") << '\n' << std::filesystem::file_size("seen") << '\n';
  return out.good() ? 0 : 1;
}
