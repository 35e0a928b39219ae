// C++ streams: they open through fopen's own system calls and go on with read, writev and lseek on the descriptor.
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include <fcntl.h>
extern "C" {
#include "pause.h"
}

#define CHECK(what)                                        \
  do {                                                     \
    if (!(what)) {                                         \
      std::cerr << "line " << __LINE__ << ": " #what "\n"; \
      std::exit(1);                                        \
    }                                                      \
  } while (0)

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string prefix = argv[1];
  {
    std::ofstream out(prefix + ".text");
    CHECK(out);
    for (int i = 0; i < 20000; ++i) out << i << ' ' << std::setprecision(8) << i / 3.0 << '\n';
    half_way(prefix.c_str());
    out << std::flush << "the end" << std::endl;
    CHECK(out.tellp() > 100000);
  }
  {
    std::ifstream in(prefix + ".text");
    std::string line, last;
    int lines = 0;
    while (std::getline(in, line)) last = line, ++lines;
    CHECK(lines == 20001 && last == "the end");
  }
  {
    std::vector<double> values(100000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = double(i) * 1.5;
    std::fstream both(prefix + ".binary", std::ios::in | std::ios::out | std::ios::binary | std::ios::trunc);
    CHECK(both.write(reinterpret_cast<const char*>(values.data()), std::streamsize(values.size() * sizeof(double))));
    both.seekp(8000).write("eight by", 8);
    double back = 0;
    both.seekg(16000).read(reinterpret_cast<char*>(&back), sizeof back);
    CHECK(back == values[2000]);
    both.seekg(0, std::ios::end);
    CHECK(both.tellg() == std::streamoff(values.size() * sizeof(double)));
  }
  std::ofstream(prefix + ".text", std::ios::app) << "appended\n";
  static std::ofstream open_at_exit(prefix + ".open_at_exit");
  open_at_exit << std::string(50000, 'z');
  return 0;
}
