# Checkpoints: one node's part of what is measured; see checkpoints/checkpoint_bench.cpp.
add_executable(checkpoint_bench checkpoints/checkpoint_bench.cpp checkpoints/distributed.cpp)
set_target_properties(checkpoint_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/bench)
target_link_libraries(checkpoint_bench PRIVATE holdfast_core PkgConfig::ISAL)
# Where a ctest looks for tests, its own check is one of them: tests/bench.
add_executable(checkpoint_writer checkpoints/checkpoint_writer.c)
target_compile_options(checkpoint_writer PRIVATE -O2)
set_target_properties(checkpoint_writer PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/bench)
