# Coding and checksums against the libraries under them; see coding_bench.cpp.
find_package(benchmark QUIET)
if(benchmark_FOUND)
  add_executable(coding_bench ${CMAKE_CURRENT_LIST_DIR}/coding_bench.cpp)
  set_target_properties(coding_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/bench)
  target_link_libraries(coding_bench PRIVATE holdfast_core benchmark::benchmark)
endif()
