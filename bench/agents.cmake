# A node agent against plain TCP; see agent_bench.cpp.
find_package(benchmark QUIET)
if(benchmark_FOUND)
  add_executable(agent_bench ${CMAKE_CURRENT_LIST_DIR}/agent_bench.cpp)
  set_target_properties(agent_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/bench)
  target_link_libraries(agent_bench PRIVATE holdfast_core benchmark::benchmark)
endif()
